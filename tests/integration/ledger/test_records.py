"""The contract of the ledger on each database: runs, rows, offers, decisions and reports are read back unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.events import (
    ANSWERED,
    Decision,
    FeedbackEvent,
    intend_feedback,
    last_answer,
    last_decisions,
    record_decisions,
)
from patternmill.ledger.forgetting import find_forgettable, forget, never_forgotten
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.metrics import metrics
from patternmill.ledger.reports.run_lookup import latest_run
from patternmill.planning.offer import Category, Offer, Option
from patternmill.states import AttemptState, Decided, Outcome, Stage

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RAW, RECORD, RUN, STAGING, at_state, begin, item, run_row

OFFER = Offer(
    (
        Category("cat_1", "Cushion", (Option("size", ("S", "M"), True, ("Size",), (("Small", "S"),)),)),
        Category("cat_2", "Täschchen 🦩", None),
    ),
    note="The options of one category could not be read.",
)
LATER = replace(RECORD, run_id=RunId("run-2"), input_sha256="another")
PROMPT = '{"parameters":{},"prompt":"blue herons"}'
SHARED = '{"parameters":{},"prompt":"green ferns"}'


def add_run(ledger: Ledger, **changes: object) -> None:
    with ledger.transaction():
        ledger.runs.add(replace(RECORD, **changes), RAW)  # type: ignore[arg-type]


def test_run_is_read_back_unchanged(ledger: Ledger) -> None:
    """Every field of its record, while it runs and after it ended, with its input byte for byte."""
    add_run(ledger)
    assert ledger.runs.get(RUN) == RECORD
    ended = replace(
        RECORD,
        ended_at=RECORD.started_at + timedelta(minutes=4, microseconds=17),
        outcome=Outcome.BUDGET_REACHED,
        reason="Der Rahmen ist erreicht. 🦩",
        prefect_flow_run_id="0f7c",
    )
    with ledger.transaction():
        ledger.runs.update(ended)
    assert ledger.runs.get(RUN) == ended
    assert ledger.database.rows("SELECT outcome FROM runs") == [("BudgetReached",)]
    assert ledger.runs.get(RunId("unknown")) is None
    add_run(ledger, run_id=RunId("run-2"))
    assert ledger.runs.input_of(RECORD) == RAW
    assert ledger.database.rows("SELECT count(*) FROM documents") == [(1,)], (
        "runs of one file share its bytes"
    )
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.runs.input_of(replace(RECORD, input_sha256="0" * 64))


def test_runs_are_listed_the_newest_first(ledger: Ledger) -> None:
    """They can be limited to an environment or a catalog; a catalog's runs are by lease, even if a clock went back."""
    scopes = [
        ("staging", "autumn", 1),
        ("production", "spring", 2),
        ("staging", "spring", 3),
        ("staging", "spring", 0),
    ]
    for number, (environment, catalog, hour) in enumerate(scopes, start=1):
        begun = {"started_at": RECORD.started_at + timedelta(hours=hour), "run_id": RunId(f"run-{number}")}
        record = replace(RECORD, environment=environment, catalog=catalog, **begun)
        with ledger.transaction():
            ledger.runs.add(record, RAW, number=number)
    for scope, newest_first in (
        ({}, "4321"),
        ({"environment": "staging"}, "431"),
        ({"catalog": "spring"}, "432"),
    ):
        assert [run.run_id for run in ledger.runs.find(**scope)] == [
            f"run-{number}" for number in newest_first
        ]
    assert latest_run(ledger, catalog="spring", environment="staging").run_id == "run-4"


def test_last_attempts_of_some_rows(ledger: Ledger) -> None:
    """At their patterns and products, and at what these are built on, however many rows share it."""
    for number, state in enumerate((AttemptState.FAILED, AttemptState.SUCCEEDED), start=1):
        at_state(ledger, "herons", state, number)
    red = {"stage": Stage.REFINEMENT, "pattern_key": ItemKey("herons")}
    at_state(ledger, "red herons", AttemptState.SUCCEEDED, **red)
    at_state(ledger, "mug", AttemptState.ACCEPTED, stage=Stage.PRODUCT)
    at_state(ledger, "far", AttemptState.SUCCEEDED)
    add_run(ledger)
    pairs = [("red herons", "mug"), ("herons", "none"), (None, None), ("far", None)]
    with ledger.transaction():
        ledger.runs.add_rows(RUN, [run_row(number, *pair) for number, pair in enumerate(pairs)])
    last = ledger.runs.last_attempts(RUN, 0, 2)
    assert {key: attempt.attempt for key, attempt in last.items()} == {"herons": 2, "red herons": 1, "mug": 1}
    first, second, third = ledger.runs.rows_of(RUN, 0, 2)
    assert first.needed == ((Stage.PATTERN, "herons"), (Stage.REFINEMENT, "red herons"))
    assert second.needed == ((Stage.PATTERN, "herons"),) and third.chain == ()


def test_last_offer_is_remembered(ledger: Ledger, clock: Clock) -> None:
    """It is kept by environment, with the time at which it was read."""
    assert ledger.catalogs.last_offer(STAGING) is None
    with ledger.transaction():
        ledger.catalogs.remember_offer(STAGING, Offer((), note=None))
        ledger.catalogs.remember_offer(STAGING, OFFER)
    read_on = f"{datetime.fromtimestamp(clock.now, UTC):%Y-%m-%d %H:%M:%S} UTC"
    assert ledger.catalogs.last_offer(STAGING) == replace(OFFER, read_on=read_on)
    assert ledger.catalogs.last_offer("production") is None


