"""Requests and their answers as the inspector keeps them, in a file of their own: restoring a studio leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from studio.store.database import Database, Row, instant, row_of
from studio.store.job_table import LAST

SCHEMA = """CREATE TABLE exchange (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    at           REAL NOT NULL,
    method       TEXT NOT NULL,
    operation    TEXT NOT NULL,
    account      TEXT NOT NULL,           -- empty without a valid key
    key_name     TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    status       INTEGER NOT NULL,        -- 0: no answer
    seconds      REAL NOT NULL,
    fault        TEXT NOT NULL,
    request      TEXT NOT NULL,           -- bodies: the beginning of them, redacted
    answer       TEXT NOT NULL,
    request_size INTEGER NOT NULL,
    answer_size  INTEGER NOT NULL
) STRICT;
"""
SUMMARY = "seq, at, method, operation, account, key_name, request_id, status, seconds, fault"
BODIES = "request, answer, request_size, answer_size"
COLUMNS = f"{SUMMARY}, {BODIES}"


@dataclass(frozen=True)
class KeptExchange:
    """One request and its answer. `request` and `answer` are what was kept of the bodies; sizes are in bytes."""

    seq: int
    at: datetime
    method: str
    operation: str
    account: str
    key_name: str
    request_id: str
    status: int
    seconds: float
    fault: str
    request: str = ""
    answer: str = ""
    request_size: int = 0
    answer_size: int = 0


@dataclass(frozen=True)
class Filter:
    """Which exchanges. `accounts`: of any of them; an empty text stands for every value."""

    accounts: tuple[str, ...]
    operation: str = ""
    request_id: str = ""
    #: `2`, `4`, `5`: the first digit of the status; `0`: no answer.
    status: str = ""
    only_faults: bool = False

    def condition(self) -> tuple[str, Row]:
        """As SQL with its values."""
        marks = ", ".join("?" * len(self.accounts))
        parts: list[tuple[str, Row]] = [(f"account IN ({marks})", self.accounts)]
        if self.operation:
            parts.append(("operation = ?", (self.operation,)))
        if self.request_id:
            parts.append(("request_id = ?", (self.request_id,)))
        if self.status:
            parts.append(("status / 100 = ?", (int(self.status),)))
        if self.only_faults:
            parts.append(("fault <> ''", ()))
        return " AND ".join(text for text, _ in parts), tuple(one for _, row in parts for one in row)


class ExchangeTable:
    """Reads and writes of the table `exchange`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, exchanges: Sequence[KeptExchange], kept: int) -> None:
        """Keep these, and of all the newest `kept`; call it in a transaction."""
        for one in exchanges:
            self._database.insert("exchange", COLUMNS, (None, *row_of(one)[1:]))
        self._database.execute(
            "DELETE FROM exchange WHERE seq <= (SELECT max(seq) FROM exchange) - ?", (kept,)
        )

    def page(self, which: Filter, before: int | None, limit: int) -> list[KeptExchange]:
        """The newest older than `before`, without their bodies."""
        condition, values = which.condition()
        rows = self._database.all(
            f"SELECT {SUMMARY} FROM exchange WHERE {condition} AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
            (*values, LAST if before is None else before, limit),
        )
        return [_exchange(row) for row in rows]

    def get(self, which: Filter, seq: int) -> KeptExchange | None:
        condition, values = which.condition()
        query = f"SELECT {COLUMNS} FROM exchange WHERE {condition} AND seq = ?"  # noqa: S608
        row = self._database.one(query, (*values, seq))
        return None if row is None else _exchange(row)


def _exchange(row: Row) -> KeptExchange:
    """With its bodies, where the row has them."""
    seq, at, *rest = row
    return KeptExchange(seq, instant(at), *rest)
