"""The ledger as plain text, table by table, for other programs and for keeping."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Generator, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from patternmill.catalog.spreadsheet import BYTE_ORDER_MARK, defuse
from patternmill.ledger.ledger import Ledger

#: Columns by table. `inputs` and `run_rows` are left out: `patternmill results` writes them as they were.
COLUMNS: dict[str, tuple[str, ...]] = {
    "runs": ("run_id", "environment", "catalog", "started_at", "ended_at", "outcome", "record"),
    "items": ("key", "environment", "catalog", "stage", "sku", "pattern_key", "content", "created_at"),
    "attempts": (
        "request_id",
        "item_key",
        "attempt",
        "state",
        "run_id",
        "price",
        "job_id",
        "result_id",
        "picture_url",
        "error_code",
        "error",
        "intended_at",
        "accepted_at",
        "ended_at",
        "approval_id",
        "body",
    ),
    "approvals": (
        "id",
        "environment",
        "catalog",
        "digest",
        "items",
        "expected",
        "worst",
        "asked_at",
        "lapses_at",
        "flow_run_id",
        "verdict",
        "decided_at",
        "who",
        "note",
        "most_items",
        "most_purchases",
        "most_amount",
        "purchases",
        "amount",
    ),
    "events": ("seq", "at", "run_id", "request_id", "kind", "detail"),
}
_ORDER = {
    "runs": "started_at, run_id",
    "items": "environment, catalog, created_at, key",
    "attempts": "item_key, attempt",
    "approvals": "asked_at, id",
    "events": "seq",
}
_TIMES = frozenset(
    {
        "started_at",
        "ended_at",
        "created_at",
        "intended_at",
        "accepted_at",
        "asked_at",
        "lapses_at",
        "decided_at",
        "at",
    }
)
_JSON = frozenset({"record", "content"})


def jsonl(ledger: Ledger, tables: Iterable[str]) -> Generator[bytes, None, None]:
    """A line of JSON a record, each with the name of its `table`; JSON within is JSON here too."""
    for table in tables:
        for values in _records(ledger, table):
            opened = {name: json.loads(value) if name in _JSON else value for name, value in values.items()}
            yield json.dumps({"table": table} | opened, ensure_ascii=False).encode() + b"\n"


def csv_lines(ledger: Ledger, table: str) -> Generator[bytes, None, None]:
    """One table for a spreadsheet: a header, then a line a record, formula cells defused."""
    yield BYTE_ORDER_MARK + _csv_line(COLUMNS[table])
    for values in _records(ledger, table):
        yield _csv_line("" if value is None else defuse(str(value)) for value in values.values())


def _records(ledger: Ledger, table: str) -> Iterator[dict[str, Any]]:
    columns = COLUMNS[table]
    for values in ledger.database.stream(
        f"SELECT {', '.join(columns)} FROM {table} ORDER BY {_ORDER[table]}"  # noqa: S608
    ):
        yield {name: _plain(name, value) for name, value in zip(columns, values, strict=True)}


def _plain(name: str, value: Any) -> Any:
    if name in _TIMES and value is not None:
        return datetime.fromtimestamp(value, UTC).isoformat()
    return bytes(value).decode("utf-8", "replace") if name == "body" else value


def _csv_line(cells: Iterable[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().encode("utf-8", "replace")
