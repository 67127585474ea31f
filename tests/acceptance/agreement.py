"""Whether Prefect's task runs happened when the ledger says that their items were made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from patternmill.ledger.sqlite import SqliteDatabase

#: How long before the first write of what it makes a task run may start, and how long after the last it may end.
CLOSE = 5.0
#: Of each item its stage, its content as JSON, and when its first and last event were written.
_ITEM_TIMES = """
    SELECT i.stage, i.content, i.sku, MIN(e.at), MAX(e.at) FROM events e
    JOIN attempts a ON a.request_id = e.request_id JOIN items i ON i.key = a.item_key
    GROUP BY i.key, i.stage, i.content, i.sku
"""
Span = tuple[float, float]


def item_times_in(home: Path) -> dict[str, Span]:
    """Return the first and last write of each item in the ledger of a home, by the name of its task run."""
    with closing(SqliteDatabase(home / "ledger.sqlite3")) as database, database.transaction():
        rows = database.rows(_ITEM_TIMES)
    named = {}
    for stage, content, sku, first, last in rows:
        about = json.loads(content)["prompt"] if stage == "pattern" else sku
        named[f"{stage} · {about}"] = first, last
    return named


def disagreements(task_runs: Iterable[Mapping[str, Any]], written: Mapping[str, Span]) -> list[str]:
    """Return a sentence for each item or group whose task run is missing, or was at another time than its writes."""
    shown = {run["name"]: run for run in task_runs}
    return [fault for name in written for fault in _faults(name, shown.get(name), written[name])]


def _faults(name: str, run: Mapping[str, Any] | None, written: Span) -> Iterator[str]:
    if run is None:
        yield f"{name} has no task run"
        return
    begun, ended = (datetime.fromisoformat(run[edge]).timestamp() for edge in ("start_time", "end_time"))
    first, last = written
    if not begun <= first <= begun + CLOSE:
        yield f"{name} began {first - begun:+.2f} s before its first write"
    if not last <= ended <= last + CLOSE:
        yield f"{name} ended {ended - last:+.2f} s after its last write"
