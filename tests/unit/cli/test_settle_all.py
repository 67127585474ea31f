"""`settle --all`: many at once, as they were shown, in one transaction a catalog; and a list without blind spots."""

from __future__ import annotations

import asyncio
import json

import pytest

from cli import main
from patternmill.errors import PatternmillError
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, Lease
from patternmill.ledger.reports.unsettled import unsettled
from patternmill.runs.lease import acquire_lease, this_process
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.states import AttemptState
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, HERON, HERON_MUG, BegunRun, Past
from tests.unit.cli.test_settle import LATER, LIMIT, on_record

WHY = ["--reason", "lost in their outage", "--by", "A. Weaver"]
MANY = [f"S-{number},prompt {number},Mug,11oz,," for number in range(50)]


def held(past: Past, catalog: str = "spring", rows: list[str] = MANY) -> list[Attempt]:
    run = past.begin(*rows, catalog=catalog)
    skus = [row.partition(",")[0] for row in rows]
    return [run.attempt(run.pattern(sku), AttemptState.HELD) for sku in skus]


def states(past: Past, attempts: list[Attempt]) -> set[AttemptState]:
    found = (past.ledger.purchases.attempt(attempt.request_id) for attempt in attempts)
    return {attempt.state for attempt in found if attempt is not None}


def left(past: Past, decision: Decision, take: object = acquire_lease) -> dict[RequestId, PatternmillError]:
    items = unsettled(past.ledger, LIMIT)
    return asyncio.run(
        settle(past.ledger, items, Settlement(decision, "x", "y"), limit=LIMIT, acquire=take)  # type: ignore[arg-type]
    )


def test_fifty_attempts_are_one_decision(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """Shown with count and money, each on record with author and reason, and the ledger stays consistent."""
    attempts = held(past)
    assert main.run(["settle", "--all", "--write-off", "--yes", *WHY]) == 0
    out = capsys.readouterr().out
    assert "50 requests for 2,500 units" in out and "… and 10 more" in out
    assert "50 decided, 0 left" in out
    assert states(past, attempts) == {AttemptState.FAILED}
    for attempt in attempts:
        assert on_record(past, attempt.request_id) == ["intended", "held", "settled", "failed"]
        after = past.ledger.purchases.attempt(attempt.request_id)
        assert after is not None and after.error == "Written off by A. Weaver: lost in their outage"
    assert list(problems(past.ledger)) == []
    assert main.run(["settle", "--all", "--write-off", "--yes", *WHY]) == 0
    assert "Nothing that fits" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["--all", "--job", "job-1", *WHY],
        ["--all", *WHY],
        ["--all", "--resend", "--write-off", *WHY],
        ["--all", "--resend"],
        ["--resend", *WHY],
        ["REQUEST", "--all", "--resend", *WHY],
        ["REQUEST", "--resend", "--catalog", "spring", *WHY],
        ["REQUEST", "--resend"],
        ["REQUEST", *WHY],
        ["REQUEST", "--resend", "--write-off", *WHY],
        ["REQUEST", "--resend", "--reason", " "],
        ["--all", "--resend", "--changed-since", "soon", *WHY],
        ["--all", "--resend", "--sku", "none", *WHY],
    ],
)
def test_ambiguous_options_are_refused(past: Past, arguments: list[str]) -> None:
    """No decision, two, or none with a reason; of one request or of all: exit code 2, nothing changed."""
    attempts = held(past, rows=MANY[:2])
    words = [attempts[0].request_id if word == "REQUEST" else word for word in arguments]
    assert main.run(["settle", *words, "--yes"]) == 2
    assert [on_record(past, attempt.request_id) for attempt in attempts] == [["intended", "held"]] * 2


def test_nothing_is_settled_without_confirmation(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal and without --yes the list is only shown."""
    attempts = held(past, rows=MANY[:2])
    assert main.run(["settle", "--all", "--write-off", *WHY]) == 2
    captured = capsys.readouterr()
    assert "2 requests" in captured.out and "--yes" in captured.err
    assert states(past, attempts) == {AttemptState.HELD}


def test_attempt_changed_meanwhile_is_left(past: Past) -> None:
    """It could still be decided, but it is not what was shown."""
    attempts = held(past, rows=MANY[:2])

    async def take(ledger: Ledger, environment: str, catalog: str, run_id: RunId) -> Lease:
        with ledger.transaction():
            change = ledger.purchases.change
            change(run_id, attempts[0].request_id, AttemptState.ACCEPTED, job_id="job-found")
            change(run_id, attempts[0].request_id, AttemptState.HELD, error_code="another")
        return await acquire_lease(ledger, environment, catalog, run_id)

    ((request_id, why),) = left(past, Decision.WRITE_OFF, take).items()
    assert request_id == attempts[0].request_id and "has changed" in str(why)


def test_accepted_attempt_is_not_resent(past: Past) -> None:
    """Old and accepted: only a write-off decides about it; the rest is decided."""
    run = past.begin(FERN, HERON)
    accepted = run.attempt(run.pattern("F-1"), AttemptState.ACCEPTED)
    lost = run.attempt(run.pattern("H-1"), AttemptState.HELD)
    past.clock.now += LATER
    assert list(left(past, Decision.RESEND)) == [accepted.request_id]
    assert states(past, [lost]) == {AttemptState.INTENDED}


def live(past: Past, run: BegunRun, catalog: str) -> None:
    """This process holds a catalog, and beats."""
    me = json.dumps(this_process())
    with past.ledger.transaction():
        assert (
            past.ledger.catalogs.claim_lease("staging", catalog, run.record.run_id, me, over=None) is not None
        )


def test_catalog_with_a_run_is_left(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests are left, those of other catalogs are decided; with nothing else it is an overlap."""
    free, driven = held(past, "autumn", MANY[:2]), held(past, "spring", MANY[:2])
    live(past, past.begin(FERN, catalog="spring"), "spring")

    async def sleep(seconds: float) -> None:
        with past.ledger.transaction():
            past.ledger.database.execute("UPDATE leases SET beats = beats + 1")

    monkeypatch.setattr(acquire_lease, "__kwdefaults__", {"sleep": sleep})
    command = ["settle", "--all", "--write-off", "--yes", *WHY]
    assert main.run(command) == 3
    assert states(past, free) == {AttemptState.FAILED}
    assert states(past, driven) == {AttemptState.HELD}
    assert main.run(command) == 4


def test_attempts_too_young_to_settle_are_listed(
    past: Past, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a heading of their own, or counted with the run that drives them."""
    monkeypatch.setattr("patternmill.ledger.database.Clock.__call__", lambda clock: past.clock.now)
    run = past.begin(FERN, HERON)
    young = run.attempt(run.pattern("F-1"), AttemptState.INTENDED)
    other = past.begin(FERN, catalog="autumn")
    driven = other.attempt(other.pattern("F-1"), AttemptState.INTENDED)
    live(past, other, "autumn")
    assert main.run(["settle"]) == 0
    out = capsys.readouterr().out
    assert out.index("Nothing waits") < out.index("In doubt, and resumed") < out.index(young.request_id)
    assert driven.request_id not in out
    assert "Without an answer yet, in runs that go on (autumn (staging)): 1." in out
    assert main.run(["settle", "--catalog", "winter"]) == 0
    assert young.request_id not in capsys.readouterr().out
    past.clock.now += LATER
    assert main.run(["settle"]) == 0
    assert "In doubt, and" not in capsys.readouterr().out
