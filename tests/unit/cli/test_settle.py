"""The verb `settle`: what a person may decide, what it does, and that it is on record; one request, a job, or many."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any, ClassVar, Self

import pytest

from cli import main
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.leases import this_process
from patternmill.ledger.records import Attempt
from patternmill.ledger.reports.requests import find_request, unsettled
from patternmill.runs.lease import acquire_lease
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.service.jobs import Job, read_job
from patternmill.service.studio_api import StudioApi
from patternmill.states import WRITTEN_OFF, AttemptState, Outcome, RowStatus
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, HERON, HERON_MUG, PATTERN_ID, BegunRun, Past

LIMIT = timedelta(hours=12)
YOUNG, LATER = 3600.0, 13 * 3600.0
WHY = ["--reason", "lost in their outage", "--by", "A. Weaver"]
BIRDS = ["S-1,storks,Mug,11oz,,", "S-2,swans,Mug,11oz,,"]


def decide(
    past: Past,
    request_id: RequestId,
    decision: Decision,
    *,
    job_id: str | None = None,
    answer: dict[str, Any] | None = None,
) -> Attempt:
    """`answer`: what the service shows of the job beyond its ID."""
    settlement = Settlement(decision, "the console says so", "A. Weaver", job_id or "")

    async def look_up(asked: str) -> Job | None:
        return read_job({"jobId": asked} | (answer or {}))

    items = [find_request(past.ledger, request_id)]
    for why in asyncio.run(settle(past.ledger, items, settlement, limit=LIMIT, look_up=look_up)).values():
        raise why
    after = past.ledger.purchases.attempt(request_id)
    assert after is not None and list(problems(past.ledger)) == []
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
    assert (after.state, after.body, after.attempt) == (expected, before.body, before.attempt)
    if decision is Decision.RESEND:
        assert after.intended_at == past.clock.now
    else:
        assert after.job_id == (named or before.job_id)
    if decision is Decision.WRITE_OFF:
        assert after.error_code == WRITTEN_OFF
        assert after.error == "Written off by A. Weaver: the console says so"
        assert past.ledger.purchases.spent_on("2027-01-15")["staging"].amounts[""] == 50
    assert on_record(past, before.request_id).count("settled") == 1


@pytest.mark.parametrize(
    ("state", "decision", "age"),
    [
        (AttemptState.INTENDED, Decision.RESEND, YOUNG),
        (AttemptState.INTENDED, Decision.WRITE_OFF, YOUNG),
        (AttemptState.ACCEPTED, Decision.WRITE_OFF, YOUNG),
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
    events = on_record(past, before.request_id)
    with pytest.raises(ConfigurationError):
        decide(past, before.request_id, decision, job_id="job-found" if decision is Decision.JOB else None)
    assert past.ledger.purchases.attempt(before.request_id) == before
    assert on_record(past, before.request_id) == events


def test_resend_of_an_accepted_request_counts_from_now(past: Past) -> None:
    """Held after it had been accepted: its age begins anew, and its job stays known."""
    run, before = one_in(past, AttemptState.ACCEPTED, age=0)
    with past.ledger.transaction():
        change = past.ledger.purchases.change
        change(run.record.run_id, before.request_id, AttemptState.HELD, error_code="lost")
    past.clock.now += LATER
    after = decide(past, before.request_id, Decision.RESEND)
    assert (after.accepted_at, after.job_id) == (None, before.job_id)


def test_resend_moves_the_reservation_to_its_new_day(past: Past) -> None:
    """It stays reserved once, on the day that the request is sent, so that it can be returned."""
    run, before = one_in(past, AttemptState.INTENDED, age=24 * 3600)
    decide(past, before.request_id, Decision.RESEND)
    spent_on = past.ledger.purchases.spent_on
    assert spent_on("2027-01-15")["staging"].amounts[""] == 0
    assert spent_on("2027-01-16")["staging"].amounts[""] == 50
    with past.ledger.transaction():
        past.ledger.purchases.change(run.record.run_id, before.request_id, AttemptState.WITHDRAWN)
    assert spent_on("2027-01-16")["staging"].amounts[""] == 0
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
    after = decide(past, failed.request_id, Decision.JOB, job_id=failed.job_id)
    assert (after.state, after.job_id, after.error_code) == (AttemptState.ACCEPTED, failed.job_id, None)
    assert past.ledger.purchases.spent_by_run(run.record.run_id) == spent
    ((_, outcome),) = past.ledger.runs.rows_with_outcomes(run.record)
    assert outcome.status is RowStatus.WAITING


def test_failed_attempt_that_another_followed_stays_failed(past: Past) -> None:
    run = past.begin(FERN)
    failed = run.attempt(run.pattern("F-1"), AttemptState.FAILED)
    run.attempt(run.pattern("F-1"), AttemptState.ACCEPTED, 2)
    with pytest.raises(ConfigurationError, match="followed by another attempt"):
        decide(past, failed.request_id, Decision.JOB, job_id=failed.job_id)


def held(past: Past, stage: str) -> tuple[BegunRun, Attempt]:
    run = past.begin(HERON_MUG)
    if stage == "pattern":
        return run, run.attempt(run.pattern("H-2"), AttemptState.HELD)
    run.attempt(run.pattern("H-2"), AttemptState.SUCCEEDED)
    return run, run.attempt(run.product("H-2"), AttemptState.HELD)


ASKED: dict[str, Any] = {"patternId": PATTERN_ID, "categoryId": "cat_2", "selections": {"size": "11oz"}}


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("product", {"kind": "pattern"}),
        ("pattern", {"kind": "refine"}),
        ("product", {"kind": "product", "status": "succeeded", "result": {"patternId": "pat-9"}}),
        ("pattern", {"prompt": "green ferns"}),
        ("product", {"request": {"categoryId": "cat_tote"}}),
        ("product", {"input": {"selections": {"size": "15oz"}}}),
        ("product", {"jobId": "another"}),
    ],
)
def test_job_of_another_kind_or_content_is_refused(past: Past, stage: str, answer: dict[str, Any]) -> None:
    """By kind, by result, by content; and nothing is changed."""
    _, before = held(past, stage)
    with pytest.raises(ConfigurationError, match="is not of request"):
        decide(past, before.request_id, Decision.JOB, job_id="job-found", answer=answer)
    assert past.ledger.purchases.attempt(before.request_id) == before
    assert on_record(past, before.request_id) == ["intended", "held"]


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("pattern", {}),
        ("pattern", {"status": "succeeded", "result": {"patternId": "pat-9"}, "prompt": " blue herons "}),
        ("pattern", {"status": "failed", "error": {"message": "broke"}, "prompt": None, "requestId": ""}),
        ("product", {"kind": "product_build"}),
        ("product", {"result": {"patternId": PATTERN_ID, "productId": "prod-9"}, "request": ASKED}),
        ("product", {"requestId": "the-http-request", "input": "H-2"}),
        ("product", {"selections": {"size": "11oz", "wrap": "none"}}),
    ],
)
def test_job_without_contradiction_is_accepted(past: Past, stage: str, answer: dict[str, Any]) -> None:
    """What the service leaves out is no contradiction, nor are both IDs in one result."""
    _, before = held(past, stage)
    after = decide(past, before.request_id, Decision.JOB, job_id="job-found", answer=answer)
    assert (after.state, after.job_id) == (AttemptState.ACCEPTED, "job-found")


@pytest.mark.parametrize(
    ("stage", "evidence", "refusal"),
    [
        ("pattern", "result", "belongs to request"),
        ("product", "result", "belongs to request"),
        ("pattern", "request", "another one of ours"),
        ("pattern", "job", "belongs to request"),
    ],
)
def test_evidence_of_another_request_is_refused(past: Past, stage: str, evidence: str, refusal: str) -> None:
    """One job or result never belongs to two requests, and nothing is changed."""
    run = past.begin(FERN)
    item = run.pattern("F-1") if stage == "pattern" else run.product("F-1")
    other = run.attempt(item, AttemptState.ACCEPTED if evidence == "job" else AttemptState.SUCCEEDED)
    _, before = held(past, stage)
    answer: dict[str, Any] = {
        "result": {"status": "succeeded", "result": {f"{stage}Id": other.result_id}},
        "request": {"request": {"requestId": other.request_id}},
        "job": {},
    }[evidence]
    job_id = other.job_id if evidence == "job" else "job-found"
    with pytest.raises(ConfigurationError, match=refusal):
        decide(past, before.request_id, Decision.JOB, job_id=job_id, answer=answer)
    assert past.ledger.purchases.attempt(before.request_id) == before


def test_job_that_cannot_be_read_is_refused(past: Past) -> None:
    """Unknown, or no answer: nothing is changed, and the remedy is named."""
    _, before = held(past, "pattern")
    items = [find_request(past.ledger, before.request_id)]
    settlement = Settlement(Decision.JOB, "found", "A. Weaver", "job-found")

    async def unknown(job_id: str) -> Job | None:
        return None

    async def away(job_id: str) -> Job | None:
        raise ServiceStopped("No answer from the service.")

    for look_up, said in ((unknown, "knows no job"), (away, "decide again")):
        with pytest.raises(ConfigurationError) as caught:
            asyncio.run(settle(past.ledger, items, settlement, limit=LIMIT, look_up=look_up))
        assert said in str(caught.value) and "Nothing was changed" in str(caught.value)
    assert on_record(past, before.request_id) == ["intended", "held"]


class Jobs:
    """A service that knows some jobs."""

    known: ClassVar[dict[str, str]] = {"job-p": "pattern", "job-b": "product"}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    async def job(self, job_id: str) -> Job | None:
        answer = {"jobId": job_id, "kind": self.known.get(job_id), "status": "running", "result": None}
        return read_job(answer) if job_id in self.known else None


@pytest.mark.parametrize(
    ("profile", "codes", "message"),
    [
        # A pattern's job at a product, and an unknown one, are refused; the right one counts.
        ({"url": "http://127.0.0.1:9/v1"}, {"job-p": 2, "job-x": 2, "job-b": 0}, "knows no job"),
        # Another service may have a job of the same name.
        ({"url": "http://127.0.0.1:8/v1"}, {"job-b": 2}, "another service"),
        # An embedded studio never knew the job.
        (None, {"job-b": 2}, "PATTERNMILL_STUDIO_URL"),
    ],
)
def test_command_asks_the_service_of_the_request(
    past: Past,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    profile: dict[str, str] | None,
    codes: dict[str, int],
    message: str,
) -> None:
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: Jobs())
    if profile is not None:
        monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile | {"key": "key"}}))
    _, before = held(past, "product")
    for job_id, code in codes.items():
        assert main.run(["settle", before.request_id, "--job", job_id, "--reason", "found"]) == code
    assert message in capsys.readouterr().err
    after = past.ledger.purchases.attempt(before.request_id)
    assert after is not None and after.job_id == ("job-b" if 0 in codes.values() else None)


def many(past: Past, catalog: str = "spring") -> list[Attempt]:
    run = past.begin(*BIRDS, catalog=catalog)
    return [run.attempt(run.pattern(sku), AttemptState.HELD) for sku in ("S-1", "S-2")]


def states(past: Past, attempts: list[Attempt]) -> set[AttemptState]:
    found = (past.ledger.purchases.attempt(attempt.request_id) for attempt in attempts)
    return {attempt.state for attempt in found if attempt is not None}


def test_many_are_one_decision_with_a_record_each(past: Past) -> None:
    attempts = many(past)
    assert main.run(["settle", "--all", "--write-off", *WHY]) == 2, "nobody confirmed it"
    assert states(past, attempts) == {AttemptState.HELD}
    assert main.run(["settle", "--all", "--write-off", "--yes", *WHY]) == 0
    for attempt in attempts:
        assert on_record(past, attempt.request_id) == ["intended", "held", "settled", "failed"]
        after = past.ledger.purchases.attempt(attempt.request_id)
        assert after is not None and after.error == "Written off by A. Weaver: lost in their outage"
    assert list(problems(past.ledger)) == []


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ([], {"H-1", "F-1", "product", "other"}),
        (["--environment", "production"], {"other"}),
        (["--code", "job_of_another_item", "--catalog", "spring"], {"H-1", "F-1", "product"}),
        (["--sku", "F-1"], {"F-1", "other"}),
        (["--status", "held", "--changed-since", "2027-01-16", "--category", "tote bag"], {"F-1", "other"}),
        (["--status", "failed"], set()),
    ],
)
def test_filters(
    past: Past,
    options: list[str],
    meant: set[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list and the decision use the same ones."""
    monkeypatch.setattr("patternmill.ledger.database.Clock.__call__", lambda clock: past.clock.now)
    old = past.begin(HERON)
    found = {"H-1": old.attempt(old.pattern("H-1"), AttemptState.HELD)}
    past.clock.now += LATER
    new = past.begin(FERN, HERON_MUG)
    found["F-1"] = new.attempt(new.pattern("F-1"), AttemptState.HELD)
    found["product"] = new.attempt(new.product("H-2"), AttemptState.HELD)
    other = past.begin(FERN, environment="production", catalog="autumn")
    found["other"] = other.attempt(other.pattern("F-1"), AttemptState.HELD)
    assert main.run(["settle", *options]) == 0
    listed = capsys.readouterr().out
    assert {name for name, attempt in found.items() if attempt.request_id in listed} == meant
    assert main.run(["settle", "--all", *options, "--resend", "--yes", *WHY]) == 0
    opened = {name for name, attempt in found.items() if AttemptState.INTENDED in states(past, [attempt])}
    assert opened == meant


