"""catalog.csv, what a catalog has; and changes.csv, what a refresh found to differ from it, and what replaces it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from patternmill.catalog.changes import ChangeVerdict, CurrentRow
from patternmill.ledger.catalogs import RecordedChange
from patternmill.results.row_files import csv_table, iso_time
from patternmill.results.row_results import RowResult

CATALOG_COLUMNS = (
    "sku",
    "status",
    "product_id",
    "pattern_id",
    "category_id",
    "selections",
    "prompt",
    "since",
    "retired_at",
    "run_id",
)


def state_bytes(rows: Iterable[CurrentRow]) -> Iterator[bytes]:
    """The whole table, by sku."""
    yield from csv_table(CATALOG_COLUMNS, map(_current_cells, sorted(rows, key=lambda row: row.sku)))


def _current_cells(row: CurrentRow) -> list[str]:
    """With the selections as JSON: tables have no place for objects."""
    return [
        row.sku,
        "current" if row.retired_at is None else "retired",
        row.product_id,
        row.pattern_id,
        row.content.category,
        json.dumps(dict(sorted(row.content.selections.items())), ensure_ascii=False),
        row.content.prompt,
        iso_time(row.since) or "",
        iso_time(row.retired_at) or "",
        row.run_id,
    ]


CHANGES_FILE = "changes.csv"
CHANGE_COLUMNS = (
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
    return csv_table(CHANGE_COLUMNS, (_change_cells(change, by_sku) for change in changes))


def _change_cells(change: RecordedChange, by_sku: Mapping[str, RowResult]) -> list[str]:
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
