"""What the books of a ledger have in common: one database, one clock, one record of what happened."""

from __future__ import annotations

import time
from collections.abc import Callable

from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.database import Database


class Book:
    """A part of the ledger. Its operations are to be called inside a transaction of the ledger."""

    def __init__(self, database: Database, *, clock: Callable[[], float] | None = None) -> None:
        """`clock` in place of the database's own, or where it has none of this machine's."""
        self.database = database
        self._clock = clock or database.clock() or time.time
        self._latest = 0.0

    def now(self) -> float:
        """The time, never earlier than the last one given: a clock set back makes nothing younger."""
        self._latest = max(self._latest, self._clock())
        return self._latest

    def note(
        self,
        run_id: RunId,
        kind: str,
        request_id: RequestId | None = None,
        *,
        detail: str | None = None,
        at: float | None = None,
    ) -> None:
        """Add to the record of what happened, which is never changed."""
        self.database.execute(
            "INSERT INTO events (at, run_id, request_id, kind, detail) "
            "VALUES (:at, :run_id, :request_id, :kind, :detail)",
            {
                "at": at or self.now(),
                "run_id": run_id,
                "request_id": request_id,
                "kind": kind,
                "detail": detail,
            },
        )
