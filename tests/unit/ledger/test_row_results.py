"""The outcomes of rows; those of a run that has ended stay as they were, whatever comes after."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RowDecision, RunRecord, RunRow, row_content
from patternmill.ledger.row_outcomes import outcome_of_row, row_outcome
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from tests.integration.ledger.samples import RAW, RECORD, RUN, WAYS, at_state, begin, change, run_row

HERONS, CUSHION = ItemKey("herons"), ItemKey("cushion")


def attempt(state: AttemptState, **changes: Any) -> Attempt:
    return replace(Attempt(RequestId("r"), ItemKey("k"), 1, state), **changes)


@pytest.mark.parametrize("outcome", [*Outcome, None])
def test_status_of_a_row(outcome: Outcome | None) -> None:
    """Every state of a pattern without a product, and every state of a product on a made pattern."""
    is_stopped = outcome in (None, Outcome.CANCELLED)
    by_product = {
        AttemptState.SUCCEEDED: RowStatus.SUCCEEDED,
        AttemptState.FAILED: RowStatus.FAILED,
        AttemptState.REJECTED: RowStatus.FAILED,
        AttemptState.HELD: RowStatus.HELD,
        AttemptState.INTENDED: RowStatus.IN_DOUBT,
        AttemptState.ACCEPTED: RowStatus.CANCELLED if is_stopped else RowStatus.WAITING,
    }
    by_pattern = by_product | {
        AttemptState.SUCCEEDED: RowStatus.CANCELLED,
        AttemptState.WITHDRAWN: RowStatus.NOT_STARTED,
        None: RowStatus.NOT_STARTED,
    }
    for state, status in by_pattern.items():
        for product in (None, attempt(AttemptState.WITHDRAWN)):
            so_far = row_outcome(attempt(state) if state else None, product, outcome)
            assert so_far.status is status, state
            assert status is RowStatus.SUCCEEDED or (so_far.error_code and so_far.error and so_far.remedy)
    for state, status in by_product.items():
        assert row_outcome(attempt(AttemptState.SUCCEEDED), attempt(state), outcome).status is status, state
        if status in (RowStatus.FAILED, RowStatus.HELD):
            quoted = row_outcome(None, attempt(state, error_code="its_code", error="Its words."), outcome)
            assert (quoted.error_code, quoted.error) == ("its_code", "Its words.")


@pytest.mark.parametrize(
    ("takes", "status"),
    [
        ("succeeded succeeded succeeded", RowStatus.TO_CHOOSE),
        ("succeeded failed succeeded", RowStatus.TO_CHOOSE),
        ("failed succeeded rejected", RowStatus.FAILED),
        ("succeeded accepted succeeded", RowStatus.WAITING),
        ("failed intended succeeded", RowStatus.IN_DOUBT),
        ("succeeded held succeeded", RowStatus.HELD),
        ("succeeded succeeded none", RowStatus.CANCELLED),
        ("succeeded withdrawn none", RowStatus.CANCELLED),
        ("none withdrawn", RowStatus.NOT_STARTED),
    ],
)
def test_row_with_takes_to_choose_from(takes: str, status: RowStatus) -> None:
    """It is to choose once its takes have ended and there are two at least, whether its product was there or not."""
    states = {ItemKey(f"take {number}"): word for number, word in enumerate(takes.split(), start=1)}
    attempts = {
        key: attempt(AttemptState(word), item_key=key) for key, word in states.items() if word != "none"
    }
    for product in (None, AttemptState.FAILED, AttemptState.SUCCEEDED):
        if product is not None:
            attempts[CUSHION] = attempt(product, item_key=CUSHION)
        has_product = product is AttemptState.SUCCEEDED
        for decided, expected in ((RowStatus.TO_CHOOSE, status), (RowStatus.DISCARDED, RowStatus.DISCARDED)):
            content = row_content({"prompt": "herons"}, RowDecision(decided, tuple(states), has_product))
            row = RunRow(0, 2, "A", next(iter(states)), CUSHION, content)
            outcome = outcome_of_row(row, attempts, Outcome.COMPLETED_WITH_FAILURES)
            assert outcome.status is expected
            assert outcome.error and outcome.remedy
    made_since = row_content({}, RowDecision(RowStatus.TO_CHOOSE, tuple(states)))
    assert outcome_of_row(replace(row, row=made_since), attempts, None).status is RowStatus.SUCCEEDED


# -- rows of a run, from a ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3"))


PROBLEMS = [
    {"code": "unknown_category", "message": "unknown `Sofa`", "remedy": "did you mean `Stool`?"},
    {"code": "empty_prompt", "message": "the prompt is empty", "remedy": "describe it"},
    {"code": "surplus_cells", "message": "a cell too many", "remedy": ""},
]


def recorded(ledger: Ledger, run: str = RUN) -> RunRecord:
    """A run of three rows: one of the items `herons` and `cushion`, one that is refused, one of `ferns` and `tote`."""
    record = replace(RECORD, run_id=RunId(run))
    rows = [
        run_row(0, "herons", "cushion"),
        run_row(1, row=json.dumps({"problems": PROBLEMS})),
        run_row(2, "ferns", "tote"),
    ]
    with ledger.transaction():
        ledger.runs.add(record, RAW)
        ledger.runs.add_rows(record.run_id, rows)
    return record


def close(ledger: Ledger, record: RunRecord, outcome: Outcome) -> RunRecord:
    ended = replace(record, outcome=outcome)
    with ledger.transaction():
        ledger.runs.close_rows(ended)
        ledger.runs.update(ended)
    return ended


def statuses(ledger: Ledger, record: RunRecord) -> list[RowStatus]:
    return [outcome.status for _, outcome in ledger.runs.rows_with_outcomes(record)]


def test_rows_are_read_back_with_all_attempts_and_problems(ledger: Ledger) -> None:
    at_state(ledger, "herons", AttemptState.FAILED)
    at_state(ledger, "herons", AttemptState.SUCCEEDED, 2)
    at_state(ledger, "cushion", AttemptState.SUCCEEDED, stage=Stage.PRODUCT)
    record = recorded(ledger)
    (row, first), (_, refused), _ = ledger.runs.rows_with_outcomes(record)
    assert (row.line, row.sku, first.status) == (2, "SKU-0", RowStatus.SUCCEEDED)
    made = [(item.stage, item.key, item.attempts, item.result_id) for item in first.items]
    assert made == [
        (Stage.PATTERN, HERONS, 2, "made-herons/2"),
        (Stage.PRODUCT, CUSHION, 1, "made-cushion/1"),
    ]
    assert (refused.status, refused.error_code, refused.items) == (RowStatus.REFUSED, "unknown_category", ())
    # Each fault has its remedy beside it.
    assert (refused.error, refused.remedy) == (
        "unknown `Sofa`",
        "did you mean `Stool`? Also: the prompt is empty; describe it. Also: a cell too many",
    )


def test_ended_run_keeps_its_statuses(ledger: Ledger) -> None:
    """Whatever a later run makes of its open attempts; but rows without an end follow what a person decides."""
    at_state(ledger, "herons", AttemptState.HELD)
    at_state(ledger, "ferns", AttemptState.FAILED)
    first = close(ledger, recorded(ledger), Outcome.CANCELLED)
    then = list(ledger.runs.rows_with_outcomes(first))
    assert [outcome.status for _, outcome in then] == [RowStatus.HELD, RowStatus.REFUSED, RowStatus.FAILED]
    change(ledger, "herons", *WAYS[AttemptState.SUCCEEDED])
    at_state(ledger, "cushion", AttemptState.SUCCEEDED, stage=Stage.PRODUCT)
    second = close(ledger, recorded(ledger, "run-2"), Outcome.COMPLETED_WITH_FAILURES)
    assert list(ledger.runs.rows_with_outcomes(first)) == then
    assert statuses(ledger, second) == [RowStatus.SUCCEEDED, RowStatus.REFUSED, RowStatus.FAILED]
    with ledger.transaction():
        ledger.runs.write_decided_rows(first)
    assert statuses(ledger, first) == [RowStatus.SUCCEEDED, RowStatus.REFUSED, RowStatus.FAILED]


def test_rows_are_complete_over_several_chunks(ledger: Ledger) -> None:
    """None is left out, and none is counted twice."""
    begin(ledger, "p")
    rows = [run_row(number, "p", "q") for number in range(1203)]
    with ledger.transaction():
        ledger.runs.add(RECORD, RAW)
        ledger.runs.add_rows(RUN, [*rows, run_row(1203, "none", "q")])
        counts = ledger.runs.close_rows(replace(RECORD, outcome=Outcome.CANCELLED))
    assert counts == {RowStatus.IN_DOUBT: 1203, RowStatus.NOT_STARTED: 1}
    assert len({row.sku for row, _ in ledger.runs.rows_with_outcomes(RECORD)}) == 1204
