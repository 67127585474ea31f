"""How the rows of a run stand now, whatever has happened since it ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger, RunRow
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.ledger.row_status import RowStanding, row_standing
from patternmill.states import RowStatus

_CHUNK = 500


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
    standing: RowStanding
    pattern: Attempt | None = None
    product: Attempt | None = None


def present_rows(ledger: Ledger, record: RunRecord) -> Iterator[PresentRow]:
    """The rows of a run in the order of its file, as the ledger knows them at this moment."""
    for first in range(0, ledger.row_count(record.run_id), _CHUNK):
        last = first + _CHUNK - 1
        attempts = ledger.attempts_of_rows(record.run_id, first, last)
        for row in ledger.rows_of(record.run_id, first, last):
            yield _present(row, attempts, record)


def _present(row: RunRow, attempts: Mapping[ItemKey, tuple[Attempt, ...]], record: RunRecord) -> PresentRow:
    kept = json.loads(row.row)
    pattern, product = _last(attempts, row.pattern_key), _last(attempts, row.product_key)
    refused = row.product_key is None
    return PresentRow(
        row.position,
        row.line,
        row.sku,
        kept.get("prompt", ""),
        kept.get("category", ""),
        row.pattern_key,
        row.product_key,
        RowStanding(RowStatus.REFUSED) if refused else row_standing(pattern, product, record.outcome),
        pattern,
        product,
    )


def _last(attempts: Mapping[ItemKey, tuple[Attempt, ...]], key: ItemKey | None) -> Attempt | None:
    return attempts[key][-1] if key is not None and key in attempts else None
