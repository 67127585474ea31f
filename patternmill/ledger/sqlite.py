"""A ledger in an SQLite file."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patternmill.errors import LedgerError, LedgerUnavailable
from patternmill.files import private_folder, sync_directory
from patternmill.ledger.database import Database, Params, bring_up_to_date, not_in_place, schema_of, unusable
from patternmill.ledger.records import HELD_LEASES, Lease, holder_of, is_surely_dead
from patternmill.passwords import mask_passwords
from patternmill.processes import described, is_stopped, machine

#: Seconds that one connection waits for another.
_BUSY_SECONDS = 30


class SqliteDatabase(Database):
    """SQLite in WAL with `synchronous=FULL`: a committed change survives the power cord."""

    serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
    table_names = "SELECT name FROM sqlite_master WHERE type = 'table'"
    size_query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    _connection: sqlite3.Connection | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"SQLite file {path}"
        self.place = mask_passwords(f"{path.parent.resolve()} ({path.name})")
        try:
            with self._using():
                self._open()
            # Checked before anything changes the file, so that one that is refused stays as it is.
            schema_of(self)
            with self._using() as connection:
                self._write_ahead(connection)
            bring_up_to_date(self)
            self._file = self._file_in_place()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Open the file for its owner alone; SQLite's files beside it get the same mode."""
        try:
            private_folder(self.path.parent)
            is_new = not self.path.exists()
        except OSError as error:
            raise self._unusable(error) from error
        self._connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        if is_new:
            self.path.chmod(0o600)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            self._connection.execute(f"PRAGMA {pragma}")

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Turn WAL on. If two processes do so at once, SQLite refuses one without waiting; that one tries again."""
        last = time.monotonic() + _BUSY_SECONDS
        while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > last:
                    raise
                time.sleep(0.02)

    def back_up(self, schema: int) -> None:
        """Copy the ledger into a new file beside it, for its owner alone, while nobody else can write."""
        name = f"{self.path.name}.schema-{schema:03}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        copy = self.path.with_name(name)
        try:
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            address = f"{self.path.absolute().as_uri()}?mode=ro"
            with (
                closing(sqlite3.connect(address, uri=True)) as reader,
                closing(sqlite3.connect(copy)) as writer,
            ):
                reader.backup(writer)
            sync_directory(copy.parent)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all or nothing. Without IMMEDIATE, one that reads before it writes would fail when another writes."""
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def stream(self, sql: str, **params: Any) -> Iterator[tuple[Any, ...]]:
        with self._using() as connection:
            yield from connection.execute(sql, params)

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        with self._using() as connection:
            connection.executemany(sql, params)

    def lock(self, name: str) -> None:
        """Do nothing: only one transaction is under way at a time."""

    def require_in_place(self) -> None:
        if self._file_in_place() != self._file:
            raise not_in_place(mask_passwords(str(self.path)))

    def _file_in_place(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def tidy(self) -> None:
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection  # type: ignore[misc]
        except sqlite3.Error as error:
            raise (self._locked() if _is_busy(error) else self._unusable(error)) from error

    def _unusable(self, error: Exception) -> LedgerError:
        return unusable(mask_passwords(str(self.path)), mask_passwords(str(error)))

    def _locked(self) -> LedgerUnavailable:
        """Return an error that names who has the file open, by its leases, as SQLite does not say who locked it."""
        leases: list[tuple[Any, ...]] = []
        with suppress(sqlite3.Error):
            leases = self._connection.execute(HELD_LEASES).fetchall() if self._connection else []
        path, runs = mask_passwords(str(self.path)), dict[int, str]()
        for lease in (Lease(*row) for row in leases):
            holder = holder_of(lease)
            pid = holder["pid"]
            if pid != os.getpid() and holder["machine"] == machine() and not is_surely_dead(holder):
                runs[pid] = f"run {lease.run_id} of {lease.catalog!r} in {described(pid)}"
        if not runs:
            return LedgerUnavailable(
                f"The ledger {path} is locked by another program, which cannot be seen from here.",
                remedy=f"Nothing is lost. See who has it open (`fuser {path}`), then run the same command again.",
            )
        remedy = f"wait for it, or end it (`kill {next(iter(runs))}`)"
        for pid in filter(is_stopped, runs):
            runs[pid] += ", which is stopped"
            remedy = f"resume it (`kill -CONT {pid}`) or end it (`kill -KILL {pid}`)"
        return LedgerUnavailable(
            f"The ledger {path} is locked. It is open in {'; '.join(runs.values())}.",
            remedy=f"Nothing is lost: {remedy}, then run the same command again.",
        )


class EmptyDatabase(SqliteDatabase):
    """An empty ledger in memory, for readers where there is none; no file is made."""

    def __init__(self) -> None:
        super().__init__(Path(":memory:"))

    def _open(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Do nothing: a database in memory is gone once it is closed."""


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
