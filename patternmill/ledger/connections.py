"""Connections to both kinds of databases, which take one text of SQL: `:name` stands for a value."""

import os
import re
import socket
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from patternmill.errors import LedgerFault, Refusal

#: How many values one statement may hold.
_CHUNK = 5_000
#: A server on the network that has not answered a statement for so many seconds is taken to be lost.
SILENCE = 60.0


class Connection(ABC):
    """An open connection. The fields of rows have the names of columns; faults of the database are LedgerFaults."""

    #: The driver, which has its errors; where this is, for people.
    api: Any
    place: str
    #: How each writes a key that counts up, the making of a view, and the list of its tables.
    serial: str
    create_view: str
    tables: str
    #: A query whose answer changes whenever another connection commits.
    pulse: str

    def __init__(self, address: str) -> None:
        #: What is told of a transaction once it is durable.
        self.facts: list[dict[str, Any]] = []
        try:
            self._driver = self._connect(address)
        except (self.api.Error, OSError) as error:
            raise LedgerFault(self.place, self._words(error), passing=self._passes(error)) from None

    @property
    def is_lost(self) -> bool:
        return bool(getattr(self._driver, "closed", False))

    def rows(self, sql: str, names: Sequence[str] | None = None, **values: Any) -> list[Any]:
        """Return the rows of a query, or of a change with RETURNING. `names`: what `:names...` stands for."""
        if names is None:
            return self._run(sql, values)[0]
        found = []
        for start in range(0, len(names), _CHUNK):
            chunk = {f"name{number}": name for number, name in enumerate(names[start : start + _CHUNK])}
            places = ", ".join(f":{name}" for name in chunk)
            found += self._run(sql.replace(":names...", places), {**chunk, **values})[0]
        return found

    def row(self, sql: str, **values: Any) -> Any:
        """Return the first row, or None."""
        return next(iter(self.rows(sql, **values)), None)

    def execute(self, sql: str, **values: Any) -> int:
        """Return how many rows a statement has changed."""
        return self._run(sql, values)[1]

    def execute_many(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement for each set of values."""
        if values:
            self._run(sql, values, many=True)

    def insert(self, table: str, **values: Any) -> None:
        names = ", ".join(values)
        self._run(f"INSERT INTO {table} ({names}) VALUES (:{names.replace(', ', ', :')})", values)

    def _run(self, sql: str, values: Any, *, many: bool = False) -> tuple[list[Any], int]:
        try:
            cursor = self._driver.cursor()
            (cursor.executemany if many else cursor.execute)(sql, values)
            if cursor.description is None:
                return [], cursor.rowcount
            shape = _shape(next(zip(*cursor.description, strict=True)))
            return list(map(shape._make, cursor.fetchall())), cursor.rowcount
        except self.api.IntegrityError:
            raise  # the ledger is well: a rule of its tables was broken
        except self.api.Error as error:
            raise LedgerFault(self.place, self._words(error), passing=self._passes(error)) from error

    def has_table(self, name: str) -> bool:
        """Return whether there is a table of this name."""
        return self.row(f"SELECT 1 FROM {self.tables} = :name", name=name) is not None

    @abstractmethod
    def begin(self, *, alone: bool) -> None:
        """Begin a transaction; `alone`: once none of others goes on that was begun before it."""

    @abstractmethod
    def _connect(self, address: str) -> Any:
        """Return the driver's connection. Raises its errors, and OSError."""

    def _words(self, error: Exception) -> str:
        return str(error)

    def _passes(self, error: Exception) -> bool:
        """Return whether what went wrong may be over soon."""
        return "locked" in str(error)

    def is_in_place(self) -> bool:
        """Return whether the address still leads to the database that is open."""
        return True

    def close(self) -> None:
        self._driver.close()


@cache
def _shape(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)


class Sqlite(Connection):
    """A connection to a file: one transaction at a time, durable when it is committed."""

    api = sqlite3
    serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
    create_view = "CREATE VIEW IF NOT EXISTS"
    tables = "sqlite_master WHERE type = 'table' AND name"
    pulse = "PRAGMA data_version"

    def _connect(self, address: str) -> sqlite3.Connection:
        self.place, self._path = address, Path(address)
        self._path.touch(mode=0o600)
        driver = sqlite3.connect(address, timeout=30, isolation_level=None, check_same_thread=False)
        self._inode = self._path.stat().st_ino
        driver.execute("PRAGMA synchronous = FULL")
        for _ in range(100):
            with suppress(sqlite3.OperationalError):  # while another does it
                if driver.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",):
                    return driver
            time.sleep(0.05)
        raise sqlite3.OperationalError("its folder does not allow write-ahead logging")

    def begin(self, *, alone: bool) -> None:
        self.execute("BEGIN IMMEDIATE")  # always alone

    def is_in_place(self) -> bool:
        with suppress(OSError):
            return self._path.stat().st_ino == self._inode
        return False


class Postgres(Connection):
    """A connection to a database that several machines share; no setting outlives a transaction, so pools work."""

    place = "in PostgreSQL"
    serial = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    create_view = "CREATE OR REPLACE VIEW"
    tables = "pg_tables WHERE schemaname = current_schema() AND tablename"
    pulse = "SELECT CAST(txid_current_snapshot() AS TEXT)"

    def _connect(self, address: str) -> Any:
        import psycopg

        self.api = psycopg
        limits: dict[str, Any] = {"connect_timeout": 10, "keepalives_idle": 10, "tcp_user_timeout": 20_000}
        driver = psycopg.connect(address, autocommit=True, prepare_threshold=None, **limits)
        if (encoding := driver.info.parameter_status("server_encoding")) != "UTF8":
            remedy = "Create the database with ENCODING 'UTF8'."
            raise Refusal("encoding", f"The ledger's database is {encoding}, not UTF8.", remedy)
        self._asked_at = 0.0
        threading.Thread(target=self._watch, args=(driver,), daemon=True).start()
        return driver

    def _run(self, sql: str, values: Any, *, many: bool = False) -> tuple[list[Any], int]:
        self._asked_at = time.monotonic()
        try:
            return super()._run(_percent(sql), values, many=many)
        finally:
            self._asked_at = 0.0

    def _watch(self, driver: Any) -> None:
        """End the connection where the server is silent: the driver itself would wait for ever."""
        while not driver.closed:
            time.sleep(SILENCE / 10)
            if (asked_at := self._asked_at) and time.monotonic() - asked_at > SILENCE:
                with suppress(OSError), socket.socket(fileno=os.dup(driver.fileno())) as silent:
                    silent.shutdown(socket.SHUT_RDWR)

    def begin(self, *, alone: bool) -> None:
        self.execute("BEGIN")
        # The server ends the transaction of a process that stands still, before others take its lease over.
        still = "set_config('idle_in_transaction_session_timeout', '12000', true)"
        # All share this lock, and one that must be alone has it for itself. A shared lock of a row would not do: all
        # who share it next go before the one that waits to change the row.
        self.execute(f"SELECT {still}, pg_advisory_xact_lock{'' if alone else '_shared'}(7310841)")

    def _passes(self, error: Any) -> bool:
        """Return whether the connection is gone, the server begins or ends, or it gave up a lock or a connection."""
        return (
            not error.sqlstate or error.sqlstate[:2] in ("08", "57", "40", "53") or error.sqlstate == "25P03"
        )

    def _words(self, error: Any) -> str:
        """Return what the server says. The driver's own words may quote the address, with its password."""
        said = re.search(r"FATAL: +(.+)", str(error))
        return error.diag.message_primary or (said[1] if said else type(error).__name__)


@cache
def _percent(sql: str) -> str:
    """Return a statement with psycopg's placeholders."""
    return re.sub(r":([a-z]\w*)", r"%(\1)s", sql.replace("%", "%%"))
