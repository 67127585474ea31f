"""The verb `settle`: what a person may decide, what it does, and that it is on record."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from cli import main
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RequestId
from patternmill.ledger.records import Attempt
from patternmill.ledger.reports.unsettled import unsettled
from patternmill.runs.settlement import Decision, Settlement, requested, settle
from patternmill.service.jobs import Job, read_job
from patternmill.states import WRITTEN_OFF, AttemptState, Outcome, RowStatus
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, HERON, BegunRun, Past

LIMIT = timedelta(hours=12)
LATER = 13 * 3600.0


def decide(
    past: Past,
    request_id: RequestId,
    decision: Decision,
    *,
    job_id: str | None = None,
    answer: dict[str, Any] | None = None,
) -> Attempt:
    """`answer`: what the service shows of the job beyond its ID."""
    settlement = Settlement(decision, "the console says so", "A. Weaver", job_id)

    async def look_up(asked: str) -> Job | None:
        return read_job({"jobId": asked} | (answer or {}))

    items = [requested(past.ledger, request_id)]
    for why in asyncio.run(settle(past.ledger, items, settlement, limit=LIMIT, look_up=look_up)).values():
        raise why
    after = past.ledger.purchases.attempt(request_id)
    assert after is not None
    return after


def one_in(past: Past, state: AttemptState, *, age: float = LATER) -> tuple[BegunRun, Attempt]:
    """A run whose one pattern has been in a state for so long."""
    run = past.begin(FERN)
    attempt = run.attempt(run.pattern("F-1"), state)
    past.clock.now += age
    return run, attempt


def on_record(past: Past, request_id: RequestId) -> list[str]:
    rows = past.ledger.database.rows(
        "SELECT kind FROM events WHERE request_id = :request_id ORDER BY seq", {"request_id": request_id}
    )
    return [kind for (kind,) in rows]


@pytest.mark.parametrize(
    ("state", "decision", "expected"),
    [
        # The next run finds it young enough to send: same ID, same bytes.
        (AttemptState.HELD, Decision.RESEND, AttemptState.INTENDED),
        (AttemptState.INTENDED, Decision.RESEND, AttemptState.INTENDED),
        (AttemptState.HELD, Decision.JOB, AttemptState.ACCEPTED),
        (AttemptState.INTENDED, Decision.JOB, AttemptState.ACCEPTED),
        # Its money stays spent.
        (AttemptState.HELD, Decision.WRITE_OFF, AttemptState.FAILED),
        (AttemptState.INTENDED, Decision.WRITE_OFF, AttemptState.FAILED),
        (AttemptState.ACCEPTED, Decision.WRITE_OFF, AttemptState.FAILED),
    ],
)
def test_decisions(past: Past, state: AttemptState, decision: Decision, expected: AttemptState) -> None:
    """By legal changes, on record with author and reason."""
    _, before = one_in(past, state)
    named = "job-found" if decision is Decision.JOB else None
    after = decide(past, before.request_id, decision, job_id=named)
    assert after.state is expected
    if decision is not Decision.RESEND:
        assert after.job_id == (named or before.job_id)
    assert (after.body, after.attempt) == (before.body, before.attempt)
    if decision is Decision.RESEND:
        assert after.intended_at == past.clock.now
    if decision is Decision.WRITE_OFF:
        assert after.error_code == WRITTEN_OFF
        assert after.error == "Written off by A. Weaver: the console says so"
        assert past.ledger.purchases.spent_on("2027-01-15")["staging"].amounts[""] == 50
    assert on_record(past, before.request_id).count("settled") == 1
    assert list(problems(past.ledger)) == []


def test_resend_of_an_accepted_request_counts_from_now(past: Past) -> None:
    """Held after it had been accepted: its age begins anew, and its job stays known."""
    run, before = one_in(past, AttemptState.ACCEPTED, age=0)
    with past.ledger.transaction():
        past.ledger.purchases.change(
            run.record.run_id, before.request_id, AttemptState.HELD, error_code="lost"
        )
    past.clock.now += LATER
    after = decide(past, before.request_id, Decision.RESEND)
    assert (after.accepted_at, after.job_id) == (None, before.job_id)


def test_resend_moves_the_reservation_to_its_new_day(past: Past) -> None:
    """It stays reserved once, on the day that the request is sent, so that it can be returned."""
    run, before = one_in(past, AttemptState.INTENDED, age=24 * 3600)
    decide(past, before.request_id, Decision.RESEND)
    assert past.ledger.purchases.spent_on("2027-01-15")["staging"].amounts[""] == 0
    assert past.ledger.purchases.spent_on("2027-01-16")["staging"].amounts[""] == 50
    assert list(problems(past.ledger)) == []
    with past.ledger.transaction():
        past.ledger.purchases.change(run.record.run_id, before.request_id, AttemptState.WITHDRAWN)
    assert past.ledger.purchases.spent_on("2027-01-16")["staging"].amounts[""] == 0
    assert list(problems(past.ledger)) == []


def test_results_of_the_latest_run_show_the_decision(past: Past) -> None:
    """Of the run that ended with the request open; an earlier run's stay as they were."""
    earlier, attempt = one_in(past, AttemptState.HELD)
    earlier.end(Outcome.COMPLETED_WITH_FAILURES)
    latest = past.begin(FERN)
    latest.end(Outcome.COMPLETED_WITH_FAILURES)
    decide(past, attempt.request_id, Decision.WRITE_OFF)
    for run, status in ((earlier, RowStatus.HELD), (latest, RowStatus.FAILED)):
        ((_, outcome),) = past.ledger.runs.rows_with_outcomes(run.record)
        assert outcome.status is status


