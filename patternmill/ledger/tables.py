"""What all tables of a ledger have in common: one database, one clock, one record of events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.database import Database


class Tables:
    """The operations on some of the tables, a part of `Ledger`; called inside its transactions."""

    def __init__(self, database: Database, *, clock: Callable[[], float] | None = None) -> None:
        """`clock` in place of the database's own, or where it has none of this machine's."""
        self.database = database
        self._clock = clock or database.clock() or time.time
        self._latest = 0.0

    def now(self) -> float:
        """Unix seconds, never less than the last time: a clock that is set back makes nothing younger."""
        self._latest = max(self._latest, self._clock())
        return self._latest

    def record_event(
        self,
        run_id: RunId,
        kind: str,
        request_id: RequestId | None = None,
        *,
        detail: str | None = None,
        at: float | None = None,
    ) -> None:
        """Add to the record of events, which is never changed."""
        self._insert(
            "events", at=at or self.now(), run_id=run_id, request_id=request_id, kind=kind, detail=detail
        )

    def _insert(self, table: str, **values: Any) -> None:
        places = ", ".join(f":{name}" for name in values)
        self.database.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})",  # noqa: S608
            values,
        )

    def _update(self, table: str, key: Mapping[str, Any], **values: Any) -> None:
        """Change the record with this key, its columns by name."""
        changes, where = (
            ", ".join(f"{name} = :{name}" for name in values),
            " AND ".join(f"{name} = :{name}" for name in key),
        )
        self.database.execute(f"UPDATE {table} SET {changes} WHERE {where}", {**values, **key})  # noqa: S608

    def _row(self, sql: str, **params: Any) -> tuple[Any, ...] | None:
        return next(iter(self.database.rows(sql, params)), None)
