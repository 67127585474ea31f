"""The rows of a run as results show them: rebuilt from the ledger alone, so that they are the same each time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from patternmill.catalog.csv_reader import CatalogFile, parse_catalog
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, ItemTrace, RowResult, RunRecord, RunRow
from patternmill.ledger.run_rows import Attempts, RowOutcome, outcome_of_row
from patternmill.states import AttemptState, Outcome, Stage


def input_file(ledger: Ledger, record: RunRecord) -> CatalogFile:
    name = record.source.rpartition("/")[2]
    return parse_catalog(ledger.input_of(record), name=name, encoding=record.input_encoding, empty=True)


def row_results(ledger: Ledger, record: RunRecord, file: CatalogFile) -> Iterator[RowResult]:
    """Every row of a run, in the order of its file. Rows of a run that has ended are as they were then."""
    for rows, attempts in ledger.rows_with_attempts(record.run_id):
        for row in rows:
            yield _row_result(row, file.records[row.position].cells, attempts, record.outcome)


def _row_result(
    row: RunRow, cells: tuple[str, ...], attempts: Attempts, run_outcome: Outcome | None
) -> RowResult:
    ended = json.loads(row.outcome) if row.outcome else None
    outcome = RowOutcome.from_json(ended) if ended else outcome_of_row(row, attempts, run_outcome)
    pattern = _trace(Stage.PATTERN, row.pattern_key, attempts, ended)
    product = _trace(Stage.PRODUCT, row.product_key, attempts, ended)
    kept = json.loads(row.row)
    return RowResult(
        row.position,
        row.line,
        row.sku,
        cells,
        kept.get("prompt", ""),
        kept.get("category", ""),
        kept.get("selections", {}),
        outcome.status,
        _made(product),
        _made(pattern),
        outcome.error_code,
        outcome.error,
        outcome.remedy,
        pattern,
        product,
    )


def _trace(
    stage: Stage, key: ItemKey | None, attempts: Attempts, ended: Mapping[str, Any] | None
) -> ItemTrace | None:
    """`ended`: what was fixed as the run ended. Later attempts are left out, and open ones are as they were."""
    if key is None:
        return None
    those = attempts.get(key, ())
    if ended is not None:
        those = those[: ended[stage.value]]
        was = ended.get(f"open_{stage.value}")
        if was is not None:
            those = (*those[:-1], _open_attempt(was))
    return ItemTrace(stage, key, those)


def _open_attempt(was: Mapping[str, Any]) -> Attempt:
    typed = {
        "state": AttemptState(was["state"]),
        "body": b"",
        "request_id": RequestId(was["request_id"]),
        "item_key": ItemKey(was["item_key"]),
    }
    return Attempt(**{**was, **typed})


def _made(trace: ItemTrace | None) -> str | None:
    if trace is None or trace.last is None or trace.last.state is not AttemptState.SUCCEEDED:
        return None
    return trace.last.result_id
