"""The verb `settle`: what a person may decide about one request or many, what it does, and that it is on record."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any, Self

import pytest

from cli import main
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.records import Attempt, this_process
from patternmill.ledger.reports.requests import find_request, unsettled
from patternmill.runs.lease import acquire_lease
from patternmill.runs.settlement import Resolution, Settlement, settle
from patternmill.service.jobs import Job, read_job
from patternmill.service.studio_api import StudioApi
from patternmill.states import WRITTEN_OFF, AttemptState, Outcome, RowStatus
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, HERON, HERON_MUG, PATTERN_ID, BegunRun, Past

LIMIT = timedelta(hours=12)
YOUNG, LATER = 3600.0, 13 * 3600.0
WHY = ["--reason", "lost in their outage", "--by", "A. Weaver"]
INTENDED, ACCEPTED, HELD = AttemptState.INTENDED, AttemptState.ACCEPTED, AttemptState.HELD
FAILED, SUCCEEDED = AttemptState.FAILED, AttemptState.SUCCEEDED
RESEND, WRITE_OFF, JOB = Resolution.RESEND, Resolution.WRITE_OFF, Resolution.JOB


def decide(
    past: Past,
    request_id: RequestId,
    decision: Resolution,
    job_id: str | None = None,
    answer: dict[str, Any] | None = None,
) -> Attempt:
    """Settle a request; `answer` has what the service shows of the job besides its ID."""
    settlement = Settlement(decision, "the console says so", "A. Weaver", job_id or "")

    async def look_up(asked: str) -> Job | None:
        return read_job({"jobId": asked} | (answer or {}))

    items = [find_request(past.ledger, request_id)]
    for why in asyncio.run(settle(past.ledger, items, settlement, limit=LIMIT, look_up=look_up)).values():
        raise why
    assert list(problems(past.ledger)) == []
    return find_request(past.ledger, request_id).attempt


def pattern_in(past: Past, state: AttemptState, age: float = LATER) -> tuple[BegunRun, Attempt]:
    """Begin a run whose only pattern has been in a state for this long."""
    run = past.begin(FERN)
    attempt = run.attempt(run.pattern("F-1"), state)
    past.clock.now += age
    return run, attempt


def on_record(past: Past, request_id: RequestId) -> list[str]:
    rows = past.ledger.database.rows(
        "SELECT kind FROM events WHERE request_id = :id ORDER BY seq", {"id": request_id}
    )
    return [kind for (kind,) in rows]


@pytest.mark.parametrize(
    ("state", "decision", "age", "expected"),
    [
        # The next run sends it with the same ID and the same bytes.
        (HELD, RESEND, YOUNG, INTENDED),
        (INTENDED, RESEND, LATER, INTENDED),
        (INTENDED, JOB, LATER, ACCEPTED),
        # Its money stays spent.
        (HELD, WRITE_OFF, YOUNG, FAILED),
        (INTENDED, WRITE_OFF, LATER, FAILED),
        (ACCEPTED, WRITE_OFF, LATER, FAILED),
        # Young, ended or followed: refused, and nothing is changed.
        (INTENDED, RESEND, YOUNG, None),
        (ACCEPTED, WRITE_OFF, YOUNG, None),
        (ACCEPTED, RESEND, LATER, None),
        (ACCEPTED, JOB, LATER, None),
        (SUCCEEDED, WRITE_OFF, LATER, None),
    ],
)
def test_decisions(
    past: Past, state: AttemptState, decision: Resolution, age: float, expected: AttemptState | None
) -> None:
    """Each is on record with author and reason, or refused."""
    _, before = pattern_in(past, state, age)
    events, named = on_record(past, before.request_id), "job-found" if decision is JOB else None
    if expected is None:
        with pytest.raises(ConfigurationError):
            decide(past, before.request_id, decision, named)
        assert past.ledger.purchases.attempt(before.request_id) == before
        assert on_record(past, before.request_id) == events
        return
    after = decide(past, before.request_id, decision, named)
    assert (after.state, after.body, after.attempt) == (expected, before.body, before.attempt)
    assert after.intended_at == (past.clock.now if decision is RESEND else before.intended_at)
    assert after.job_id == (named or before.job_id)
    if decision is WRITE_OFF:
        assert (after.error_code, after.error) == (
            WRITTEN_OFF,
            "Written off by A. Weaver: the console says so",
        )
        assert past.ledger.purchases.spent_on("2027-01-15")["staging"].amounts[""] == 50
    assert on_record(past, before.request_id).count("settled") == 1


def test_resend_counts_from_now(past: Past) -> None:
    """The reservation moves to the new day, so that it can be returned; a job that was known before stays known."""
    run, before = pattern_in(past, ACCEPTED, age=0)
    change, spent_on = past.ledger.purchases.change, past.ledger.purchases.spent_on
    with past.ledger.transaction():
        change(run.record.run_id, before.request_id, HELD, error_code="lost")
    past.clock.now += 24 * 3600
    after = decide(past, before.request_id, RESEND)
    assert (after.accepted_at, after.job_id) == (None, before.job_id)
    assert [spent_on(f"2027-01-{day}")["staging"].amounts[""] for day in (15, 16)] == [0, 50]
    with past.ledger.transaction():
        change(run.record.run_id, before.request_id, AttemptState.WITHDRAWN)
    assert spent_on("2027-01-16")["staging"].amounts[""] == 0
    assert list(problems(past.ledger)) == []


def status_of(past: Past, run: BegunRun) -> RowStatus:
    ((_, outcome),) = past.ledger.runs.rows_with_outcomes(run.record)
    return outcome.status


def test_results_of_the_latest_run_show_the_decision(past: Past) -> None:
    """Those of an earlier run stay as they were."""
    earlier, attempt = pattern_in(past, HELD)
    earlier.end(Outcome.COMPLETED_WITH_FAILURES)
    latest = past.begin(FERN)
    latest.end(Outcome.COMPLETED_WITH_FAILURES)
    decide(past, attempt.request_id, WRITE_OFF)
    assert [status_of(past, run) for run in (earlier, latest)] == [RowStatus.HELD, RowStatus.FAILED]


def test_failed_item_is_led_back_to_its_job(past: Past) -> None:
    """Only the last attempt, and only to its own job; it keeps its price, and its row waits."""
    run, failed = pattern_in(past, FAILED)
    run.end(Outcome.COMPLETED_WITH_FAILURES)
    spent = past.ledger.purchases.spent_by_run(run.record.run_id)
    with pytest.raises(ConfigurationError, match=f"had job {failed.job_id}"):
        decide(past, failed.request_id, JOB, "job-of-nobody")
    after = decide(past, failed.request_id, JOB, failed.job_id)
    assert (after.state, after.job_id, after.error_code) == (ACCEPTED, failed.job_id, None)
    assert past.ledger.purchases.spent_by_run(run.record.run_id) == spent
    assert status_of(past, run) is RowStatus.WAITING
    other = past.begin(HERON)
    failed = other.attempt(other.pattern("H-1"), FAILED)
    other.attempt(other.pattern("H-1"), ACCEPTED, 2)
    with pytest.raises(ConfigurationError, match="followed by another attempt"):
        decide(past, failed.request_id, JOB, failed.job_id)


def held(past: Past, stage: str) -> Attempt:
    run = past.begin(HERON_MUG)
    if stage == "pattern":
        return run.attempt(run.pattern("H-2"), HELD)
    run.attempt(run.pattern("H-2"), SUCCEEDED)
    return run.attempt(run.product("H-2"), HELD)


ASKED: dict[str, Any] = {"patternId": PATTERN_ID, "categoryId": "cat_2", "selections": {"size": "11oz"}}


@pytest.mark.parametrize(
    ("stage", "answer", "is_accepted"),
    [
        ("product", {"kind": "pattern"}, False),
        ("pattern", {"prompt": "green ferns"}, False),
        ("product", {"request": {"categoryId": "cat_tote"}}, False),
        ("product", {"input": {"selections": {"size": "15oz"}}}, False),
        ("product", {"jobId": "another"}, False),
        # Fields that the service leaves out are no contradiction, and neither are its defaults and spaces.
        ("pattern", {"status": "failed", "prompt": " blue herons ", "requestId": ""}, True),
        ("product", {"kind": "product_build", "request": ASKED, "input": "H-2"}, True),
        ("product", {"selections": {"size": "11oz", "wrap": "none"}}, True),
    ],
)
def test_job_is_compared_with_the_request(
    past: Past, stage: str, answer: dict[str, Any], is_accepted: bool
) -> None:
    """A job of another kind or content is refused, and nothing is changed."""
    before = held(past, stage)
    if is_accepted:
        after = decide(past, before.request_id, JOB, "job-found", answer)
        assert (after.state, after.job_id) == (ACCEPTED, "job-found")
        return
    with pytest.raises(ConfigurationError, match="is not of request"):
        decide(past, before.request_id, JOB, "job-found", answer)
    assert past.ledger.purchases.attempt(before.request_id) == before


class Jobs:
    """A service that has some jobs, and does not answer about one."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close nothing."""

    async def job(self, job_id: str) -> Job | None:
        if job_id == "job-lost":
            raise ServiceStopped("No answer from the service.")
        kind = {"job-p": "pattern", "job-b": "product"}.get(job_id)
        return read_job({"jobId": job_id, "kind": kind, "status": "running"}) if kind else None


