"""The verb `explain`: one row's story, from wherever a person comes to it."""

from __future__ import annotations

import json

import pytest

from cli import main
from patternmill.catalog.changes import Change, ChangeKind, ChangeVerdict
from patternmill.ledger.reports.story import stories
from patternmill.ledger.row_outcomes import RowOutcome
from patternmill.states import AttemptState, Outcome, RowStatus
from tests.unit.cli.ledgers import FERN, HERON, HERON_MUG, BegunRun, Past


def shown(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> str:
    assert main.run(["explain", name, *options]) == 0
    return capsys.readouterr().out


def retried(past: Past) -> BegunRun:
    """H-2's product failed in the first run and was made in the second."""
    first = past.begin(HERON, HERON_MUG)
    first.make("H-1")
    first.attempt(first.product("H-2"), AttemptState.FAILED)
    first.end()
    second = past.begin(HERON, HERON_MUG)
    second.attempt(second.product("H-2"), AttemptState.SUCCEEDED, 2)
    second.end(Outcome.COMPLETED)
    return second


def test_story_is_in_time_order(past: Past) -> None:
    """Both runs, the shared pattern and each attempt at the product, in order."""
    run = retried(past)
    (story,) = stories(past.ledger, "H-2")
    assert [(shown.stage, shown.attempt, shown.what) for shown in story.events] == [
        (None, None, "run_began"),
        ("pattern", 1, "intended"),
        ("pattern", 1, "accepted"),
        ("pattern", 1, "succeeded"),
        ("product", 1, "intended"),
        ("product", 1, "accepted"),
        ("product", 1, "failed"),
        (None, None, "run_ended"),
        (None, None, "run_began"),
        ("product", 2, "intended"),
        ("product", 2, "accepted"),
        ("product", 2, "succeeded"),
        (None, None, "run_ended"),
    ]
    assert story.now is not None
    assert story.now.status is RowStatus.SUCCEEDED
    assert story.sharing == ("H-1", "H-2")
    assert [RowOutcome.of_row(row).status for _, row in story.runs] == [RowStatus.FAILED, RowStatus.SUCCEEDED]
    assert story.runs[-1][0].run_id == run.record.run_id


def test_row_is_found_by_each_of_its_ids(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """The sku, the product's ID, its jobs and its requests have the same story."""
    run = retried(past)
    product = run.product("H-2")
    first, second = past.ledger.purchases.attempts_of(product.key)
    text = shown(capsys, "H-2")
    for name in (second.result_id, first.job_id, second.job_id, first.request_id, product.key):
        assert name is not None
        assert shown(capsys, name) == text
        assert name in text
    assert "the loom broke" in text
    assert "450 units, over all attempts" in text


def test_sku_of_several_catalogs_has_a_story_in_each(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    past.begin(HERON)
    past.begin(HERON, catalog="autumn")
    past.begin(HERON, environment="production")
    assert shown(capsys, "H-1").count("in catalog") == 3
    assert shown(capsys, "H-1", "--catalog", "autumn").count("in catalog") == 1
    assert shown(capsys, "H-1", "--environment", "production").count("in catalog") == 1


def test_decision_of_a_person_is_part_of_the_story(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """Its author, kind and reason."""
    run = past.begin(FERN)
    held = run.attempt(run.pattern("F-1"), AttemptState.HELD)
    detail = json.dumps({"decision": "write_off", "by": "A. Weaver", "reason": "refunded"})
    with past.ledger.transaction():
        past.ledger.record_event(run.record.run_id, "settled", held.request_id, detail=detail)
    assert "settled (write off, by A. Weaver: refunded)" in shown(capsys, "F-1")


def test_unknown_name_is_refused(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", "nothing"]) == 2
    assert "Nothing in this ledger is called 'nothing'" in capsys.readouterr().err


def test_retired_row_says_so(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """With the time and the run; not what became of its last request."""
    run = past.begin(HERON)
    run.make("H-1")
    run.end(Outcome.COMPLETED)
    with past.ledger.transaction():
        past.ledger.catalogs.update(run.record)
    gone = past.begin(FERN)
    before = next(past.ledger.catalogs.rows("staging", "spring"))
    change = Change("H-1", ChangeKind.REMOVED, (), before, ChangeVerdict.RETIRED)
    with past.ledger.transaction():
        past.ledger.catalogs.add_changes(gone.record.run_id, [change])
        past.ledger.catalogs.update(gone.record)
    text = shown(capsys, "H-1")
    assert (
        f"now:    retired 2027-01-15 12:02:09 by run {gone.record.run_id}: the source no longer has it"
        in text
    )
    assert "now:    succeeded" not in text
