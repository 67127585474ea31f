"""The databases that a ledger can live in: SQLite beside the work, or PostgreSQL for several machines."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from patternmill.errors import ConfigurationError, LedgerAway, LedgerError
from patternmill.settings import mask_passwords

if TYPE_CHECKING:
    import psycopg

Params = Mapping[str, Any]
NONE: Params = MappingProxyType({})
SCHEMA_VERSION = 4
LEDGER_FILE = "ledger.sqlite3"
_SQLITE = {
    "blob": "BLOB",
    "real": "REAL",
    "bigint": "INTEGER",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
}
_POSTGRES = {
    "blob": "BYTEA",
    "real": "DOUBLE PRECISION",
    "bigint": "BIGINT",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
#: A process that stands still in a transaction, or whose machine is gone, would keep all others waiting for its locks.
#: PostgreSQL ends it after this, before anybody is taken over for 20 seconds of silence.
_LONGEST_PAUSE_MS = 12_000


class Database(Protocol):
    """One connection. SQL names its parameters `:name`. Whatever goes wrong is a LedgerError.

    Of the transactions that `lock` a name, one goes on at a time; the lock ends with the transaction.
    """

    #: What makes a SELECT keep others from changing what it read, until the transaction ends.
    lock_suffix: str

    def transaction(self) -> Any: ...
    def rows(self, sql: str, params: Params = NONE) -> list[tuple[Any, ...]]: ...
    def stream(self, sql: str, params: Params = NONE) -> Iterator[tuple[Any, ...]]: ...
    def run(self, sql: str, params: Params = NONE) -> int: ...
    def run_many(self, sql: str, params: Iterable[Params]) -> None: ...
    def lock(self, name: str) -> None: ...
    def check(self) -> list[str]: ...
    def close(self) -> None: ...


def open_database(url: str | None, home: Path) -> Database:
    """Open the ledger's database, and bring its tables up to this version.

    `url` None means SQLite in `home`. Raises LedgerError or ConfigurationError.
    """
    if url is None:
        return SqliteDatabase(home / LEDGER_FILE)
    if url.startswith(("postgresql://", "postgres://")):
        return PostgresDatabase(url)
    if url.startswith("sqlite:///"):
        return SqliteDatabase(Path(url.removeprefix("sqlite:///")))
    # Without any part of it: in another form, each may be a password.
    raise ConfigurationError(
        "PATTERNMILL_LEDGER_URL names an unknown kind of database.",
        remedy="Use postgresql://... or leave it unset for SQLite.",
    )


def _statements(version: int, dialect: str, spelling: Mapping[str, str]) -> list[str]:
    """What brings tables of `version` up to this one; 0: there are none. A step may have a file for one dialect."""
    here = Path(__file__).parent
    steps = [
        file
        for step in range(version + 1, SCHEMA_VERSION + 1)
        for file in (here / "migrations" / f"{step}.sql", here / "migrations" / f"{step}.{dialect}.sql")
        if file.exists()
    ]
    files = steps if version else [here / "schema.sql"]
    text = re.sub(r"--.*", "", "\n".join(file.read_text(encoding="utf-8") for file in files))
    for word, spelled in spelling.items():
        text = text.replace("{" + word + "}", spelled)
    return [statement for statement in text.split(";") if statement.strip()]


class SqliteDatabase:
    """SQLite in WAL with `synchronous=FULL`: a committed change survives the power cord."""

    lock_suffix = ""  # a transaction is the only one that writes

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=30, isolation_level=None, check_same_thread=False
            )
        except (sqlite3.Error, OSError) as error:
            raise self._unopened(error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise self._unopened(error) from error
        except BaseException:
            self._connection.close()
            raise

    def _unopened(self, error: Exception) -> LedgerError:
        return LedgerError(
            f"The ledger {mask_passwords(str(self.path))} cannot be opened: {mask_passwords(str(error))}.",
            remedy="See that its folder can be written to and that the file is whole "
            "(`patternmill ledger check`); nothing was spent.",
        )

    def _prepare(self) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        with self.transaction():
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                raise _newer(version)
            if version < SCHEMA_VERSION:
                for statement in _statements(version, "sqlite", _SQLITE):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. IMMEDIATE: a transaction that reads first and writes later would fail when another writes."""
        with self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, sql: str, params: Params = NONE) -> list[tuple[Any, ...]]:
        with self._told():
            return self._connection.execute(sql, params or {}).fetchall()

    def stream(self, sql: str, params: Params = NONE) -> Iterator[tuple[Any, ...]]:
        with self._told():
            yield from self._connection.execute(sql, params or {})

    def run(self, sql: str, params: Params = NONE) -> int:
        with self._told():
            return self._connection.execute(sql, params or {}).rowcount

    def run_many(self, sql: str, params: Iterable[Params]) -> None:
        with self._told():
            self._connection.executemany(sql, params)

    def lock(self, name: str) -> None:
        """Nothing to do: a transaction is the only one that writes."""

    def check(self) -> list[str]:
        """What the database finds wrong with itself; empty when nothing."""
        found = [text for (text,) in self.rows("PRAGMA integrity_check")]
        return [text for text in found if text != "ok"]

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _unusable(mask_passwords(str(self.path)), mask_passwords(str(error))) from error

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase:
    """PostgreSQL, for a ledger shared by several machines. Its connection is made anew after it was lost."""

    lock_suffix = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        self._url = url
        self._inside = False
        self._connection = self._connect()
        try:
            with self.transaction():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
            connection.execute(f"SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE_MS}")
            return connection
        except psycopg.Error as error:
            # The message of a failed connection may quote the address, and with it a password.
            raise LedgerAway(
                f"The ledger's PostgreSQL cannot be reached ({type(error).__name__}).",
                remedy="See that PATTERNMILL_LEDGER_URL is right and the server is up.",
            ) from None

    def _prepare(self) -> None:
        self.run("SELECT pg_advisory_xact_lock(7310841)")
        self.run("CREATE TABLE IF NOT EXISTS ledger_version (version INTEGER NOT NULL)")
        version = self.rows("SELECT max(version) FROM ledger_version")[0][0]
        if version is not None and version > SCHEMA_VERSION:
            raise _newer(version)
        if version != SCHEMA_VERSION:
            for statement in _statements(version or 0, "postgres", _POSTGRES):
                self.run(statement)
            self.run("INSERT INTO ledger_version VALUES (:version)", {"version": SCHEMA_VERSION})

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a lost connection is an error here, and made anew for the next one."""
        import psycopg

        with self._told(), self._live().transaction():
            self._inside = True
            try:
                yield
            finally:
                self._inside = False
            if self._connection.closed:
                # psycopg ends the transaction of a lost connection without a word.
                raise psycopg.OperationalError("the connection was lost")

    def rows(self, sql: str, params: Params = NONE) -> list[tuple[Any, ...]]:
        with self._told():
            return self._live().execute(_percent(sql), params).fetchall()

    def stream(self, sql: str, params: Params = NONE) -> Iterator[tuple[Any, ...]]:
        with self._told(), self._live().transaction(), self._connection.cursor("stream") as cursor:
            # Whoever reads may take his time, and keeps nobody waiting.
            self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.itersize = 1000
            cursor.execute(_percent(sql), params)
            yield from cursor

    def run(self, sql: str, params: Params = NONE) -> int:
        with self._told():
            return self._live().execute(_percent(sql), params).rowcount

    def run_many(self, sql: str, params: Iterable[Params]) -> None:
        with self._told(), self._live().cursor() as cursor:
            cursor.executemany(_percent(sql), list(params))
            # After psycopg's pipeline the server's watch over idle transactions is off, until the next statement.
            cursor.execute("SELECT 1")

    def lock(self, name: str) -> None:
        """Wait until no other transaction has this name locked, then lock it until this one ends."""
        self.run("SELECT pg_advisory_xact_lock(hashtextextended(:name, 7310841))", {"name": name})

    def _live(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, made anew where it was lost; never within a transaction, half of which would be missing."""
        if self._connection.closed and not self._inside:
            self._connection = self._connect()
        return self._connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            lost = self._connection.closed
            if self._connection.broken:
                self._connection.close()
            told = _unusable("in PostgreSQL", mask_passwords(str(error), self._url))
            raise (LedgerAway(told.message, remedy=told.remedy) if lost else told) from error

    def check(self) -> list[str]:
        """PostgreSQL checks its own pages; what can be asked here is whether it answers."""
        self.rows("SELECT 1")
        return []

    def close(self) -> None:
        self._connection.close()


def _percent(sql: str) -> Any:
    return re.sub(r"(?<!:):([a-z_][a-z0-9_]*)", r"%(\1)s", sql)


def _newer(version: int) -> LedgerError:
    return LedgerError(
        f"The ledger is of version {version}, this program knows version {SCHEMA_VERSION}.",
        remedy="Use the newer program; nothing was changed.",
    )


def _unusable(where: str, error: str) -> LedgerError:
    return LedgerError(
        f"The ledger {where} cannot be used: {error}.",
        remedy="Nothing that it acknowledged is lost. Mend the disk or the database, then run the same command again.",
    )
