"""How often each fault of the plan met a call that it fits, and how often it fired."""

from __future__ import annotations

from studio.store.database import Database

ADD_CALL = (
    "INSERT INTO fault_count (fault, calls) VALUES (?, 1)"
    " ON CONFLICT (fault) DO UPDATE SET calls = calls + 1 RETURNING calls"
)


class FaultTable:
    """Reads and writes of the table `fault_count`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_call(self, fault: str) -> int:
        """Count a call; which one it is, from 1."""
        row = self._database.one(ADD_CALL, (fault,))
        assert row is not None
        return int(row[0])

    def add_firing(self, fault: str) -> None:
        self._database.execute("UPDATE fault_count SET fired = fired + 1 WHERE fault = ?", (fault,))

    def totals(self) -> dict[str, tuple[int, int]]:
        """By fault: calls and firings."""
        rows = self._database.all("SELECT fault, calls, fired FROM fault_count")
        return {fault: (calls, fired) for fault, calls, fired in rows}

    def clear(self) -> None:
        self._database.execute("DELETE FROM fault_count")
