"""The base of both kinds of databases, with their schema, and the base of every class that writes tables.

Numbered migrations make the tables of a new ledger, and bring an older one up to this version.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any

from patternmill.errors import ConfigurationError, LedgerError
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.records import HELD_LEASES, TAKEOVER_AFTER, Lease, is_free

logger = logging.getLogger(__name__)

Params = Mapping[str, Any]
NO_PARAMS: Params = {}
LEDGER_FILE = "ledger.sqlite3"
#: The migrations in order. The number of a schema is how many of them were applied to it.
MIGRATIONS = [
    file.read_text(encoding="utf-8") for file in sorted((Path(__file__).parent / "migrations").glob("*.sql"))
]
#: The tables that identify a ledger of the first edition.
_FORMER_TABLES = frozenset({"documents", "attempts"})
_WATCHED_EVERY = 0.5


class Database(ABC):
    """One connection. SQL names its parameters `:name`. Every fault is a LedgerError."""

    #: The ends of a SELECT that keep others from changing what it read until the transaction ends; the second lets
    #: others hold the same lock. Both are empty where only one transaction writes at a time.
    lock_suffix = share_suffix = ""
    #: The type of a number that counts up.
    serial: str
    #: Queries for the names of all tables, and for the size in bytes.
    table_names: str
    size_query: str
    #: What the database is, and where it is, for messages.
    name: str
    place: str
    #: The driver's connection.
    _connection: Any = None

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Do all or nothing."""

    @abstractmethod
    def _using(self) -> AbstractContextManager[Any]:
        """Yield the driver's connection, whose errors become LedgerErrors."""

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

    @abstractmethod
    def stream(self, sql: str, **params: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are asked for."""

    @abstractmethod
    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        """Execute a statement once for each of these parameters."""

    @abstractmethod
    def lock(self, name: str) -> None:
        """Wait until no other transaction has locked this name, and lock it until this one ends."""

    def time(self) -> float:
        """Return Unix seconds, by the database's own clock if it has one."""
        return time.time()

    @abstractmethod
    def back_up(self, schema: int) -> None:
        """Copy the database before a migration, or raise ConfigurationError where a person has to do that."""

    @abstractmethod
    def require_in_place(self) -> None:
        """Raise LedgerError if its path now leads to another file, or to none."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove overwritten data from the files beside the database, if nobody is reading them."""

    def size(self) -> int:
        """Return the size of the database in bytes."""
        return int(self.rows(self.size_query)[0][0])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def schema_of(database: Database) -> int | None:
    """Return the number of a ledger's schema; None where there is no ledger.

    Raises ConfigurationError for a schema that this version does not know.
    """
    tables = set(chain.from_iterable(database.rows(database.table_names)))
    recorded = database.rows("SELECT schema FROM ledger") if "ledger" in tables else []
    if not recorded and _FORMER_TABLES.isdisjoint(tables):
        return None
    if not recorded:
        raise ConfigurationError(
            f"The ledger in {database.place} was made by the first edition of patternmill, whose products have "
            "other IDs.",
            code="ledger_schema",
            remedy="Nothing was changed or bought. Finish its open work with the version that made it.",
        )
    number = int(recorded[0][0])
    if number > len(MIGRATIONS):
        raise ConfigurationError(
            f"The ledger in {database.place} is of a newer version of patternmill: it has schema {number}, and this "
            f"version knows none above {len(MIGRATIONS)}.",
            code="ledger_schema",
            remedy="Update patternmill here. Nothing was changed or bought.",
        )
    return number


def bring_up_to_date(database: Database, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Make the tables of a new ledger, or apply the migrations that an older one lacks, in one transaction.

    An older ledger is copied first. Raises ConfigurationError, and changes nothing, while a run drives a catalog, and
    where a person has to make the copy. Requests no lock if nothing is to be done, as another process may hold it.
    """
    number = schema_of(database)
    if number == len(MIGRATIONS):
        return
    silent = _watch_leases(database, sleep) if number is not None else []
    with database.transaction():
        database.lock("schema")
        number = schema_of(database)
        if number is None:
            _apply(database, 0)
            sql = "INSERT INTO ledger (id, schema) VALUES (:id, :schema)"
            database.execute(sql, id=secrets.token_hex(8), schema=len(MIGRATIONS))
        elif number < len(MIGRATIONS):
            # Every writer reads this row under a lock, so no write that has read the old number is still under way.
            database.execute("UPDATE ledger SET schema = :schema", schema=len(MIGRATIONS))
            for lease in _living_leases(database):
                if lease not in silent:
                    raise ConfigurationError(
                        f"The ledger in {database.place} is of an older version of patternmill, and run "
                        f"{lease.run_id} of {lease.catalog!r} goes on: it is brought up to this version only while "
                        "nothing runs.",
                        code="ledger_schema",
                        remedy="Wait until that run has ended, or stop it, then run the same command again. Nothing "
                        "was changed.",
                    )
            database.back_up(number)
            _apply(database, number)
            logger.warning("The ledger in %s was brought up to schema %d.", database.place, len(MIGRATIONS))


def _apply(database: Database, number: int) -> None:
    for script in MIGRATIONS[number:]:
        script = re.sub("--.*", "", script).replace("{serial}", database.serial)
        for statement in filter(None, map(str.strip, script.split(";"))):
            database.execute(statement)


def _watch_leases(database: Database, sleep: Callable[[float], None]) -> list[Lease]:
    """Watch the held leases for as long as a takeover waits; return those that gave no sign, none once one has."""
    silent, watched = _living_leases(database), 0.0
    while silent and watched < TAKEOVER_AFTER.total_seconds():
        sleep(_WATCHED_EVERY)
        watched += _WATCHED_EVERY
        living = _living_leases(database)
        if any(lease not in silent for lease in living):
            return []
        silent = living
    return silent


def _living_leases(database: Database) -> list[Lease]:
    leases = (Lease(*row) for row in database.rows(HELD_LEASES))
    return [lease for lease in leases if not is_free(lease)]


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
    """The base of classes for some of a ledger's tables, with the record of events; used inside its transactions."""

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
        """Add an event to the record, which is never changed; return False for a decision that is there already."""
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
        """Keep bytes under a name; with `anew`, they replace what is there already."""
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
        """Set columns, by name, of the record with this key."""
        changes = ", ".join(map("{0} = :{0}".format, values))
        where = " AND ".join(map("{0} = :{0}".format, key))
        self.database.execute(f"UPDATE {table} SET {changes} WHERE {where}", {**values, **key})

    def _row(self, sql: str, params: Params = NO_PARAMS, /, **more: Any) -> tuple[Any, ...] | None:
        return next(iter(self.database.rows(sql, params, **more)), None)
