"""The rows of a run as results show them: rebuilt from the ledger alone, so that they are the same each time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from patternmill.catalog.csv_reader import CatalogFile, parse_catalog
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.ledger import Ledger, RunRow
from patternmill.ledger.records import Attempt, ItemTrace, RowResult, RunRecord
from patternmill.ledger.row_status import RowStanding, row_standing
from patternmill.states import FINAL_ATTEMPTS, AttemptState, Outcome, RowStatus, Stage

_CHUNK = 500


def understood(entry: Entry) -> str:
    """What a run remembers of a row beside its items: what was understood, or why it was refused."""
    row = entry.row
    if row is None:
        problems = [
            {"code": problem.code.value, "message": problem.message, "remedy": problem.remedy}
            for problem in entry.problems
        ]
        return json.dumps({"problems": problems}, ensure_ascii=False)
    return json.dumps(kept_of(row), ensure_ascii=False)


def kept_of(row: Row) -> dict[str, Any]:
    """What a run remembers of a row that was good."""
    return {"prompt": row.prompt, "category": row.category_id or row.category, "selections": row.selections}


def input_file(ledger: Ledger, record: RunRecord) -> CatalogFile:
    """A run's input, read again from the ledger's copy of its bytes."""
    name = record.source.rpartition("/")[2]
    return parse_catalog(ledger.input_of(record), name=name, encoding=record.input_encoding, empty=True)


def row_results(ledger: Ledger, record: RunRecord, file: CatalogFile) -> Iterator[RowResult]:
    """Every row of a run, in the order of its file. Rows of a run that has ended stand as they did then."""
    for rows, attempts in _chunks(ledger, record):
        for row in rows:
            cells = file.records[row.position].cells
            yield _row_result(row, cells, attempts, record.outcome)


def close_rows(ledger: Ledger, record: RunRecord) -> dict[RowStatus, int]:
    """Fix how every row stands, as the run ends with `record.outcome`; returns the rows by status."""
    counts: dict[RowStatus, int] = {}
    for rows, attempts in _chunks(ledger, record):
        standings = []
        for row in rows:
            standing = _standing(row, attempts, record.outcome)
            counts[standing.status] = counts.get(standing.status, 0) + 1
            standings.append((row.position, _frozen(row, standing, attempts)))
        ledger.set_standings(record.run_id, standings)
    return counts


def _chunks(
    ledger: Ledger, record: RunRecord
) -> Iterator[tuple[list[RunRow], Mapping[ItemKey, tuple[Attempt, ...]]]]:
    for first in range(0, ledger.row_count(record.run_id), _CHUNK):
        last = first + _CHUNK - 1
        rows = ledger.rows_of(record.run_id, first, last)
        yield rows, ledger.attempts_of_rows(record.run_id, first, last)


def _last(attempts: Mapping[ItemKey, tuple[Attempt, ...]], key: ItemKey | None) -> Attempt | None:
    return attempts[key][-1] if key is not None and key in attempts else None


def _standing(
    row: RunRow, attempts: Mapping[ItemKey, tuple[Attempt, ...]], outcome: Outcome | None
) -> RowStanding:
    problems = json.loads(row.row).get("problems")
    if problems is not None:
        return RowStanding(
            RowStatus.REFUSED,
            problems[0]["code"],
            "; ".join(problem["message"] for problem in problems),
            "; ".join(dict.fromkeys(problem["remedy"] for problem in problems if problem["remedy"])),
        )
    return row_standing(_last(attempts, row.pattern_key), _last(attempts, row.product_key), outcome)


def _frozen(row: RunRow, standing: RowStanding, attempts: Mapping[ItemKey, tuple[Attempt, ...]]) -> str:
    """The standing as JSON: how many attempts there were, and those that could still change, as they were."""
    kept: dict[str, Any] = asdict(standing)
    for stage, key in ((Stage.PATTERN, row.pattern_key), (Stage.PRODUCT, row.product_key)):
        those = attempts.get(key, ()) if key is not None else ()
        kept[stage.value] = len(those)
        if those and those[-1].state not in FINAL_ATTEMPTS:
            kept[f"open_{stage.value}"] = asdict(those[-1]) | {"body": ""}
    return json.dumps(kept, ensure_ascii=False)


def _row_result(
    row: RunRow,
    cells: tuple[str, ...],
    attempts: Mapping[ItemKey, tuple[Attempt, ...]],
    outcome: Outcome | None,
) -> RowResult:
    frozen = json.loads(row.standing) if row.standing else None
    standing = _thawed(frozen) if frozen else _standing(row, attempts, outcome)
    pattern = _trace(Stage.PATTERN, row.pattern_key, attempts, frozen)
    product = _trace(Stage.PRODUCT, row.product_key, attempts, frozen)
    kept = json.loads(row.row)
    return RowResult(
        row.position,
        row.line,
        row.sku,
        cells,
        kept.get("prompt", ""),
        kept.get("category", ""),
        kept.get("selections", {}),
        standing.status,
        _made(product),
        _made(pattern),
        standing.error_code,
        standing.error,
        standing.remedy,
        pattern,
        product,
    )


def _thawed(frozen: Mapping[str, Any]) -> RowStanding:
    return RowStanding(RowStatus(frozen["status"]), frozen["error_code"], frozen["error"], frozen["remedy"])


def _trace(
    stage: Stage,
    key: ItemKey | None,
    attempts: Mapping[ItemKey, tuple[Attempt, ...]],
    frozen: Mapping[str, Any] | None,
) -> ItemTrace | None:
    if key is None:
        return None
    those = attempts.get(key, ())
    if frozen is not None:
        those = those[: frozen[stage.value]]
        was = frozen.get(f"open_{stage.value}")
        if was is not None:
            was = was | {"state": AttemptState(was["state"]), "body": b""}
            was = was | {"request_id": RequestId(was["request_id"]), "item_key": ItemKey(was["item_key"])}
            those = (*those[:-1], Attempt(**was))
    return ItemTrace(stage, key, those)


def _made(trace: ItemTrace | None) -> str | None:
    if trace is None or trace.last is None or trace.last.state is not AttemptState.SUCCEEDED:
        return None
    return trace.last.result_id