def test_attempt_changed_meanwhile_is_left(past: Past) -> None:
    """It could still be decided, but it is not what was shown."""
    attempts = many(past)
    shown = unsettled(past.ledger, LIMIT)
    with past.ledger.transaction():
        change = past.ledger.purchases.change
        change(RunId("run-9"), attempts[0].request_id, AttemptState.ACCEPTED, job_id="job-found")
        change(RunId("run-9"), attempts[0].request_id, AttemptState.HELD, error_code="another")
    settlement = Settlement(Decision.WRITE_OFF, "x", "y")
    ((request_id, why),) = asyncio.run(settle(past.ledger, shown, settlement, limit=LIMIT)).items()
    assert request_id == attempts[0].request_id and "has changed" in str(why)


def test_accepted_attempt_is_not_resent(past: Past) -> None:
    """Old and accepted: only a write-off decides about it; the rest is decided."""
    run = past.begin(FERN, HERON)
    accepted = run.attempt(run.pattern("F-1"), AttemptState.ACCEPTED)
    lost = run.attempt(run.pattern("H-1"), AttemptState.HELD)
    past.clock.now += LATER
    settlement, items = Settlement(Decision.RESEND, "x", "y"), unsettled(past.ledger, LIMIT)
    assert [*asyncio.run(settle(past.ledger, items, settlement, limit=LIMIT))] == [accepted.request_id]
    assert states(past, [lost]) == {AttemptState.INTENDED}


def test_catalog_with_a_run_is_left(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests are left, those of other catalogs are decided; with nothing else it is an overlap."""
    free, driven = many(past, "autumn"), many(past)
    run, me = past.begin(FERN), json.dumps(this_process())
    with past.ledger.transaction():
        past.ledger.catalogs.claim_lease("staging", "spring", run.record.run_id, me, over=None)

    async def sleep(seconds: float) -> None:
        with past.ledger.transaction():
            past.ledger.database.execute("UPDATE leases SET beats = beats + 1")

    monkeypatch.setattr(acquire_lease, "__kwdefaults__", {"sleep": sleep})
    command = ["settle", "--all", "--write-off", "--yes", *WHY]
    assert main.run(command) == 3
    assert states(past, free) == {AttemptState.FAILED}
    assert states(past, driven) == {AttemptState.HELD}
    assert main.run(command) == 4
