"""How rows stand, and that a run that has ended stands as it did then, whatever comes after."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord, RunRow
from patternmill.ledger.row_outcomes import row_outcome
from patternmill.ledger.runs import entry_text
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from tests.integration.ledger.samples import RECORD, RUN, at_state, begin, change
from tests.unit.catalog.samples import HEADER, checked

OUTCOMES = [*Outcome, None]
CSV = (
    HEADER
    + "\r\nH-1,blue herons,Cushion,S,linen,007\r\nX-1,,Sofa,,,NA\r\nF-1,green ferns,Tote bag,,,=1+1\r\n"
)


def attempt(state: AttemptState, **changes: Any) -> Attempt:
    return replace(Attempt(RequestId("r"), ItemKey("k"), 1, state), **changes)


_STOPPED = {
    outcome: RowStatus.CANCELLED if outcome in (None, Outcome.CANCELLED) else RowStatus.WAITING
    for outcome in OUTCOMES
}
_OF_AN_ITEM = {
    AttemptState.SUCCEEDED: RowStatus.SUCCEEDED,
    AttemptState.FAILED: RowStatus.FAILED,
    AttemptState.REJECTED: RowStatus.FAILED,
    AttemptState.HELD: RowStatus.HELD,
    AttemptState.INTENDED: RowStatus.IN_DOUBT,
}


def expected(
    pattern: AttemptState | None, product: AttemptState | None, outcome: Outcome | None
) -> RowStatus:
    """The table, stated once more in another form: the product counts, and before it there is one, the pattern."""
    begun = [state for state in (product, pattern) if state not in (None, AttemptState.WITHDRAWN)]
    if not begun or begun[0] is None:
        return RowStatus.NOT_STARTED
    if begun[0] is AttemptState.ACCEPTED:
        return _STOPPED[outcome]
    if begun[0] is AttemptState.SUCCEEDED and begun[0] is pattern and len(begun) == 1:
        return RowStatus.CANCELLED
    return _OF_AN_ITEM[begun[0]]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_status_of_a_row(outcome: Outcome | None) -> None:
    """Every state of a pattern without a product, and every state of a product on a made pattern."""
    for state in (*AttemptState, None):
        found = row_outcome(attempt(state) if state else None, None, outcome)
        assert found.status is expected(state, None, outcome), state
        withdrawn = row_outcome(attempt(state) if state else None, attempt(AttemptState.WITHDRAWN), outcome)
        assert withdrawn == found
    for state in set(AttemptState) - {AttemptState.WITHDRAWN}:
        found = row_outcome(attempt(AttemptState.SUCCEEDED), attempt(state), outcome)
        assert found.status is expected(AttemptState.SUCCEEDED, state, outcome), state


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
def catalog() -> CheckedCatalog:
    return checked(CSV)


def recorded(ledger: Ledger, catalog: CheckedCatalog, run: str = RUN) -> RunRecord:
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
            entry.record.line,
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


def results(ledger: Ledger, record: RunRecord) -> list[RowResult]:
    return list(row_results(ledger, record, input_file(ledger, record)))


def close(ledger: Ledger, record: RunRecord, outcome: Outcome) -> RunRecord:
    ended = replace(record, outcome=outcome)
    with ledger.transaction():
        ledger.runs.close_rows(ended)
        ledger.runs.update(ended)
    return ended


def test_rows_are_read_back_as_in_the_file(ledger: Ledger, catalog: CheckedCatalog) -> None:
    """Every row, in order, with its line, its cells byte for byte, and what was understood of it."""
    found = results(ledger, recorded(ledger, catalog))
    assert [(row.position, row.line, row.sku) for row in found] == [
        (0, 2, "H-1"),
        (1, 3, "X-1"),
        (2, 4, "F-1"),
    ]
    assert [row.cells[-1] for row in found] == ["007", "NA", "=1+1"]
    first = found[0]
    assert (first.prompt, first.category_id) == ("blue herons", "cat_1")
    assert first.selections == {"fabric": "linen", "size": "S"}


def test_refused_row_has_all_its_problems(ledger: Ledger, catalog: CheckedCatalog) -> None:
    """With the code of the first, whatever the outcome."""
    row = results(ledger, recorded(ledger, catalog))[1]
    problems = catalog.entries[1].problems
    assert len(problems) > 1
    assert (row.status, row.error_code) == (RowStatus.REFUSED, problems[0].code.value)
    assert all(problem.message in (row.error or "") for problem in problems)
    assert (row.pattern, row.product, row.product_id, row.pattern_id) == (None, None, None, None)


def test_row_has_all_attempts_and_results(ledger: Ledger, catalog: CheckedCatalog) -> None:
    at_state(ledger, "herons", AttemptState.FAILED)
    at_state(ledger, "herons", AttemptState.SUCCEEDED, 2)
    at_state(ledger, "cushion", AttemptState.SUCCEEDED, stage=Stage.PRODUCT)
    row = results(ledger, recorded(ledger, catalog))[0]
    assert (row.status, row.pattern_id, row.product_id) == (
        RowStatus.SUCCEEDED,
        "made-herons/2",
        "made-cushion/1",
    )
    assert row.pattern is not None and row.pattern.attempts == 2


@pytest.mark.parametrize(
    "state", sorted(set(AttemptState) - {AttemptState.SUCCEEDED, AttemptState.FAILED}), ids=str
)
def test_ended_run_keeps_its_statuses(ledger: Ledger, catalog: CheckedCatalog, state: AttemptState) -> None:
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


def test_closing_is_repeatable_after_a_crash(ledger: Ledger, catalog: CheckedCatalog) -> None:
    """Rows that were fixed are fixed again alike."""
    at_state(ledger, "herons", AttemptState.ACCEPTED)
    record = recorded(ledger, catalog)
    once = results(ledger, close(ledger, record, Outcome.FAILED))
    assert results(ledger, close(ledger, record, Outcome.FAILED)) == once


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
    assert [row.position for row in results(ledger, record)] == list(range(1204))


def test_decision_writes_the_rows_that_had_no_end(ledger: Ledger, catalog: CheckedCatalog) -> None:
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