def test_failed_item_is_led_back_to_its_job(past: Past) -> None:
    """The last attempt alone, and to its own job alone; it keeps its price, and its row waits."""
    run, failed = one_in(past, AttemptState.FAILED)
    run.end(Outcome.COMPLETED_WITH_FAILURES)
    spent = past.ledger.purchases.spent_by_run(run.record.run_id)
    with pytest.raises(ConfigurationError, match=f"had job {failed.job_id}"):
        decide(past, failed.request_id, Decision.JOB, job_id="job-of-nobody")
    assert failed.job_id is not None
    after = decide(past, failed.request_id, Decision.JOB, job_id=failed.job_id)
    assert (after.state, after.job_id, after.error_code) == (AttemptState.ACCEPTED, failed.job_id, None)
    assert past.ledger.purchases.spent_by_run(run.record.run_id) == spent
    ((_, outcome),) = past.ledger.runs.rows_with_outcomes(run.record)
    assert outcome.status is RowStatus.WAITING
    assert list(problems(past.ledger)) == []


def test_failed_attempt_that_another_followed_stays_failed(past: Past) -> None:
    run = past.begin(FERN)
    failed = run.attempt(run.pattern("F-1"), AttemptState.FAILED)
    run.attempt(run.pattern("F-1"), AttemptState.ACCEPTED, 2)
    assert failed.job_id is not None
    with pytest.raises(ConfigurationError, match="followed by another attempt"):
        decide(past, failed.request_id, Decision.JOB, job_id=failed.job_id)


def test_job_of_another_request_is_refused(past: Past) -> None:
    """One job never belongs to two requests."""
    run = past.begin(FERN, HERON)
    held = run.attempt(run.pattern("F-1"), AttemptState.HELD)
    other = run.attempt(run.pattern("H-1"), AttemptState.ACCEPTED)
    with pytest.raises(ConfigurationError, match="belongs to request"):
        decide(past, held.request_id, Decision.JOB, job_id=other.job_id)
    assert on_record(past, held.request_id) == ["intended", "held"]


@pytest.mark.parametrize(
    ("state", "decision", "age"),
    [
        (AttemptState.INTENDED, Decision.RESEND, 3600.0),
        (AttemptState.INTENDED, Decision.WRITE_OFF, 3600.0),
        (AttemptState.ACCEPTED, Decision.WRITE_OFF, 3600.0),
        (AttemptState.ACCEPTED, Decision.RESEND, LATER),
        (AttemptState.ACCEPTED, Decision.JOB, LATER),
        (AttemptState.SUCCEEDED, Decision.WRITE_OFF, LATER),
        (AttemptState.FAILED, Decision.RESEND, LATER),
        (AttemptState.REJECTED, Decision.WRITE_OFF, LATER),
        (AttemptState.WITHDRAWN, Decision.WRITE_OFF, LATER),
    ],
)
def test_only_attempts_in_doubt_or_held_can_be_settled(
    past: Past, state: AttemptState, decision: Decision, age: float
) -> None:
    """Young, ended or followed attempts are refused, and nothing is changed."""
    _, before = one_in(past, state, age=age)
    before_events = on_record(past, before.request_id)
    with pytest.raises(ConfigurationError):
        decide(past, before.request_id, decision, job_id="job-found" if decision is Decision.JOB else None)
    after = past.ledger.purchases.attempt(before.request_id)
    assert after is not None
    assert after.state is state
    assert on_record(past, before.request_id) == before_events


def test_list_has_what_waits_for_a_decision(past: Past) -> None:
    """Held at any age, open ones over the limit; the rest is the next run's."""
    old = past.begin(FERN)
    old.attempt(old.pattern("F-1"), AttemptState.INTENDED)
    past.clock.now += LATER
    new = past.begin("A-1,ash,Mug,11oz,,", "B-1,birch,Mug,11oz,,", "C-1,cedar,Mug,11oz,,")
    for sku, state in (
        ("A-1", AttemptState.INTENDED),
        ("B-1", AttemptState.HELD),
        ("C-1", AttemptState.FAILED),
    ):
        new.attempt(new.pattern(sku), state)
    found = {item.content["prompt"] for item in unsettled(past.ledger, LIMIT)}
    assert found == {"green ferns", "birch"}


def test_command_lists_and_decides(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """The decision has its author and reason."""
    _, held = one_in(past, AttemptState.HELD)
    assert main.run(["settle"]) == 0
    assert held.request_id in capsys.readouterr().out
    arguments = ["settle", held.request_id, "--write-off", "--reason", "refunded", "--by", "A. Weaver"]
    assert main.run(arguments) == 0
    assert main.run(["settle"]) == 0
    assert "Nothing waits" in capsys.readouterr().out
    assert main.run(arguments) == 2
