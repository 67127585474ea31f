"""Rows of a run with their outcomes, as tests make and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome
from patternmill.states import RowStatus


@dataclass(frozen=True)
class RowResult:
    """A row with what became of it; what it does not have itself is its outcome's."""

    sku: str
    outcome: RowOutcome
    line: int = 2
    cells: tuple[str, ...] = ()
    prompt: str = ""
    category: str = ""
    category_id: str = ""
    selections: Mapping[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["outcome"], name)

    @property
    def product(self) -> ItemOutcome | None:
        return (self.outcome.kept or self.outcome.items or (None,))[-1]

    @property
    def pattern(self) -> ItemOutcome | None:
        return (self.outcome.kept or self.outcome.items or (None, None))[-2]

    @property
    def product_id(self) -> str | None:
        is_open = self.outcome.status in (RowStatus.TO_CHOOSE, RowStatus.DISCARDED) and not self.outcome.kept
        return None if is_open or self.product is None else self.product.result_id

    @property
    def pattern_id(self) -> str | None:
        return self.pattern.result_id if self.pattern else None


def row_results(ledger: Ledger, record: RunRecord) -> list[RowResult]:
    """Return every row of a run in the order of its file."""
    return [RowResult(row.sku, outcome, row.line) for row, outcome in ledger.runs.rows_with_outcomes(record)]
