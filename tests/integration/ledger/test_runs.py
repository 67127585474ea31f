"""The contract of the ledger on each database: runs, their inputs and their rows come back as they went in."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.states import AttemptState, Outcome, Stage

from .samples import RAW, RECORD, RUN, at_state, run_row


def add_run(ledger: Ledger, **changes: object) -> None:
    with ledger.transaction():
        ledger.runs.add(replace(RECORD, **changes), RAW)  # type: ignore[arg-type]


def test_run_is_read_back_unchanged(ledger: Ledger) -> None:
    """Every field of its record, while it runs and after it ended."""
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


def test_runs_are_listed_the_newest_first(ledger: Ledger) -> None:
    """By environment and by catalog, where asked."""
    for number, (environment, catalog) in enumerate(
        [("staging", "spring"), ("staging", "autumn"), ("production", "spring")]
    ):
        started = RECORD.started_at + timedelta(hours=number)
        add_run(
            ledger,
            run_id=RunId(f"run-{number}"),
            environment=environment,
            catalog=catalog,
            started_at=started,
        )
    assert [run.run_id for run in ledger.runs.find()] == ["run-2", "run-1", "run-0"]
    assert [run.run_id for run in ledger.runs.find(environment="staging")] == ["run-1", "run-0"]
    assert [run.run_id for run in ledger.runs.find(environment="staging", catalog="spring")] == ["run-0"]


def test_input_is_kept_byte_for_byte_and_once(ledger: Ledger) -> None:
    """Two runs of one file share its bytes."""
    add_run(ledger)
    add_run(ledger, run_id=RunId("run-2"))
    assert ledger.runs.input_of(RECORD) == RAW
    assert ledger.database.rows("SELECT count(*) FROM documents WHERE name <> 'schema'") == [(1,)]
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.runs.input_of(replace(RECORD, input_sha256="0" * 64))


def test_rows_are_read_back_unchanged(ledger: Ledger) -> None:
    """In order, by ranges with both ends, with odd text."""
    rows = [
        run_row(number, "p" if number % 2 else None, None, f'{{"prompt":"{number} 🦩 café"}}')
        for number in range(25)
    ]
    add_run(ledger)
    with ledger.transaction():
        ledger.runs.add_rows(RUN, iter(rows))
    assert ledger.runs.row_count(RUN) == 25
    assert ledger.runs.rows_of(RUN, 0, 24) == rows
    assert ledger.runs.rows_of(RUN, 5, 7) == rows[5:8]
    assert ledger.runs.rows_of(RUN, 25, 99) == []
    assert ledger.runs.row_count(RunId("unknown")) == 0


def test_attempts_of_some_rows(ledger: Ledger) -> None:
    """Of their patterns and products, each once however many rows share it, in order."""
    for number, state in enumerate((AttemptState.FAILED, AttemptState.SUCCEEDED), start=1):
        at_state(ledger, "herons", state, number)
    at_state(ledger, "mug", AttemptState.ACCEPTED, stage=Stage.PRODUCT)
    at_state(ledger, "far", AttemptState.SUCCEEDED)
    add_run(ledger)
    with ledger.transaction():
        ledger.runs.add_rows(
            RUN, [run_row(0, "herons", "mug"), run_row(1, "herons", "none"), run_row(2), run_row(3, "far")]
        )
    found = ledger.runs.attempts_of_rows(RUN, 0, 2)
    assert {key: [one.state for one in those] for key, those in found.items()} == {
        "herons": [AttemptState.FAILED, AttemptState.SUCCEEDED],
        "mug": [AttemptState.ACCEPTED],
    }
    assert found[ItemKey("herons")] == ledger.purchases.attempts_of(ItemKey("herons"))