@pytest.mark.parametrize(
    ("profile", "refusals"),
    [
        ("http://127.0.0.1:9/v1", {"job-p": "its kind is", "job-x": "knows no", "job-lost": "decide again"}),
        # Another service may have a job of the same name; an embedded studio never knew the job.
        ("http://127.0.0.1:8/v1", {"job-b": "another service"}),
        (None, {"job-b": "PATTERNMILL_STUDIO_URL"}),
    ],
)
def test_command_asks_the_service_of_the_request(
    past: Past,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    profile: str | None,
    refusals: dict[str, str],
) -> None:
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: Jobs())
    if profile is not None:
        profiles = {"staging": {"url": profile, "key": "key"}}
        monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps(profiles))
    before = held(past, "product")
    command = ["settle", before.request_id, "--reason", "found", "--job"]
    for job_id, refusal in refusals.items():
        assert main.run([*command, job_id]) == 2
        assert refusal in capsys.readouterr().err
    assert past.ledger.purchases.attempt(before.request_id) == before
    if "job-b" not in refusals:
        assert main.run([*command, "job-b"]) == 0
        assert find_request(past.ledger, before.request_id).attempt.job_id == "job-b"


def test_list_and_decision_use_the_same_filter(
    past: Past, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request that is meant has a record of its own."""
    monkeypatch.setattr("patternmill.ledger.database.Clock.__call__", lambda clock: past.clock.now)
    old = past.begin(HERON)
    attempts = [old.attempt(old.pattern("H-1"), HELD)]
    past.clock.now += LATER
    for catalog in ("spring", "autumn"):
        run = past.begin(FERN, catalog=catalog)
        attempts.append(run.attempt(run.pattern("F-1"), HELD))
    options = ["--changed-since", "2027-01-16", "--category", "tote bag", "--catalog", "autumn"]
    assert main.run(["settle", *options]) == 0
    listed = capsys.readouterr().out
    assert [attempt.request_id in listed for attempt in attempts] == [False, False, True]
    assert main.run(["settle", "--all", *options[:4], "--write-off", "--yes", *WHY]) == 0
    records = [on_record(past, attempt.request_id)[2:] for attempt in attempts]
    assert records == [[], ["settled", "failed"], ["settled", "failed"]]


def test_attempt_changed_meanwhile_is_left(past: Past) -> None:
    """It could still be settled, but it is not what was shown; the others that were shown are settled."""
    run = past.begin(FERN, HERON)
    changed, same = (run.attempt(run.pattern(sku), HELD) for sku in ("F-1", "H-1"))
    shown = unsettled(past.ledger, LIMIT)
    with past.ledger.transaction():
        past.ledger.purchases.change(RunId("run-9"), changed.request_id, ACCEPTED, job_id="job-found")
        past.ledger.purchases.change(RunId("run-9"), changed.request_id, HELD, error_code="another")
    ((request_id, why),) = asyncio.run(
        settle(past.ledger, shown, Settlement(WRITE_OFF, "x", "y"), limit=LIMIT)
    ).items()
    assert request_id == changed.request_id and "has changed" in str(why)
    assert find_request(past.ledger, same.request_id).attempt.state is FAILED


def test_catalog_with_a_run_is_left(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests are left, and those of other catalogs are settled; if there are no others, it is an overlap."""
    runs = [past.begin(FERN, catalog="autumn"), past.begin(FERN)]
    free, driven = (run.attempt(run.pattern("F-1"), HELD) for run in runs)
    with past.ledger.transaction():
        me = json.dumps(this_process())
        past.ledger.catalogs.claim_lease("staging", "spring", runs[1].record.run_id, me, over=None)

    async def sleep(seconds: float) -> None:
        with past.ledger.transaction():
            past.ledger.database.execute("UPDATE leases SET beats = beats + 1")

    monkeypatch.setattr(acquire_lease, "__kwdefaults__", {"sleep": sleep})
    command = ["settle", "--all", "--write-off", "--yes", *WHY]
    assert main.run(command) == 3
    states = [find_request(past.ledger, attempt.request_id).attempt.state for attempt in (free, driven)]
    assert states == [FAILED, HELD]
    assert main.run(command) == 4
