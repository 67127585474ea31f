"""How rows stand, and that a run that has ended stands as it did then, whatever comes after."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RowDecision, RunRecord, RunRow, row_content
from patternmill.ledger.row_outcomes import outcome_of_row, row_outcome
from patternmill.ledger.runs import entry_text
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.runs.recorded_run import run_results
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from patternmill.tables.checks import Checked
from tests.integration.ledger.samples import RECORD, RUN, at_state, begin, change
from tests.row_results import row_results
from tests.unit.tables.samples import HEADER, checked

OUTCOMES = [*Outcome, None]
CSV = (
    HEADER
    + "\r\nH-1,blue herons,Cushion,S,linen,007\r\nX-1,,Sofa,,,NA\r\nF-1,green ferns,Tote bag,,,=1+1\r\n"
)


def attempt(state: AttemptState, **changes: Any) -> Attempt:
    return replace(Attempt(RequestId("r"), ItemKey("k"), 1, state), **changes)


@pytest.mark.parametrize("outcome", OUTCOMES)
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
            outcome_so_far = row_outcome(attempt(state) if state else None, product, outcome)
            assert outcome_so_far.status is status, state
    for state, status in by_product.items():
        row = row_outcome(attempt(AttemptState.SUCCEEDED), attempt(state), outcome)
        assert row.status is status, state


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
@pytest.mark.parametrize("product", [None, AttemptState.FAILED, AttemptState.SUCCEEDED])
def test_row_with_takes_to_choose_from(takes: str, status: RowStatus, product: AttemptState | None) -> None:
    """It is to choose once its takes have ended and there are two at least, whether its product was there or not."""
    states = [None if word == "none" else AttemptState(word) for word in takes.split()]
    keys = tuple(ItemKey(f"take {number}") for number in range(1, len(states) + 1))
    attempts = {
        key: attempt(state, item_key=key)
        for key, state in zip((*keys, ItemKey("product")), (*states, product), strict=True)
        if state is not None
    }
    has_product = product is AttemptState.SUCCEEDED
    for decided, expected in ((RowStatus.TO_CHOOSE, status), (RowStatus.DISCARDED, RowStatus.DISCARDED)):
        content = row_content({"prompt": "herons"}, RowDecision(decided, keys, has_product))
        row = RunRow(0, 2, "A", keys[0], ItemKey("product"), content)
        outcome = outcome_of_row(row, attempts, Outcome.COMPLETED_WITH_FAILURES)
        assert outcome.status is expected
        assert outcome.error and outcome.remedy


def test_row_whose_product_was_made_since_is_not_to_choose_any_more() -> None:
    key = ItemKey("product")
    row = RunRow(
        0, 2, "A", ItemKey("1"), key, row_content({}, RowDecision(RowStatus.TO_CHOOSE, (ItemKey("1"),)))
    )
    made = {key: attempt(AttemptState.SUCCEEDED, item_key=key)}
    assert outcome_of_row(row, made, None).status is RowStatus.SUCCEEDED


@pytest.mark.parametrize("state", AttemptState)
def test_unsuccessful_row_has_a_code_a_reason_and_a_remedy(state: AttemptState) -> None:
    """Whether the service sent a reason or not."""
    found = row_outcome(attempt(state), None, Outcome.CANCELLED)
    assert found.error_code and found.error and found.remedy
    if state not in (AttemptState.FAILED, AttemptState.REJECTED, AttemptState.HELD):
        return
    found = row_outcome(attempt(state, error_code="its_code", error="Its words."), None, None)
    assert (found.error_code, found.error) == ("its_code", "Its words.")


# -- rows of a run, from a ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3"))


@pytest.fixture
def catalog() -> Checked:
    return checked(CSV)


def recorded(ledger: Ledger, catalog: Checked, run: str = RUN) -> RunRecord:
    """A run over the catalog: its first row has the items `herons` and `cushion`, its third `ferns` and `tote`."""
    record = replace(
        RECORD,
        run_id=RunId(run),
        input_sha256=hashlib.sha256(CSV.encode()).hexdigest(),
        source="a/b/spring.csv",
    )
    items = [("herons", "cushion"), None, ("ferns", "tote")]
    rows = [
        RunRow(
            position,
            entry.line,
            entry.row.sku if entry.row else "X-1",
            ItemKey(keys[0]) if keys else None,
            ItemKey(keys[1]) if keys else None,
            entry_text(entry),
        )
        for position, (entry, keys) in enumerate(zip(catalog.entries, items, strict=True))
    ]
    with ledger.transaction():
        ledger.runs.add(record, CSV.encode())
        ledger.runs.add_rows(record.run_id, rows)
    return record


results = row_results


def close(ledger: Ledger, record: RunRecord, outcome: Outcome) -> RunRecord:
    ended = replace(record, outcome=outcome)
    with ledger.transaction():
        ledger.runs.close_rows(ended)
        ledger.runs.update(ended)
    return ended


def test_rows_are_read_back_as_in_the_file_with_all_attempts_and_problems(
    ledger: Ledger, catalog: Checked
) -> None:
    """Every row, in order, with its line, its cells byte for byte, and what was understood of it."""
    at_state(ledger, "herons", AttemptState.FAILED)
    at_state(ledger, "herons", AttemptState.SUCCEEDED, 2)
    at_state(ledger, "cushion", AttemptState.SUCCEEDED, stage=Stage.PRODUCT)
    record = recorded(ledger, catalog)
    understood, rows = run_results(ledger, record).read(), results(ledger, record)
    assert [(row.line, row.sku) for row in understood.lines] == [(2, "H-1"), (3, "X-1"), (4, "F-1")]
    assert list(understood.catalog.sheet.column(5)) == ["007", "NA", "=1+1"]
    first, refused, _ = rows
    assert (understood.lines[0].prompt, understood.lines[0].category_id) == ("blue herons", "cat_1")
    assert understood.lines[0].selections == {"fabric": "linen", "size": "S"}
    assert (first.status, first.pattern_id, first.product_id) == (
        RowStatus.SUCCEEDED,
        "made-herons/2",
        "made-cushion/1",
    )
    assert first.pattern is not None and first.pattern.attempts == 2
    problems = catalog.entries[1].problems
    assert len(problems) > 1
    assert (refused.status, refused.error_code) == (RowStatus.REFUSED, problems[0].code.value)
    assert all(problem.message in (refused.error or "") for problem in problems)
    assert (refused.pattern, refused.product, refused.product_id, refused.pattern_id) == (
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    "state", sorted(set(AttemptState) - {AttemptState.SUCCEEDED, AttemptState.FAILED}), ids=str
)
def test_ended_run_keeps_its_statuses(ledger: Ledger, catalog: Checked, state: AttemptState) -> None:
    """Whatever a later run makes of its open attempts."""
    at_state(ledger, "herons", AttemptState.FAILED)
    at_state(ledger, "herons", state, 2)
    first = close(ledger, recorded(ledger, catalog), Outcome.CANCELLED)
    then = results(ledger, first)
    goes_on = {
        AttemptState.INTENDED: [AttemptState.ACCEPTED, AttemptState.SUCCEEDED],
        AttemptState.WITHDRAWN: [AttemptState.INTENDED, AttemptState.ACCEPTED, AttemptState.SUCCEEDED],
        AttemptState.ACCEPTED: [AttemptState.SUCCEEDED],
        AttemptState.REJECTED: [AttemptState.INTENDED, AttemptState.ACCEPTED, AttemptState.SUCCEEDED],
        AttemptState.HELD: [AttemptState.ACCEPTED, AttemptState.SUCCEEDED],
    }
    change(ledger, "herons", *goes_on[state], attempt=2)
    at_state(ledger, "cushion", AttemptState.SUCCEEDED, stage=Stage.PRODUCT)
    at_state(ledger, "ferns", AttemptState.FAILED)
    second = close(ledger, recorded(ledger, catalog, "run-2"), Outcome.COMPLETED_WITH_FAILURES)
    assert results(ledger, first) == then
    assert results(ledger, second)[0].status is RowStatus.SUCCEEDED


def test_rows_are_complete_over_several_chunks(ledger: Ledger) -> None:
    """None is left out, and none is counted twice."""
    lines = "".join(f"S-{number},prompt,Tote bag,,,\r\n" for number in range(1204))
    raw = f"{HEADER}\r\n{lines}".encode()
    record = replace(RECORD, input_sha256=hashlib.sha256(raw).hexdigest())
    begin(ledger, "p")
    rows = [
        RunRow(n, n + 2, f"S-{n}", ItemKey("p"), ItemKey("q"), '{"prompt":"prompt"}') for n in range(1203)
    ]
    rows.append(replace(rows[0], position=1203, line=1205, pattern_key=ItemKey("none")))
    with ledger.transaction():
        ledger.runs.add(record, raw)
        ledger.runs.add_rows(RUN, rows)
        counts = ledger.runs.close_rows(replace(record, outcome=Outcome.CANCELLED))
    assert counts == {RowStatus.IN_DOUBT: 1203, RowStatus.NOT_STARTED: 1}
    assert len({row.sku for row in results(ledger, record)}) == 1203


def test_decision_writes_the_rows_that_had_no_end(ledger: Ledger, catalog: Checked) -> None:
    """Those that were held, failed or unfinished follow the decision; what nobody decided stays."""
    at_state(ledger, "herons", AttemptState.HELD)
    at_state(ledger, "ferns", AttemptState.FAILED)
    ended = close(ledger, recorded(ledger, catalog), Outcome.COMPLETED_WITH_FAILURES)
    assert [row.status for row in results(ledger, ended)] == [
        RowStatus.HELD,
        RowStatus.REFUSED,
        RowStatus.FAILED,
    ]
    change(ledger, "herons", AttemptState.FAILED)
    with ledger.transaction():
        ledger.runs.write_decided_rows(ended)
    found = results(ledger, ended)
    assert [row.status for row in found] == [RowStatus.FAILED, RowStatus.REFUSED, RowStatus.FAILED]
    assert found[2].pattern is not None and found[2].pattern.attempts == 1
