"""The databases that a ledger can live in: SQLite beside the work, or PostgreSQL for several machines."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from patternmill.errors import ConfigurationError, LedgerError, LedgerUnavailable
from patternmill.ledger.processes import is_stopped, machine, write_locker
from patternmill.ledger.server_clock import ServerClock, Watchdog
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
#: Seconds in which PostgreSQL has to answer a statement, hand out the next rows, or take a connection.
_ANSWER_WITHIN = 20.0
_CONNECT_WITHIN = 10
#: The same while its tables are brought up to this version.
_MIGRATE_WITHIN = 600.0
#: What finds a server or a network that has fallen silent, where the address does not say otherwise.
_KEEPALIVES = {
    "connect_timeout": _CONNECT_WITHIN,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(_ANSWER_WITHIN * 1000),
}
_BATCH = 1000
#: The bytes of SQLite's `-shm` file that stand for writing and for recovery: https://sqlite.org/walformat.html
_WRITE_LOCKS = (120, 122)


class Database(Protocol):
    """One connection. SQL names its parameters `:name`. Whatever goes wrong is a LedgerError.

    Of the transactions that `lock` a name, one goes on at a time; the lock ends with the transaction. `clock` is the
    database's own, in Unix seconds; None: it has none but its machine's. `locked_by` is the PID of the process of this
    machine that keeps all others from writing, as far as that can be seen.
    """

    #: What makes a SELECT keep others from changing what it read, until the transaction ends.
    lock_suffix: str
    #: What a person calls it.
    name: str

    def transaction(self) -> Any: ...
    def rows(self, sql: str, params: Params = NONE) -> list[tuple[Any, ...]]: ...
    def stream(self, sql: str, params: Params = NONE) -> Iterator[tuple[Any, ...]]: ...
    def run(self, sql: str, params: Params = NONE) -> int: ...
    def run_many(self, sql: str, params: Iterable[Params]) -> None: ...
    def lock(self, name: str) -> None: ...
    def check(self) -> list[str]: ...
    def clock(self) -> Callable[[], float] | None: ...
    def locked_by(self) -> int | None: ...
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
        self.name = f"SQLite file {path}"
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_new = not path.exists()
            self._connection = sqlite3.connect(
                path, timeout=30, isolation_level=None, check_same_thread=False
            )
            if is_new:
                # For its owner alone, and empty as yet; what SQLite lays beside it takes its mode from it.
                path.chmod(0o600)
        except (sqlite3.Error, OSError) as error:
            raise self._unopened(error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            refused = self._locked() if _is_busy(error) else self._unopened(error)
            self._connection.close()
            raise refused from error
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
        """A ledger of this version is opened without the lock to write, which another process may keep."""
        for pragma in ("busy_timeout=30000", "synchronous=FULL", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        if self._pragma("journal_mode") != "wal":
            self._connection.execute("PRAGMA journal_mode=WAL")
        if self._version() < SCHEMA_VERSION:
            with self.transaction():
                self._migrate(self._version())

    def _version(self) -> int:
        version = int(self._pragma("user_version"))
        if version > SCHEMA_VERSION:
            raise _newer(version)
        return version

    def _migrate(self, version: int) -> None:
        if version < SCHEMA_VERSION:
            for statement in _statements(version, "sqlite", _SQLITE):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

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

    def clock(self) -> None:
        """It has none of its own."""

    def locked_by(self) -> int | None:
        return write_locker(Path(f"{self.path}-shm"), _WRITE_LOCKS)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise (
                self._locked()
                if _is_busy(error)
                else _unusable(mask_passwords(str(self.path)), mask_passwords(str(error)))
            ) from error

    def _locked(self) -> LedgerUnavailable:
        """Who keeps this process from writing, as far as that can be seen, and what to do about it."""
        pid, path = self.locked_by(), mask_passwords(str(self.path))
        if pid is None or pid == os.getpid():
            return LedgerUnavailable(
                f"The ledger {path} is locked by another program, which cannot be seen from here.",
                remedy=f"Nothing is lost. See who has it open (`fuser {path}`), then run the same command again.",
            )
        stopped = is_stopped(pid)
        remedy = (
            f"let it go on (`kill -CONT {pid}`) or end it (`kill -KILL {pid}`)"
            if stopped
            else f"wait for it, or end it (`kill {pid}`)"
        )
        return LedgerUnavailable(
            f"The ledger {path} is locked by process {pid}{self._runs_of(pid)}"
            f"{', which is stopped' if stopped else ''}.",
            remedy=f"Nothing is lost: {remedy}, then run the same command again.",
        )

    def _runs_of(self, pid: int) -> str:
        """The runs that a process of this machine drives, in words."""
        found = []
        with suppress(sqlite3.Error):
            for run_id, catalog, holder in self._connection.execute(
                "SELECT run_id, catalog, holder FROM leases WHERE holder <> '' ORDER BY catalog"
            ):
                its = json.loads(holder)
                if (its.get("pid"), its.get("machine")) == (pid, machine()):
                    found.append(f"run {run_id} of {catalog!r}")
        return f" ({', '.join(found)})" if found else ""

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase:
    """PostgreSQL, for a ledger shared by several machines. Its connection is made anew after it was lost.

    Every wait for it ends: whoever waited in vain for an answer finds the connection lost.
    """

    lock_suffix = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = "PostgreSQL"
        self._inside = False
        self._answer_within = _ANSWER_WITHIN
        self._clock = ServerClock()
        self._connection, self._watchdog = self._connect()
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> tuple[psycopg.Connection[tuple[Any, ...]], Watchdog]:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        try:
            address = conninfo_to_dict(self._url)
            self.name = _server_name(address)
            missing = {name: value for name, value in _KEEPALIVES.items() if name not in address}
            connection = psycopg.connect(make_conninfo(self._url, **missing), autocommit=True)
        except psycopg.Error as error:
            # The message of a failed connection may quote the address, and with it a password.
            raise self._away(f"cannot be reached ({type(error).__name__})") from None
        watchdog = Watchdog(connection)
        try:
            with watchdog.awaiting(_CONNECT_WITHIN):
                connection.execute(f"SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE_MS}")
                self._measure(connection)
        except psycopg.Error as error:
            watchdog.end()
            connection.close()
            raise self._away(f"cannot be reached ({type(error).__name__})") from None
        return connection, watchdog

    def _measure(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._clock.measure(
            lambda: connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchall()[0][0]
        )

    def _prepare(self) -> None:
        """Tables of this version are found without a lock, which another process may keep."""
        if self._version() == SCHEMA_VERSION:
            return
        self._answer_within = _MIGRATE_WITHIN
        with self.transaction():
            self.run("SELECT pg_advisory_xact_lock(7310841)")
            self.run("CREATE TABLE IF NOT EXISTS ledger_version (version INTEGER NOT NULL)")
            version = self._version()
            if version != SCHEMA_VERSION:
                for statement in _statements(version, "postgres", _POSTGRES):
                    self.run(statement)
                self.run("INSERT INTO ledger_version VALUES (:version)", {"version": SCHEMA_VERSION})
        self._answer_within = _ANSWER_WITHIN

    def _version(self) -> int:
        """The version of the tables; 0: there are none."""
        if self.rows("SELECT to_regclass('ledger_version')")[0][0] is None:
            return 0
        version = self.rows("SELECT max(version) FROM ledger_version")[0][0] or 0
        if version > SCHEMA_VERSION:
            raise _newer(version)
        return int(version)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a lost connection is an error here, and made anew for the next one."""
        import psycopg

        with self._told(), self._answering() as connection, connection.transaction():
            self._watchdog.rest()
            self._inside = True
            try:
                yield
            finally:
                self._inside = False
                self._watchdog.expect(self._answer_within)
            if connection.closed:
                # psycopg ends the transaction of a lost connection without a word.
                raise psycopg.OperationalError("the connection was lost")

    def rows(self, sql: str, params: Params = NONE) -> list[tuple[Any, ...]]:
        with self._told(), self._answering() as connection:
            return connection.execute(_percent(sql), params).fetchall()

    def stream(self, sql: str, params: Params = NONE) -> Iterator[tuple[Any, ...]]:
        with (
            self._told(),
            self._answering() as connection,
            connection.transaction(),
            connection.cursor("stream") as cursor,
        ):
            # Whoever reads may take his time, and keeps nobody waiting.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute(_percent(sql), params)
            while rows := cursor.fetchmany(_BATCH):
                self._watchdog.rest()
                try:
                    yield from rows
                finally:
                    self._watchdog.expect(self._answer_within)

    def run(self, sql: str, params: Params = NONE) -> int:
        with self._told(), self._answering() as connection:
            return connection.execute(_percent(sql), params).rowcount

    def run_many(self, sql: str, params: Iterable[Params]) -> None:
        rest = iter(params)
        while batch := list(islice(rest, _BATCH)):
            with self._told(), self._answering() as connection, connection.cursor() as cursor:
                cursor.executemany(_percent(sql), batch)
                # After psycopg's pipeline the server's watch over idle transactions is off, until the next statement.
                cursor.execute("SELECT 1")

    def lock(self, name: str) -> None:
        """Wait until no other transaction has this name locked, then lock it until this one ends."""
        self.run("SELECT pg_advisory_xact_lock(hashtextextended(:name, 7310841))", {"name": name})

    def clock(self) -> Callable[[], float]:
        """The server's: machines whose clocks differ share one ledger."""
        return self._clock

    def locked_by(self) -> None:
        """Nobody for long: the server ends a transaction that stands still."""

    @contextmanager
    def _answering(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """The connection, which has so long to answer."""
        connection = self._live()
        with self._watchdog.awaiting(self._answer_within):
            if self._clock.is_due() and not self._inside:
                self._measure(connection)
            yield connection

    def _live(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, made anew where it was lost; never within a transaction, half of which would be missing."""
        if self._connection.closed and not self._inside:
            self._watchdog.end()
            self._connection, self._watchdog = self._connect()
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
            if not lost:
                raise _unusable("in PostgreSQL", mask_passwords(str(error), self._url)) from error
            silent = f"does not answer: nothing came for {self._answer_within:.0f} s"
            raise self._away(
                silent if self._watchdog.bitten else f"went away: {mask_passwords(str(error), self._url)}"
            ) from error

    def _away(self, what: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The ledger's {self.name} {what}.",
            remedy="Nothing that it acknowledged is lost. See that PATTERNMILL_LEDGER_URL is right and the server is "
            "up, then run the same command again.",
        )

    def check(self) -> list[str]:
        """PostgreSQL checks its own pages; what can be asked here is whether it answers."""
        self.rows("SELECT 1")
        return []

    def close(self) -> None:
        self._watchdog.end()
        self._connection.close()


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _server_name(address: Mapping[str, Any]) -> str:
    """Where a database is, for people. What is misread of an address may be a part of its password."""
    database, host, port = (
        str(address.get(name, default))
        for name, default in (("dbname", "default"), ("host", "localhost"), ("port", "5432"))
    )
    plain = re.fullmatch(r"[\w./:,-]+", host) and re.fullmatch(r"\d{1,5}(,\d{1,5})*", port)
    return f"PostgreSQL ({database} on {host}:{port})" if plain else "PostgreSQL"


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
