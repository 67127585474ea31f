"""Writes changes.csv: what a refresh found to differ from its catalog, and what each new product replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from patternmill.catalog.changes import ChangeVerdict
from patternmill.ledger.catalog_rows import RecordedChange
from patternmill.results.row_files import RowResult, csv_table

CHANGES_FILE = "changes.csv"
COLUMNS = (
    "sku",
    "change",
    "fields",
    "old_product_id",
    "new_product_id",
    "old_pattern_id",
    "new_pattern_id",
    "status",
    "old_and_new",
)


def changes_file(changes: Iterable[RecordedChange], rows: Iterable[RowResult]) -> Iterator[bytes]:
    """Unchanged rows are not in it. While the new IDs are empty, the old product is what the catalog has."""
    by_sku = {row.sku: row for row in rows}
    return csv_table(COLUMNS, (_cells(change, by_sku) for change in changes))


def _cells(change: RecordedChange, by_sku: Mapping[str, RowResult]) -> list[str]:
    row = by_sku.get(change.sku) if change.verdict is None else None
    return [
        change.sku,
        change.kind.value,
        "; ".join(change.fields),
        change.product_id or "",
        (row.product_id if row else None) or "",
        change.pattern_id or "",
        (row.pattern_id if row else None) or "",
        _status(change.verdict, row),
        "; ".join(f"{field}: {text}" for field, text in change.fields.items() if text),
    ]


def _status(verdict: ChangeVerdict | None, row: RowResult | None) -> str:
    if verdict is not None:
        return verdict.value
    return row.status.value if row else ""
