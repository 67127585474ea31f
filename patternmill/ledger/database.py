"""The port to a ledger's database, and what every class that writes tables has: the clock and the record of events."""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from patternmill.errors import ConfigurationError, LedgerError
from patternmill.identifiers import RequestId, RunId
from patternmill.processes import uptime

Params = Mapping[str, Any]
NO_PARAMS: Params = {}
LEDGER_FILE = "ledger.sqlite3"
_SCHEMA = (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")
#: Of the statements alone: a comment changes no table.
SCHEMA_DIGEST = hashlib.sha256(" ".join(re.sub("--.*", "", _SCHEMA).split()).encode()).hexdigest()
_MEASURE_EVERY = 30.0
#: A measurement that took longer is too inexact.
_LONGEST_ROUND = 1.0
_DIGEST = "SELECT raw FROM documents WHERE name = 'schema'"


class Database(Protocol):
    """One connection. SQL names its parameters `:name`. Every fault is a LedgerError.

    Transactions that `lock` the same name run one at a time; the lock ends with the transaction. `clock` is the
    database's own, in Unix seconds; None: it has none but its machine's. `has_tables` is False of an empty one, and
    raises ConfigurationError for one with other tables. `require_in_place` raises LedgerError where its place has
    another one by now, or none.
    """

    #: What makes a SELECT keep others from changing what it read, until the transaction ends.
    lock_suffix: str
    #: For messages.
    name: str

    def transaction(self) -> AbstractContextManager[None]: ...
    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]: ...
    def stream(self, sql: str, params: Params = NO_PARAMS) -> Iterator[tuple[Any, ...]]: ...
    def execute(self, sql: str, params: Params = NO_PARAMS) -> int: ...
    def execute_many(self, sql: str, params: Iterable[Params]) -> None: ...
    def lock(self, name: str) -> None: ...
    def clock(self) -> Callable[[], float] | None: ...
    def has_tables(self) -> bool: ...
    def require_in_place(self) -> None: ...
    def close(self) -> None: ...


def make_tables(database: Database, serial: str) -> None:
    """Of several processes that open a new ledger at once, one makes the tables. They are found without a lock, which
    another process may keep.

    `serial` is the type of a number that counts up.
    """
    if database.has_tables():
        return
    script = re.sub("--.*", "", _SCHEMA).replace("{serial}", serial)
    with database.transaction():
        database.lock("schema")
        if not database.has_tables():
            for statement in filter(None, map(str.strip, script.split(";"))):
                database.execute(statement)
            database.execute("INSERT INTO identity (id) VALUES (:id)", {"id": secrets.token_hex(8)})
            schema = {"name": "schema", "raw": SCHEMA_DIGEST.encode()}
            database.execute("INSERT INTO documents (name, raw) VALUES (:name, :raw)", schema)


def has_schema(tables: Iterable[str], rows: Callable[[str], list[tuple[Any, ...]]], where: str) -> bool:
    """Whether the tables of this program are there; False: none of a ledger are.

    `tables` are the names of some; `rows` reads them. `where` the ledger is, for people. Raises ConfigurationError for
    other tables.
    """
    present = frozenset(tables)
    if not present & {"documents", "attempts"}:
        return False
    if "documents" not in present or rows(_DIGEST) != [(SCHEMA_DIGEST.encode(),)]:
        raise ConfigurationError(
            f"The ledger in {where} was made by another version of patternmill: its tables are not those of this one.",
            code="ledger_schema",
            remedy="It was not changed, and nothing was bought. It knows what was paid for: use it with the version "
            "that made it.",
        )
    return True


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
    """Unix seconds, never less than the last time: a clock that is set back makes nothing younger."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._latest = 0.0

    def __call__(self) -> float:
        self._latest = max(self._latest, self._clock())
        return self._latest


class ServerClock:
    """A database server's Unix seconds, kept between measurements by a local clock that cannot be set.

    To be measured once before it is read.
    """

    def __init__(self, local: Callable[[], float] = uptime) -> None:
        self._local = local
        self._offset = 0.0
        self._measured: float | None = None

    def __call__(self) -> float:
        return self._local() + self._offset

    def is_due(self) -> bool:
        return self._measured is None or self._local() - self._measured >= _MEASURE_EVERY

    def measure(self, ask: Callable[[], float]) -> None:
        """`ask` asks the server for its time; the answer is taken to be of the middle of the round."""
        sent = self._local()
        answered = float(ask())
        took = self._local() - sent
        if self._measured is None or took <= _LONGEST_ROUND:
            self._offset = answered - (sent + took / 2)
        self._measured = self._local()


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
        """Add to the record of events, which is never changed; False for a decision whose ID it has."""
        added = self.database.execute(
            "INSERT INTO events (at, run_id, request_id, kind, detail, decision) "
            "VALUES (:at, :run_id, :request_id, :kind, :detail, :decision) ON CONFLICT DO NOTHING",
            {"at": at or self.now(), "run_id": run_id, "request_id": request_id, "kind": kind}
            | {"detail": detail, "decision": decision},
        )
        return added == 1

    def keep_document(self, name: str, raw: bytes, *, anew: bool = False) -> None:
        """Keep bytes under a name; those that are kept already stay, unless `anew`."""
        self.database.execute(
            "INSERT INTO documents (name, raw) VALUES (:name, :raw) "
            "ON CONFLICT (name) DO UPDATE SET raw = excluded.raw WHERE :anew",
            {"name": name, "raw": zlib.compress(raw, 6), "anew": anew},
        )

    def document(self, name: str) -> bytes | None:
        found = self._row("SELECT raw FROM documents WHERE name = :name", name=name)
        return zlib.decompress(found[0]) if found is not None else None

    def _insert(self, table: str, **values: Any) -> None:
        places = ", ".join(f":{name}" for name in values)
        self.database.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})",  # noqa: S608
            values,
        )

    def _update(self, table: str, key: Mapping[str, Any], **values: Any) -> None:
        """Change the record with this key, its columns by name."""
        changes = ", ".join(f"{name} = :{name}" for name in values)
        where = " AND ".join(f"{name} = :{name}" for name in key)
        self.database.execute(f"UPDATE {table} SET {changes} WHERE {where}", {**values, **key})  # noqa: S608

    def _row(self, sql: str, **params: Any) -> tuple[Any, ...] | None:
        return next(iter(self.database.rows(sql, params)), None)