# -- decisions and feedback


def decision(name: str, key: str, verdict: Decided) -> Decision:
    at = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
    return Decision(name, ItemKey(key), "ab" * 32, verdict, "too dark", "anna", at)


def test_last_decision_of_an_item_counts(ledger: Ledger, open_ledger: OpenLedger) -> None:
    """A repeated event changes nothing; one about an unknown item is refused with all of its transaction."""
    begin(ledger, "herons")
    picked, rejected = decision("1", "herons", Decided.PICK), decision("2", "herons", Decided.REJECT)
    for decisions, added in (([picked, rejected], ["1", "2"]), ([picked], [])):
        with ledger.transaction():
            assert record_decisions(ledger, RUN, decisions) == added
    with pytest.raises(LedgerError), ledger.transaction():
        both = [decision("3", "herons", Decided.PICK), decision("4", "nobody", Decided.PICK)]
        record_decisions(ledger, RUN, both)
    assert last_decisions(open_ledger(), STAGING, CATALOG) == {"herons": rejected}
    assert last_decisions(ledger, STAGING, "another") == {}


def test_further_takes_of_a_catalog_are_seen(ledger: Ledger) -> None:
    """They are recognized by the content of patterns, whatever a prompt says."""
    begin(ledger, "herons", content='{"prompt":"\\"take\\": 5"}')
    assert ledger.purchases.contents_of_further_takes(STAGING, CATALOG) == []
    with ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item("second", content='{"prompt":"herons","take":2}')])
    further = ledger.purchases.contents_of_further_takes(STAGING, CATALOG)
    assert further == [{"prompt": "herons", "take": 2}]


def test_only_what_was_not_delivered_is_reported_again(ledger: Ledger) -> None:
    """A report without another event may have been delivered: its sender was killed."""
    for kind in (None, FeedbackEvent.SENT, FeedbackEvent.IN_DOUBT, FeedbackEvent.NOT_SENT):
        request_id = begin(ledger, f"herons-{kind}").request_id
        assert intend_feedback(ledger, RUN, request_id, "f-1")
        if kind is not None:
            with ledger.transaction():
                ledger.record_event(RUN, kind, request_id, detail="so it was")
        assert intend_feedback(ledger, RUN, request_id, "f-2") is (kind is FeedbackEvent.NOT_SENT)
    assert last_answer(ledger, request_id) is None
    with ledger.transaction():
        for status in (500, 422):
            ledger.record_event(RUN, ANSWERED, request_id, detail=f'{{"status": {status}}}')
    answer = last_answer(ledger, request_id)
    assert answer is not None and answer[1] == '{"status": 422}'


# -- forgetting, and figures


def test_forgotten_words_go_and_names_stay(ledger: Ledger, open_ledger: OpenLedger) -> None:
    """Words that no later run has are gone; counts, attempts and the numbers of takes stay as before."""
    at_state(ledger, "herons", AttemptState.REJECTED, content=PROMPT)
    at_state(ledger, "again", AttemptState.SUCCEEDED, content=f'{PROMPT[:-1]},"take":2}}')
    at_state(ledger, "ferns", AttemptState.SUCCEEDED, content=SHARED)
    at_state(ledger, "H-1", AttemptState.SUCCEEDED, stage=Stage.PRODUCT, pattern_key=ItemKey("again"))
    for number, (record, pattern) in enumerate(((RECORD, "again"), (LATER, "ferns")), start=1):
        with ledger.transaction():
            ledger.runs.add(record, RAW, number=number)
            words = json.dumps({"prompt": "blue herons"})
            ledger.runs.add_rows(record.run_id, [run_row(0, pattern, f"H-{number}", words)])
            ended = replace(record, outcome=Outcome.COMPLETED, ended_at=record.started_at, reason="so it is")
            ledger.runs.close_rows(ended)
            ledger.runs.update(ended)
    figures = metrics(ledger).decode()
    assert 'patternmill_jobs_in_flight{catalog="spring",environment="staging"} 0.0' in figures
    assert 'patternmill_spent_today{catalog="spring",currency="",environment="staging"} 0.0' in figures
    assert never_forgotten(ledger, STAGING, CATALOG) == {LATER.run_id}
    record = ledger.runs.get(RUN)
    assert record is not None
    counts = ledger.runs.rows_by_status(record)
    what = find_forgettable(ledger, STAGING, CATALOG, [record])
    assert (what.items.keys(), what.rows) == ({"herons", "again", "H-1"}, {RUN: 1})
    with ledger.transaction():
        forget(ledger, what, lambda content: ItemKey(f"first of {content['prompt']}"))

    again = open_ledger()
    contents = dict(again.database.rows("SELECT key, content FROM items WHERE stage = 'pattern'"))
    assert contents == {
        "herons": '{"forgotten":"herons"}',
        "again": '{"forgotten":"first of blue herons","take":2}',
        "ferns": SHARED,
    }
    forgotten = again.runs.get(RUN)
    assert forgotten is not None and forgotten.reason is None and "notes" not in forgotten.options
    assert again.runs.rows_by_status(forgotten) == counts
    assert again.document(RECORD.input_sha256) is None and again.document(LATER.input_sha256) == RAW
    left = find_forgettable(again, STAGING, CATALOG, [forgotten])
    assert not left.told_items and not any(left.rows.values())
