"""What the two kinds of databases have in common, and what every class that writes tables has."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from patternmill.errors import LedgerError
from patternmill.identifiers import RequestId, RunId

Params = Mapping[str, Any]
NO_PARAMS: Params = {}
LEDGER_FILE = "ledger.sqlite3"


class Database:
    """One connection. SQL names its parameters `:name`. Every fault is a LedgerError."""

    #: What makes a SELECT keep others from changing what it read until the transaction ends; and the same, where
    #: others may do so too. Empty where a transaction is the only one that writes.
    lock_suffix = share_suffix = ""
    #: The type of a number that counts up.
    serial: str
    #: Queries for the names of all tables, and for the size in bytes.
    table_names: str
    size_query: str
    #: For messages: what it is, and where.
    name: str
    place: str
    #: The driver's.
    _connection: Any = None

    def transaction(self) -> AbstractContextManager[None]:
        """Do all or nothing."""
        raise NotImplementedError

    def _using(self) -> AbstractContextManager[Any]:
        """Yield the driver's connection, whose errors become LedgerErrors."""
        raise NotImplementedError

    def _sql(self, sql: str) -> Any:
        """Return a statement as the driver takes it."""
        return sql

    def rows(self, sql: str, params: Params = NO_PARAMS, /, **more: Any) -> list[tuple[Any, ...]]:
        with self._using() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(self._sql(sql), {**params, **more}).fetchall()
        return rows

    def execute(self, sql: str, params: Params = NO_PARAMS, /, **more: Any) -> int:
        """Return how many rows were changed."""
        with self._using() as connection:
            count: int = connection.execute(self._sql(sql), {**params, **more}).rowcount
        return count

    def stream(self, sql: str, **params: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are asked for."""
        raise NotImplementedError

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        raise NotImplementedError

    def lock(self, name: str) -> None:
        """Wait until no other transaction has locked this name, and lock it until this one ends."""

    def time(self) -> float:
        """Return Unix seconds, by the database's own clock if it has one."""
        return time.time()

    def back_up(self, schema: int) -> None:
        """Copy it as it is before a migration, or raise ConfigurationError where a person has to."""
        raise NotImplementedError

    def require_in_place(self) -> None:
        """Raise LedgerError if its path now leads to another file, or to none."""

    def tidy(self) -> None:
        """Remove what was overwritten from the files beside the database, if nobody reads them."""

    def size(self) -> int:
        """Return how many bytes it has."""
        return int(self.rows(self.size_query)[0][0])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def unusable(where: str, error: str) -> LedgerError:
    return LedgerError(
        f"The ledger {where} cannot be used: {error}.",
        remedy="Nothing that it acknowledged is lost. Mend the disk or the database, then run the same command again.",
    )


def not_in_place(where: str) -> LedgerError:
    return LedgerError(
        f"The ledger {where} was removed, replaced or moved while it was in use: nothing more is bought.",
        code="ledger_replaced",
        remedy="Put it back where it was, with its files -wal and -shm, then run the same command again.",
    )


class Clock:
    """Unix seconds that never decrease: a clock that is set back makes nothing younger."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._latest = 0.0

    def __call__(self) -> float:
        self._latest = max(self._latest, self._clock())
        return self._latest


class Tables:
    """Some of the tables of one connection, with the record of events; called inside a ledger's transactions."""

    def __init__(self, database: Database, now: Clock) -> None:
        self.database = database
        self.now = now

    def record_event(
        self,
        run_id: RunId,
        kind: str,
        request_id: RequestId | None = None,
        *,
        detail: str | None = None,
        at: float | None = None,
        decision: str | None = None,
    ) -> bool:
        """Add to the record of events, which is never changed; return False for a decision that it has already."""
        added = self.database.execute(
            "INSERT INTO events (at, run_id, request_id, kind, detail, decision) "
            "VALUES (:at, :run_id, :request_id, :kind, :detail, :decision) ON CONFLICT DO NOTHING",
            at=at or self.now(),
            run_id=run_id,
            request_id=request_id,
            kind=kind,
            detail=detail,
            decision=decision,
        )
        return added == 1

    def keep_document(self, name: str, raw: bytes, *, anew: bool = False) -> None:
        """Keep bytes under a name; what is there already stays, unless `anew`."""
        self.database.execute(
            "INSERT INTO documents (name, raw) VALUES (:name, :raw) "
            "ON CONFLICT (name) DO UPDATE SET raw = excluded.raw WHERE :anew",
            name=name,
            raw=zlib.compress(raw, 6),
            anew=anew,
        )

    def document(self, name: str) -> bytes | None:
        row = self._row("SELECT raw FROM documents WHERE name = :name", name=name)
        return zlib.decompress(row[0]) if row is not None else None

    def _insert(self, table: str, **values: Any) -> None:
        names, places = ", ".join(values), ":" + ", :".join(values)
        self.database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", values)

    def _update(self, table: str, key: Mapping[str, Any], **values: Any) -> None:
        """Change the record with this key, its columns by name."""
        changes = ", ".join(map("{0} = :{0}".format, values))
        where = " AND ".join(map("{0} = :{0}".format, key))
        self.database.execute(f"UPDATE {table} SET {changes} WHERE {where}", {**values, **key})

    def _row(self, sql: str, params: Params = NO_PARAMS, /, **more: Any) -> tuple[Any, ...] | None:
        return next(iter(self.database.rows(sql, params, **more)), None)
