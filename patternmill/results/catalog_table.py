"""What a catalog has, as a table for others: CSV for spreadsheets, JSONL for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from patternmill.catalog.changes import CurrentRow
from patternmill.results.row_files import csv_table, iso_time, json_bytes

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


class Format(StrEnum):
    """How the table is written. The values are the endings of its files."""

    CSV = "csv"
    JSONL = "jsonl"


def state_bytes(rows: Iterable[CurrentRow], form: Format) -> Iterator[bytes]:
    """The whole table, by sku, in one of its formats."""
    ordered = sorted(rows, key=lambda row: row.sku)
    match form:
        case Format.CSV:
            lines = (_flat(row).values() for row in ordered)
            yield from csv_table(COLUMNS, ([value or "" for value in line] for line in lines))
        case Format.JSONL:
            yield from (json_bytes(_record(row)) + b"\n" for row in ordered)


def _record(row: CurrentRow) -> dict[str, Any]:
    return {
        "sku": row.sku,
        "status": "current" if row.retired_at is None else "retired",
        "product_id": row.product_id,
        "pattern_id": row.pattern_id,
        "category_id": row.content.category,
        "selections": dict(sorted(row.content.selections.items())),
        "prompt": row.content.prompt,
        "since": iso_time(row.since),
        "retired_at": iso_time(row.retired_at),
        "run_id": row.run_id,
    }


def _flat(row: CurrentRow) -> dict[str, Any]:
    """With the selections as JSON: tables have no place for objects."""
    record = _record(row)
    return record | {"selections": json.dumps(record["selections"], ensure_ascii=False)}
