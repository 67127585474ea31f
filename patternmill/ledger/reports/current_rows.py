"""The rows of a run as they are now, whatever has happened since it ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord, RunRow
from patternmill.ledger.runs import Attempts, RowOutcome, furthest_attempt, last_attempt, row_outcome
from patternmill.states import RowStatus, Stage


@dataclass(frozen=True, slots=True)
class PresentRow:
    """A row with the last attempts at its items. There are none where the row was refused."""

    position: int
    sku: str
    category_id: str
    product_key: ItemKey | None
    outcome: RowOutcome
    #: In the order in which they are made, each with the last attempt at it; None: never begun.
    items: tuple[tuple[ItemKey, Stage, Attempt | None], ...]

    @property
    def product(self) -> Attempt | None:
        """The last attempt at its product; None: never begun."""
        return self.items[-1][2] if self.items else None


def present_rows(ledger: Ledger, record: RunRecord) -> Iterator[PresentRow]:
    for rows, attempts in ledger.rows_with_attempts(record.run_id):
        for row in rows:
            yield _present(row, attempts, record)


def _present(row: RunRow, attempts: Attempts, record: RunRecord) -> PresentRow:
    pattern, product = furthest_attempt(attempts, row.needed), last_attempt(attempts, row.product_key)
    refused = row.product_key is None
    return PresentRow(
        row.position,
        row.sku,
        json.loads(row.row).get("category", ""),
        row.product_key,
        RowOutcome(RowStatus.REFUSED) if refused else row_outcome(pattern, product, record.outcome),
        tuple((key, stage, last_attempt(attempts, key)) for stage, key in row.chain),
    )
