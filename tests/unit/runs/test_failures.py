"""Failures are doubted: a failed job is asked about once more, and refusals that are alike may be about us."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from patternmill.engine.brakes import FailureBrake
from patternmill.planning.items import Item, Scope, pattern_content
from patternmill.runs.run import Run
from patternmill.service.outcomes import NOT_BEGUN, Refusal
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from tests.hostile.in_process import InProcessApi, Service, Shown, failed, made
from tests.integrity import problems

from .workshop import Ended, Workshop, many, rows, until

ONE = rows(("H-1", "herons"))
DONE = made(Stage.PATTERN, "pat_job-1")


@pytest.mark.parametrize(
    ("shown", "status", "code", "bought"),
    [
        (failed(), RowStatus.SUCCEEDED, None, 2),
        (DONE, RowStatus.SUCCEEDED, None, 1),
        ({"status": "running"}, RowStatus.SUCCEEDED, None, 1),
        # What runs, and then fails, is asked for once more.
        ([{"status": "running"}, failed()], RowStatus.SUCCEEDED, None, 2),
        ({}, RowStatus.WAITING, "failure_not_confirmed", 1),
        (None, RowStatus.WAITING, "failure_not_confirmed", 1),
        ({**failed(), **DONE, "status": "failed"}, RowStatus.HELD, "failed_with_result", 1),
    ],
    ids=["failed again", "succeeded", "running", "failed later", "404", "unreadable", "contradiction"],
)
def test_failed_job_is_asked_for_once_more(
    shop: Workshop,
    service: Service,
    shown: Shown | list[Shown | None] | None,
    status: RowStatus,
    code: str | None,
    bought: int,
) -> None:
    service.on_follow["herons"] = [failed()] * (2 if isinstance(shown, list) else 1)
    service.on_ask["herons"] = shown if isinstance(shown, list) else [shown]
    ended = shop.run(ONE)
    assert (ended.rows["H-1"].status, ended.rows["H-1"].error_code) == (status, code)
    assert service.bought.count("herons") == bought
    assert ended.run.progress.tried_again == bought - 1
    if status is RowStatus.WAITING:
        assert shop.run(ONE).outcome is Outcome.COMPLETED
        assert service.bought.count("herons") == bought


@pytest.mark.parametrize("retried", [False, True])
def test_later_run_asks_before_it_buys_anew(shop: Workshop, service: Service, retried: bool) -> None:
    """By policy or as a person requests: the failure of an earlier run may be none any more."""
    service.on_follow["herons"] = [failed("content refused")]
    final = ("content refused",) if retried else ()
    shop.run(ONE, attempts=1, final_reasons=final)
    service.on_ask["herons"] = [DONE]
    ended = shop.run(ONE, attempts=1 if retried else 2, final_reasons=final, retries=retried)
    assert ended.outcome is Outcome.COMPLETED
    assert service.bought.count("herons") == 1


@pytest.mark.parametrize(("window", "most"), [(1, 4), (40, 0)])
def test_minute_in_which_everything_fails_costs_few_second_attempts(
    shop: Workshop, service: Service, window: int, most: int
) -> None:
    """None of what is held back; once the jobs read succeeded, a retry takes them and buys nothing."""
    for number in range(24):
        service.on_follow[f"prompt {number:03}"] = [failed(), failed()]
    ended = shop.run(many(24), max_in_flight=window)
    assert len(service.bought) == 24 + most
    waiting = [row for row in ended.rows.values() if row.status is RowStatus.WAITING]
    assert (len(waiting), {row.error_code for row in waiting}) == (24 - most, {"held_back"})
    assert "; `patternmill retry`. the loom broke" in (waiting[0].error or "")
    service.on_follow.clear()
    for job_id in [*service.shown]:
        service.show(job_id, made(Stage.PATTERN, service.shop.jobs[job_id].result_id))
    assert shop.run(many(24), retries=True).outcome is Outcome.COMPLETED
    assert len(service.bought) == 48 + most
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def test_one_attempt_tests_the_service_an_hour_later(shop: Workshop, service: Service) -> None:
    """While it fails, each further run buys one attempt; once that ends well, the others follow in the same run."""

    def run_later(hours: float) -> Ended:
        with shop.ledger() as ledger, ledger.transaction():
            ledger.database.execute(
                "UPDATE attempts SET accepted_at = accepted_at - :age", {"age": hours * 3600}
            )
        return shop.run(many(8), attempts=4)

    names = [f"prompt {number:03}" for number in range(8)]
    service.on_follow.update({name: [failed()] * 6 for name in names})
    assert run_later(0).counts == {RowStatus.WAITING: 8}
    assert run_later(0.9).counts == {RowStatus.WAITING: 8}
    assert len(service.bought) == 8
    for bought in (9, 10):
        assert run_later(1.1).counts == {RowStatus.WAITING: 8}
        assert len(service.bought) == bought
    service.on_follow.update({name: [failed()] for name in names})
    assert run_later(1.1).outcome is Outcome.COMPLETED


def test_held_back_attempts_follow_once_one_ends_well(shop: Workshop, service: Service) -> None:
    """Each is asked for again then; a real failure gets its next attempt in the same run."""
    for number in range(8):
        name = f"prompt {number:03}"
        service.on_follow[name] = [failed()]
        service.on_ask[name] = [failed(), failed()] if number else [made(Stage.PATTERN, "pat_job-1")]
    assert shop.run(many(8)).outcome is Outcome.COMPLETED
    bought = Counter(service.bought)
    assert bought.pop("prompt 000") == 1
    assert bought == {**{f"S-{n:03}": 1 for n in range(8)}, **{f"prompt {n:03}": 2 for n in range(1, 8)}}


async def test_cancelled_wait_is_counted_no_more() -> None:
    """A task run that waits may be cancelled; another item is still being made then."""
    brake = FailureBrake(lambda: 2)
    content = [pattern_content(f"prompt {number}") for number in range(6)]
    items = [Item(Stage.PATTERN, Scope("staging", "spring"), prompt) for prompt in content]
    for item in items:
        brake.note(item, AttemptState.FAILED)
    for item in items[:2]:
        waiting = asyncio.create_task(brake.wait(item, lambda: False, may_test=False))
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])


def test_stop_keeps_the_next_attempt_back(shop: Workshop, service: Service) -> None:
    """This is no failure: nobody has to edit the row or retry it by hand."""

    async def stop(run: Run, api: InProcessApi) -> None:
        api.jobs_may_end.clear()
        await until(lambda: len(service.jobs) == 1)
        run.stop("A person pressed Ctrl-C.")
        api.jobs_may_end.set()

    service.on_follow["herons"] = [failed(), failed()]
    ended = shop.run(ONE, watch=stop)
    assert ended.outcome is Outcome.CANCELLED
    row = ended.rows["H-1"]
    assert (row.status, row.error_code, service.bought) == (RowStatus.WAITING, "held_back", ["herons"])
    assert (row.error or "").startswith("Attempt 2 held back: A person pressed Ctrl-C")
    assert ended.run.progress.items_failed == 0
    assert shop.run(ONE).outcome is Outcome.COMPLETED
    assert service.bought == ["herons", "herons", "H-1"]


# -- refusals that are alike

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


def test_all_rows_of_a_small_run_have_both_readings(shop: Workshop, service: Service) -> None:
    for number in range(2):
        service.on_create[f"prompt {number:03}"] = [refused()]
    assert {row.remedy for row in shop.run(many(2)).rows.values()} == {BOTH}
    assert shop.run(many(2)).outcome is Outcome.COMPLETED


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


def test_refusal_stands_until_it_is_sent_again(shop: Workshop, service: Service) -> None:
    """A run that is stopped before that does not say that nothing was asked for."""
    service.on_create["prompt 000"] = [refused("unclear_refusal"), NOT_BEGUN]
    first, second = shop.run(many(1)), shop.run(many(1))
    for ended in (first, second):
        assert ended.rows["S-000"].error_code == "unclear_refusal"
        assert (ended.rows["S-000"].remedy or "").startswith("Do not change the row")
    assert shop.run(many(1)).outcome is Outcome.COMPLETED
