"""Is it the row, or is it us? Different rows that are refused in the same way, one after the other."""

from __future__ import annotations

import pytest

from patternmill.service.outcomes import NOT_BEGUN, Refusal
from patternmill.states import AttemptState, Outcome, RowStatus
from tests.hostile.in_process import Service
from tests.unit.runs.workshop import Workshop, many

LIMIT = "The service answered 422: the plan has no products left."
BOTH = "If that is about these rows, correct them; if it is about the account, run the same command again."


def refused(code: str = "invalid_request") -> Refusal:
    return Refusal(AttemptState.REJECTED, code, LIMIT, alike="422 no products left")


def patterns(service: Service) -> int:
    return sum(name.startswith("prompt") for name in service.bought)


@pytest.mark.parametrize("code", ["invalid_request", "unclear_refusal"])
@pytest.mark.parametrize("window", [1, 5])
def test_limit_of_the_account_stops_the_run_and_is_no_fault_of_the_rows(
    shop: Workshop, service: Service, window: int, code: str
) -> None:
    """Ten products of forty fit; the next run makes the rest, those that were refused after all others."""
    for number in range(10, 40):
        service.on_create[f"S-{number:03}"] = [refused(code)]
    ended = shop.run(many(40), max_in_flight=window)
    assert ended.outcome is Outcome.FAILED
    reason = ended.ending.record.reason or ""
    assert LIMIT in reason and "run the same command again" in reason
    failed = [row for row in ended.rows.values() if row.status is RowStatus.FAILED]
    assert 3 <= len(failed) < 3 + window
    assert not [row for row in failed if (row.remedy or "").startswith("Correct the row")]
    assert code != "invalid_request" or {row.remedy for row in failed} == {BOTH}
    assert patterns(service) <= 13 + window, "patterns were bought after the third refusal"
    service.on_create.clear()
    service.creates.clear()
    again = shop.run(many(40), max_in_flight=1)
    assert again.outcome is Outcome.COMPLETED and patterns(service) == 40
    last = [create.name for create in service.creates][-len(failed) :]
    assert sorted(last) == sorted(row.sku for row in failed)


@pytest.mark.parametrize("window", [4, 30])
def test_wrong_rows_among_good_ones_stop_nothing(shop: Workshop, service: Service, window: int) -> None:
    """Also where their answers come one after the other: an acceptance on its way counts."""
    for sku in ("S-004", "S-005", "S-006"):
        service.on_create[sku] = [refused(), refused()]
    ended = shop.run(many(30), max_in_flight=window)
    assert ended.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert ended.counts == {RowStatus.SUCCEEDED: 27, RowStatus.FAILED: 3}


def test_rows_refused_before_wait_until_all_others_have_ended(shop: Workshop, service: Service) -> None:
    """Sent at once, they would halt each run before a failed job of another row is tried again."""
    for number in range(3):
        service.on_create[f"prompt {number:03}"] = [refused("unclear_refusal")] * 9
    service.on_follow["prompt 003"] = [{"status": "failed", "error": {"message": "the loom broke"}}]
    assert shop.run(many(4), attempts=1).counts == {RowStatus.FAILED: 4}
    again = shop.run(many(4), attempts=2)
    assert again.rows["S-003"].status is RowStatus.SUCCEEDED
    assert again.counts[RowStatus.FAILED] == 3


def test_all_rows_of_a_small_run_have_both_readings(shop: Workshop, service: Service) -> None:
    for number in range(2):
        service.on_create[f"prompt {number:03}"] = [refused()]
    ended = shop.run(many(2))
    assert ended.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert {row.remedy for row in ended.rows.values()} == {BOTH}
    assert shop.run(many(2)).outcome is Outcome.COMPLETED


def test_refusal_stands_until_it_is_sent_again(shop: Workshop, service: Service) -> None:
    """A run that is stopped before that does not say that nothing was asked for."""
    service.on_create["prompt 000"] = [refused("unclear_refusal"), NOT_BEGUN]
    first, second = shop.run(many(1)), shop.run(many(1))
    for ended in (first, second):
        assert ended.rows["S-000"].error_code == "unclear_refusal"
        assert (ended.rows["S-000"].remedy or "").startswith("Do not change the row")
    assert shop.run(many(1)).outcome is Outcome.COMPLETED
