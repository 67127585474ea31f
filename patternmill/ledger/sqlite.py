"""A ledger in an SQLite file."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from patternmill.errors import LedgerError, LedgerUnavailable
from patternmill.files import private_folder
from patternmill.ledger.database import NO_PARAMS, Params, has_schema, schema, unusable
from patternmill.passwords import mask_passwords
from patternmill.processes import birth, described, is_stopped, machine

_SERIAL = "INTEGER PRIMARY KEY AUTOINCREMENT"
#: How long one connection waits for another.
_BUSY_SECONDS = 30


class SqliteDatabase:
    """SQLite in WAL with `synchronous=FULL`: a committed change survives the power cord."""

    lock_suffix = ""  # a transaction is the only one that writes

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"SQLite file {path}"
        try:
            private_folder(path.parent)
            is_new = not path.exists()
            if not is_new:
                self._refuse_other_schema()
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            if is_new:
                # For its owner alone, and empty as yet; SQLite's files next to it take their mode from it.
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

    def _refuse_other_schema(self) -> None:
        """Before anything is written, as opening for writing does. Raises ConfigurationError."""
        with suppress(
            sqlite3.OperationalError
        ):  # locked, or to be recovered first: it is looked at again once open
            reader = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
            try:
                self._has_schema(reader)
            finally:
                reader.close()

    def _has_schema(self, connection: sqlite3.Connection) -> bool:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return has_schema(
            tables,
            lambda: (connection.execute("SELECT digest FROM ledger_schema").fetchone() or [None])[0],
            f"{mask_passwords(str(self.path.parent.resolve()))} ({self.path.name})",
        )

    def _unopened(self, error: Exception) -> LedgerError:
        return LedgerError(
            f"The ledger {self._masked_path} cannot be opened: {mask_passwords(str(error))}.",
            remedy="See that its folder can be written to and that the file is whole "
            "(`patternmill ledger check`); nothing was spent.",
        )

    def _prepare(self) -> None:
        """A ledger that is made is opened without the lock to write, which another process may keep."""
        for pragma in (f"busy_timeout={_BUSY_SECONDS * 1000}", "synchronous=FULL", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._write_ahead()
        if not self._has_schema(self._connection):
            with self.transaction():
                # Of several processes that open a new ledger at once, one finds something to do.
                if not self._has_schema(self._connection):
                    for statement in schema(_SERIAL):
                        self._connection.execute(statement)

    def _write_ahead(self) -> None:
        """Of two that change the mode at once, SQLite refuses one as busy without waiting: it has to begin again."""
        last = time.monotonic() + _BUSY_SECONDS
        while self._pragma("journal_mode") != "wal":
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > last:
                    raise
            time.sleep(0.02)

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. IMMEDIATE: a transaction that reads first and writes later would fail when another writes."""
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(sql, params).fetchall()

    def stream(self, sql: str, params: Params = NO_PARAMS) -> Iterator[tuple[Any, ...]]:
        with self._errors():
            yield from self._connection.execute(sql, params)

    def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        with self._errors():
            return self._connection.execute(sql, params).rowcount

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        with self._errors():
            self._connection.executemany(sql, params)

    def lock(self, name: str) -> None:
        """Nothing to do: a transaction is the only one that writes."""

    def try_lock(self, name: str) -> bool:
        """A transaction is the only one that writes."""
        return True

    def check(self) -> list[str]:
        return [text for (text,) in self.rows("PRAGMA integrity_check") if text != "ok"]

    def clock(self) -> None:
        """It has none of its own."""

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _is_busy(error):
                raise self._locked() from error
            raise unusable(self._masked_path, mask_passwords(str(error))) from error

    @property
    def _masked_path(self) -> str:
        return mask_passwords(str(self.path))

    def _locked(self) -> LedgerUnavailable:
        """Names who has it open by its leases, the stopped ones first; SQLite does not say who has it locked."""
        path = self._masked_path
        runs = sorted(self._runs_here().items(), key=lambda run: not is_stopped(run[0]))
        if not runs:
            return LedgerUnavailable(
                f"The ledger {path} is locked by another program, which cannot be seen from here.",
                remedy=f"Nothing is lost. See who has it open (`fuser {path}`), then run the same command again.",
            )
        named = "; ".join(
            f"{run} in {described(pid)}{', which is stopped' if is_stopped(pid) else ''}" for pid, run in runs
        )
        pid = runs[0][0]
        remedy = (
            f"resume it (`kill -CONT {pid}`) or end it (`kill -KILL {pid}`)"
            if is_stopped(pid)
            else f"wait for it, or end it (`kill {pid}`)"
        )
        return LedgerUnavailable(
            f"The ledger {path} is locked. It is open in {named}.",
            remedy=f"Nothing is lost: {remedy}, then run the same command again.",
        )

    def _runs_here(self) -> dict[int, str]:
        """The runs of other live processes of this machine, by their PIDs."""
        found = {}
        with suppress(sqlite3.Error):
            for run_id, catalog, text in self._connection.execute(
                "SELECT run_id, catalog, holder FROM leases WHERE holder <> '' ORDER BY catalog"
            ):
                holder = json.loads(text)
                pid = holder["pid"]
                is_here = holder["machine"] == machine() and birth(pid) == holder["born"]
                if is_here and pid != os.getpid():
                    found[pid] = f"run {run_id} of {catalog!r}"
        return found

    def close(self) -> None:
        self._connection.close()


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
