"""Writes results.jsonl: one exact JSON object a row, with all attempts, IDs and times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from patternmill.catalog.columns import column_letter
from patternmill.ledger.records import Attempt, ItemTrace, RowResult


def lines(header: Sequence[str], carried: Sequence[int], rows: Iterable[RowResult]) -> Iterator[bytes]:
    columns = _column_names(header, carried)
    for row in rows:
        yield json_bytes(_row_object(len(header), columns, row)) + b"\n"


def _column_names(header: Sequence[str], carried: Sequence[int]) -> dict[str, int]:
    """Each column's index by its name; columns without a name of their own are distinguished by their letter."""
    columns: dict[str, int] = {}
    for index in carried:
        name = header[index]
        columns[name if name.strip() and name not in columns else f"{name}[{column_letter(index)}]"] = index
    return columns


def _row_object(width: int, columns: Mapping[str, int], row: RowResult) -> dict[str, Any]:
    """Exact cells: a missing one is absent, surplus ones are listed."""
    return {
        "line": row.line,
        "sku": row.sku,
        "status": row.status.value,
        "product_id": row.product_id,
        "pattern_id": row.pattern_id,
        "error_code": row.error_code,
        "error": row.error,
        "remedy": row.remedy,
        "prompt": row.prompt,
        "category_id": row.category_id,
        "selections": dict(sorted(row.selections.items())),
        "cells": {name: row.cells[index] for name, index in columns.items() if index < len(row.cells)},
        "surplus_cells": list(row.cells[width:]),
        "pattern": _item_object(row.pattern),
        "product": _item_object(row.product),
    }


def iso_time(moment: float | datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds, as in 2026-03-01T09:30:00.250Z."""
    if moment is None:
        return None
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def json_bytes(value: object, *, indent: int | None = None) -> bytes:
    """JSON in UTF-8; text that UTF-8 cannot carry (half a surrogate pair, from an odd answer) is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent).encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode()


def _item_object(item: ItemTrace | None) -> dict[str, Any] | None:
    if item is None:
        return None
    last = item.last
    return {
        "key": item.key,
        "request_id": last.request_id if last else None,
        "job_id": last.job_id if last else None,
        "picture_url": last.picture_url if last else None,
        "attempts": [_attempt_object(attempt) for attempt in item.attempts],
    }


def _attempt_object(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "state": attempt.state.value,
        "request_id": attempt.request_id,
        "job_id": attempt.job_id,
        "result_id": attempt.result_id,
        "picture_url": attempt.picture_url,
        "error_code": attempt.error_code,
        "error": attempt.error,
        "intended_at": iso_time(attempt.intended_at),
        "accepted_at": iso_time(attempt.accepted_at),
        "ended_at": iso_time(attempt.ended_at),
    }
