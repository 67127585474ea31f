"""The rows of a run as they are now, whatever has happened since it ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord, RunRow
from patternmill.ledger.runs import Attempts, RowOutcome, last_attempt, row_outcome
from patternmill.states import RowStatus


@dataclass(frozen=True, slots=True)
class PresentRow:
    """A row with the last attempts at its items. Keys are None where the row was refused."""

    position: int
    line: int
    sku: str
    prompt: str
    category_id: str
    pattern_key: ItemKey | None
    product_key: ItemKey | None
    outcome: RowOutcome
    pattern: Attempt | None = None
    product: Attempt | None = None


def present_rows(ledger: Ledger, record: RunRecord) -> Iterator[PresentRow]:
    for rows, attempts in ledger.rows_with_attempts(record.run_id):
        for row in rows:
            yield _present(row, attempts, record)


def _present(row: RunRow, attempts: Attempts, record: RunRecord) -> PresentRow:
    kept = json.loads(row.row)
    pattern, product = last_attempt(attempts, row.pattern_key), last_attempt(attempts, row.product_key)
    refused = row.product_key is None
    return PresentRow(
        row.position,
        row.line,
        row.sku,
        kept.get("prompt", ""),
        kept.get("category", ""),
        row.pattern_key,
        row.product_key,
        RowOutcome(RowStatus.REFUSED) if refused else row_outcome(pattern, product, record.outcome),
        pattern,
        product,
    )
