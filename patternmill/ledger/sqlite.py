"""A ledger in an SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from patternmill.errors import LedgerError, LedgerUnavailable
from patternmill.files import private_folder
from patternmill.ledger.database import NO_PARAMS, Params, has_schema, make_tables, not_in_place, unusable
from patternmill.ledger.lock_holders import locked
from patternmill.passwords import mask_passwords

_SERIAL = "INTEGER PRIMARY KEY AUTOINCREMENT"
#: How long one connection waits for another.
_BUSY_SECONDS = 30
_HOLDERS = "SELECT run_id, catalog, holder FROM leases WHERE holder <> '' ORDER BY catalog"


class SqliteDatabase:
    """SQLite in WAL with `synchronous=FULL`: a committed change survives the power cord."""

    lock_suffix = ""  # a transaction is the only one that writes

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"SQLite file {path}"
        self._connection: sqlite3.Connection | None = None
        try:
            with self._errors():
                self._open()
            make_tables(self, _SERIAL)
            self._file = self._file_in_place()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """For its owner alone; SQLite's files next to it take their mode from it."""
        try:
            private_folder(self.path.parent)
            is_new = not self.path.exists()
        except OSError as error:
            raise self._unusable(error) from error
        if not is_new:
            self._refuse_other_tables()
        self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        if is_new:
            self.path.chmod(0o600)
        for pragma in (f"busy_timeout={_BUSY_SECONDS * 1000}", "synchronous=FULL", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._write_ahead(self._connection)

    def _refuse_other_tables(self) -> None:
        """Before anything is written, as opening for writing does. What is locked is looked at again once open."""
        with suppress(sqlite3.OperationalError):
            reader = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
            try:
                self._has_schema(lambda sql: reader.execute(sql).fetchall())
            finally:
                reader.close()

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Of two that change the mode at once, SQLite refuses one as busy without waiting: it has to begin again."""
        last = time.monotonic() + _BUSY_SECONDS
        while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > last:
                    raise
                time.sleep(0.02)

    def has_tables(self) -> bool:
        return self._has_schema(self.rows)

    def _has_schema(self, rows: Callable[[str], list[tuple[Any, ...]]]) -> bool:
        tables = [name for (name,) in rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        where = mask_passwords(str(self.path.parent.resolve()))
        return has_schema(tables, rows, f"{where} ({self.path.name})")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. IMMEDIATE: a transaction that reads first and writes later would fail when another writes."""
        with self._errors() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]:
        with self._errors() as connection:
            return connection.execute(sql, params).fetchall()

    def stream(self, sql: str, params: Params = NO_PARAMS) -> Iterator[tuple[Any, ...]]:
        with self._errors() as connection:
            yield from connection.execute(sql, params)

    def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        with self._errors() as connection:
            return connection.execute(sql, params).rowcount

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        with self._errors() as connection:
            connection.executemany(sql, params)

    def lock(self, name: str) -> None:
        """Nothing to do: a transaction is the only one that writes."""

    def clock(self) -> None:
        """It has none of its own."""

    def require_in_place(self) -> None:
        """Raise LedgerError where the path leads to another file by now, or to none."""
        if self._file_in_place() != self._file:
            raise not_in_place(mask_passwords(str(self.path)))

    def _file_in_place(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection  # type: ignore[misc]
        except sqlite3.Error as error:
            raise (self._locked() if _is_busy(error) else self._unusable(error)) from error

    def _unusable(self, error: Exception) -> LedgerError:
        return unusable(mask_passwords(str(self.path)), mask_passwords(str(error)))

    def _locked(self) -> LedgerUnavailable:
        """Who has it open, by its leases: SQLite does not say who has it locked."""
        holders = []
        with suppress(sqlite3.Error):
            holders = self._connection.execute(_HOLDERS).fetchall() if self._connection else []
        return locked(mask_passwords(str(self.path)), holders)


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
