"""What a catalog has, as a table for spreadsheets and programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from patternmill.catalog.changes import CurrentRow
from patternmill.results.row_files import csv_table, iso_time

COLUMNS = (
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
    yield from csv_table(COLUMNS, map(_cells, sorted(rows, key=lambda row: row.sku)))


def _cells(row: CurrentRow) -> list[str]:
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
