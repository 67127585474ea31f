"""The ledger's database: durable transactions that many coroutines share, and plain reads."""

import asyncio
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from patternmill.errors import LeaseLost, LedgerFault, Refusal
from patternmill.ledger.connections import Connection, Postgres, Sqlite
from patternmill.logs import tell

#: The tables, and each later change of them: the number of the last one is the ledger's version.
_SCRIPTS = sorted(Path(__file__).with_name("schema").glob("*.sql"))
VERSION = str(len(_SCRIPTS))
T = TypeVar("T")
#: The most changes that share a transaction, and how long a first one waits for others, in seconds. A transaction
#: costs as much CPU as six changes in it, and a job takes minutes.
_BATCH, _GATHERING = 500, 0.1
#: The pauses before a change is tried again while the database is away, in seconds.
_AWAY = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0, 15.0, 15.0)
_KNOWN = """
SELECT (SELECT value FROM facts WHERE name = 'identity') AS identity,
       (SELECT value FROM facts WHERE name = 'schema') AS version
"""

Change = Callable[[Connection], T]


class Database:
    """One ledger. A change is durable when its `write` returns."""

    def __init__(self, address: str) -> None:
        """Open the ledger at a path, or at an address `postgresql://…`; make it where there is none."""
        self._connect = partial(Postgres if address.startswith("postgres") else Sqlite, address)
        #: Called first in each transaction of `write`, and returns the ledger's identity and version: the fence.
        self.guard: Change[tuple[str, str]] | None = None
        self.identity = ""
        self._lock = threading.Lock()
        self._waiting: list[tuple[Change[Any], asyncio.Future[Any]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._reader, self._writer = self._connect(), self._connect()
        try:
            self._identify()
        except BaseException:
            self.disconnect()
            raise

    def _identify(self) -> None:
        """Learn which ledger this is, and make its tables where there are none."""
        if self._reader.has_table("facts"):  # then no lock is taken, which others may hold
            self.identity, version = self._reader.row(_KNOWN)
        if not self.identity:
            self.identity, version = self.change(_make, alone=True)
        while version.isdigit() and int(version) < int(VERSION):
            version = self._upgrade()
        if version != VERSION:
            message = f"The ledger {self._reader.place} has version {version}; this program reads {VERSION}."
            raise Refusal("ledger_version", message, "Install the program that wrote it.")

    def _upgrade(self) -> str:
        """Make the next change of the tables, and return the version that they have then. Raises Refusal."""
        with self._transaction(alone=True) as connection:
            if (version := int(connection.row(_KNOWN).version)) < int(VERSION):
                for lease in connection.rows("SELECT key, holder FROM leases WHERE driver IS NOT NULL"):
                    if not is_gone(lease.holder):
                        message = f"A program of an older version holds {lease.key}, by {lease.holder}."
                        remedy = (
                            "Wait until it has ended. If it died on another machine, run that program again."
                        )
                        raise Refusal("ledger_version", message, remedy)
                version += 1
                _execute(connection, _SCRIPTS[version - 1])
                connection.execute("UPDATE facts SET value = :now WHERE name = 'schema'", now=str(version))
            return str(version)

    def read(self, sql: str, names: Sequence[str] | None = None, **values: Any) -> list[Any]:
        """Return the rows of a query, of what is durable. `names`: what `:names...` stands for.

        All that this process does stands still while the database is away: it could record nothing.
        """
        for pause in (0.0, *_AWAY):
            try:
                if self._reader.is_lost:
                    self._reader = self._connect()
                return self._reader.rows(sql, names, **values)
            except LedgerFault as fault:
                if not fault.passing:
                    raise
                time.sleep(pause)
        return self._reader.rows(sql, names, **values)

    def pulse(self) -> Any:
        """Return a value that changes with every write."""
        return self.read(self._reader.pulse)

    def change(self, change: Change[T], *, alone: bool = False) -> T:
        """Make one change in a transaction of its own, without the guard.

        `alone`: once it returns, no transaction goes on that was begun before, and later ones see the change.
        """
        with self._transaction(alone=alone) as connection:
            self._check(connection.row(_KNOWN) if self.identity else None)
            return change(connection)

    async def write(self, change: Change[T]) -> T:
        """Make a change behind the guard. Changes that wait together share a transaction: commits are what costs."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await asyncio.shield(done)

    async def _write_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(_GATHERING)
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            changes = list(map(itemgetter(0), batch))
            results = await asyncio.to_thread(self._write_together, changes)
            for pause in _AWAY:  # the database is away: each change is written so that it may be made twice
                if not (isinstance(results[0], LedgerFault) and results[0].passing):
                    break
                await asyncio.sleep(pause)
                results = await asyncio.to_thread(self._write_together, changes)
            for (_, done), result in zip(batch, results, strict=True):
                if not done.done():
                    done.set_exception(result) if isinstance(result, Exception) else done.set_result(result)

    def _write_together(self, changes: Sequence[Change[Any]], again: bool = True) -> list[Any]:
        """Return the result of each change, or its error. One that breaks the transaction is made once more, alone."""
        try:
            with self._transaction() as connection:
                self._check(self.guard(connection) if self.guard else connection.row(_KNOWN))
                return list(_results(changes, connection))
        except Exception as error:
            if isinstance(error, Refusal) or not again:
                return [error] * len(changes)
            return [self._write_together([change], len(changes) > 1)[0] for change in changes]

    @contextmanager
    def _transaction(self, *, alone: bool = False) -> Iterator[Connection]:
        """Do all or nothing, in the file that was opened."""
        with self._lock:
            if self._writer.is_lost:
                self._writer = self._connect()
            connection = self._writer
            connection.facts.clear()
            connection.begin(alone=alone)
            try:
                yield connection
                if not connection.is_in_place():
                    self._check(("", ""))
                connection.execute("COMMIT")
            except BaseException:
                with suppress(LedgerFault):
                    connection.execute("ROLLBACK")
                raise
            tell(connection.facts)

    def _check(self, found: tuple[str, str] | None) -> None:
        """Raise LeaseLost where this is another ledger by now, or one that a newer program has changed."""
        if found is not None and tuple(found) != (self.identity, VERSION):
            message = "The ledger was removed, replaced or upgraded while a run used it."
            raise LeaseLost("ledger_replaced", message, "Put it back, with its files -wal and -shm.")

    async def close(self) -> None:
        """Wait for the last changes, and close the connections."""
        if self._writing and not self._writing.done():
            await asyncio.wait({self._writing})
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connections of a ledger that nothing waits to be written to."""
        self._reader.close()
        self._writer.close()


def _make(connection: Connection) -> Any:
    """Make the tables, unless another process has by now; return which ledger this is."""
    if connection.has_table("ledger"):
        message = f"The ledger {connection.place} was written by an earlier edition of this program."
        raise Refusal("ledger_version", message, "Name another PATTERNMILL_HOME.")
    for script in _SCRIPTS:
        _execute(connection, script)
    facts = "INSERT INTO facts (name, value) VALUES ('identity', :mine), ('schema', :version) ON CONFLICT DO NOTHING"
    connection.execute(facts, mine=str(uuid4()), version=VERSION)
    return connection.row(_KNOWN)


def _execute(connection: Connection, path: Path) -> None:
    script = re.sub("--.*", "", path.read_text("utf-8"))
    script = script.replace("{serial}", connection.serial).replace("{create_view}", connection.create_view)
    for statement in filter(str.strip, script.split(";")):
        connection.execute(statement)


def is_gone(holder: str) -> bool:
    """Return whether a holder was a process of this machine that no longer exists."""
    host, _, pid = holder.rpartition(":")
    try:
        os.kill(int(pid) if host == socket.gethostname() else os.getpid(), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)  # else it is another user's
    return False


def _results(changes: Sequence[Change[Any]], connection: Connection) -> Iterator[Any]:
    """Yield what each change returns, or its refusal. A change refuses before it writes anything."""
    for change in changes:
        try:
            yield change(connection)
        except LedgerFault:
            raise
        except Refusal as refusal:
            yield refusal
