"""The ledger as plain text, table by table, for other programs and for keeping."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Generator, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from patternmill.catalog.rows import BYTE_ORDER_MARK, defuse
from patternmill.ledger.ledger import Ledger

#: The tables that are not written out: `patternmill results` writes inputs and rows as they were, and leases and parts
#: are of use only during a run.
LEFT_OUT = frozenset({"ledger_schema", "inputs", "run_rows", "leases"})
#: All others, with their columns and their order.
TABLES: dict[str, tuple[str, str]] = {
    "runs": (
        "run_id, environment, catalog, number, started_at, ended_at, outcome, record",
        "started_at, run_id",
    ),
    "items": (
        "key, environment, catalog, stage, sku, pattern_key, content, written, created_at",
        "environment, catalog, created_at, key",
    ),
    "attempts": (
        "request_id, item_key, attempt, state, run_id, price, job_id, result_id, picture_url, error_code, error, "
        "intended_at, accepted_at, ended_at, uptime, approval_id, body",
        "item_key, attempt",
    ),
    "events": ("seq, at, run_id, request_id, kind, detail", "seq"),
    "approvals": (
        "id, environment, catalog, digest, items, expected, worst, most_purchases, asked_at, lapses_at, flow_run_id, "
        "verdict, decided_at, who, note, purchases, amount",
        "asked_at, id",
    ),
    "approval_items": ("approval_id, item_key", "approval_id, item_key"),
    "spending": ("environment, day, run_id, stage, items, amount", "environment, day, run_id, stage"),
    "catalog_rows": (
        "environment, catalog, sku, product_key, pattern_key, product_id, pattern_id, row, since, run_id, retired_at",
        "environment, catalog, sku",
    ),
    "run_changes": (
        "run_id, position, sku, kind, fields, verdict, product_id, pattern_id",
        "run_id, position",
    ),
    "checkout_lines": (
        "item_key, position, sku, product_key, product_id, quantity, note",
        "item_key, position",
    ),
    "orders": ("item_key, order_id, status, paid, answer, since, read_at", "since, item_key"),
    "corrections": (
        "environment, catalog, source_row, corrected, sku, field, was, value, run_id, at, ended_at, ended",
        "at, run_id, source_row, field",
    ),
    "merged_corrections": ("run_id, position, sku, field, was, value, made_by", "run_id, position"),
    "column_mappings": ("catalog, columns, reading, confirmed_by, confirmed_at", "catalog"),
    "offers": ("environment, offer, read_at", "environment"),
}
_JSON = frozenset({"record", "content", "written", "row", "fields", "offer", "answer", "columns", "reading"})


def jsonl(ledger: Ledger, tables: Iterable[str]) -> Generator[bytes, None, None]:
    """A line of JSON a record, each with the name of its `table`; JSON within is JSON here too."""
    for table in tables:
        for values in _records(ledger, table):
            opened = {
                name: json.loads(value) if name in _JSON and value is not None else value
                for name, value in values.items()
            }
            yield json.dumps({"table": table} | opened, ensure_ascii=False).encode() + b"\n"


def csv_lines(ledger: Ledger, table: str) -> Generator[bytes, None, None]:
    """One table for a spreadsheet: a header, then a line a record, formula cells defused."""
    yield BYTE_ORDER_MARK + _csv_line(TABLES[table][0].split(", "))
    for values in _records(ledger, table):
        yield _csv_line("" if value is None else defuse(str(value)) for value in values.values())


def _records(ledger: Ledger, table: str) -> Iterator[dict[str, Any]]:
    columns, order = TABLES[table]
    for values in ledger.database.stream(f"SELECT {columns} FROM {table} ORDER BY {order}"):  # noqa: S608
        yield {name: _plain(name, value) for name, value in zip(columns.split(", "), values, strict=True)}


def _plain(name: str, value: Any) -> Any:
    if value is not None and (name in ("at", "since") or name.endswith("_at")):
        return datetime.fromtimestamp(value, UTC).isoformat()
    return bytes(value).decode("utf-8", "replace") if name == "body" else value


def _csv_line(cells: Iterable[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().encode("utf-8", "replace")
