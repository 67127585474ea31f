"""A ledger in a PostgreSQL database: an end to every wait for it, and its clock instead of this machine's."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from patternmill.errors import LedgerUnavailable
from patternmill.ledger.database import NO_PARAMS, Params, has_schema, schema, unusable
from patternmill.passwords import mask_passwords
from patternmill.processes import uptime

if TYPE_CHECKING:
    import psycopg


_SERIAL = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
#: A process that is stopped in a transaction, or whose machine is gone, would keep all others waiting for its locks.
#: PostgreSQL ends it after this, before its lease is taken over after 20 seconds without a heartbeat.
_LONGEST_PAUSE_MS = 12_000
#: Seconds in which PostgreSQL has to answer a statement, send the next rows, or accept a connection.
_ANSWER_WITHIN = 20.0
_CONNECT_WITHIN = 10
#: Detect a server or a network that does not answer any more; the address may set others.
_KEEPALIVES = {
    "connect_timeout": _CONNECT_WITHIN,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(_ANSWER_WITHIN * 1000),
}
_BATCH = 1000
_UNNAMED = "PostgreSQL"
#: What the server says of a database, user or password that it refuses, in any of its languages.
_REFUSAL = re.compile(r"FATAL: +(.+)")


class PostgresDatabase:
    """PostgreSQL, for a ledger shared by several machines. Its connection is made anew after it was lost.

    Every wait for it ends: an answer that is overdue is a lost connection.
    """

    lock_suffix = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = _UNNAMED
        self._inside = False
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
            raise self._unavailable(self._failure_to_connect(error)) from None
        watchdog = Watchdog(connection)
        try:
            with watchdog.awaiting(_CONNECT_WITHIN):
                connection.execute(f"SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE_MS}")
                self._measure(connection)
        except psycopg.Error as error:
            watchdog.end()
            connection.close()
            raise self._unavailable(f"cannot be reached ({type(error).__name__})") from None
        return connection, watchdog

    def _failure_to_connect(self, error: psycopg.Error) -> str:
        """Only the server's own words are quoted: the rest may have the address, and with it a password."""
        refusal = _REFUSAL.search(str(error))
        if refusal is None or self.name == _UNNAMED:
            return f"cannot be reached ({type(error).__name__})"
        return f"refuses the connection: {mask_passwords(refusal[1])}"

    def _measure(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._clock.measure(
            lambda: connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchall()[0][0]
        )

    def _prepare(self) -> None:
        """Tables are found without a lock, which another process may keep."""
        if self._has_schema():
            return
        with self.transaction():
            self.execute("SELECT pg_advisory_xact_lock(7310841)")
            # Of several processes that open a new ledger at once, one finds something to do.
            if not self._has_schema():
                for statement in schema(_SERIAL):
                    self.execute(statement)

    def _has_schema(self) -> bool:
        # Of the catalog itself: what `to_regclass` has cached is not refreshed by waiting for the lock.
        present = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))")
        return has_schema(
            [name for (name,) in present],
            lambda: next((digest for (digest,) in self.rows("SELECT digest FROM ledger_schema")), None),
            f"{self.name}, schema {self.rows('SELECT current_schema()')[0][0]},",
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a lost connection is an error here, and made anew for the next one."""
        import psycopg

        with self._errors(), self._answering() as connection, connection.transaction():
            self._watchdog.rest()
            self._inside = True
            try:
                yield
            finally:
                self._inside = False
                self._watchdog.expect(_ANSWER_WITHIN)
            if connection.closed:
                # psycopg ends the transaction of a lost connection without an error.
                raise psycopg.OperationalError("the connection was lost")

    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]:
        with self._errors(), self._answering() as connection:
            return connection.execute(_percent(sql), params).fetchall()

    def stream(self, sql: str, params: Params = NO_PARAMS) -> Iterator[tuple[Any, ...]]:
        with (
            self._errors(),
            self._answering() as connection,
            connection.transaction(),
            connection.cursor("stream") as cursor,
        ):
            # A slow reader locks nothing.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute(_percent(sql), params)
            while rows := cursor.fetchmany(_BATCH):
                self._watchdog.rest()
                try:
                    yield from rows
                finally:
                    self._watchdog.expect(_ANSWER_WITHIN)

    def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        with self._errors(), self._answering() as connection:
            return connection.execute(_percent(sql), params).rowcount

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        rest = iter(params)
        while batch := list(islice(rest, _BATCH)):
            with self._errors(), self._answering() as connection, connection.cursor() as cursor:
                cursor.executemany(_percent(sql), batch)
                # After psycopg's pipeline the server's watch over idle transactions is off, until the next statement.
                cursor.execute("SELECT 1")

    def lock(self, name: str) -> None:
        """Wait until no other transaction has this name locked, then lock it until this one ends."""
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended(:name, 7310841))", {"name": name})

    def try_lock(self, name: str) -> bool:
        """Lock a name until this transaction ends, unless another transaction has it locked."""
        sql = "SELECT pg_try_advisory_xact_lock(hashtextextended(:name, 7310841))"
        ((locked,),) = self.rows(sql, {"name": name})
        return bool(locked)

    def clock(self) -> Callable[[], float]:
        """The server's: machines whose clocks differ share one ledger."""
        return self._clock

    @contextmanager
    def _answering(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """The connection, with the watchdog set to the time that an answer may take."""
        connection = self._live()
        with self._watchdog.awaiting(_ANSWER_WITHIN):
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
    def _errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            lost = self._connection.closed
            if self._connection.broken:
                self._connection.close()
            if not lost:
                raise unusable("in PostgreSQL", mask_passwords(str(error), self._url)) from error
            if self._watchdog.has_fired:
                what = f"does not answer: nothing came for {_ANSWER_WITHIN:.0f} s"
            else:
                what = f"is unavailable: {mask_passwords(str(error), self._url)}"
            raise self._unavailable(what) from error

    def _unavailable(self, what: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The ledger's {self.name} {what}.",
            remedy="Nothing that it acknowledged is lost. See that PATTERNMILL_LEDGER_URL is right and the server is "
            "up, then run the same command again.",
        )

    def check(self) -> list[str]:
        """PostgreSQL checks its own pages; what can be seen from here is whether it answers."""
        self.rows("SELECT 1")
        return []

    def close(self) -> None:
        self._watchdog.end()
        self._connection.close()


def _server_name(address: Mapping[str, Any]) -> str:
    """Where a database is, for people. What is misread of an address may be a part of its password."""
    database, host, port = (
        str(address.get(name, default))
        for name, default in (("dbname", "default"), ("host", "localhost"), ("port", "5432"))
    )
    plain = re.fullmatch(r"[\w./:,-]+", host) and re.fullmatch(r"\d{1,5}(,\d{1,5})*", port)
    return f"{_UNNAMED} ({database} on {host}:{port})" if plain else _UNNAMED


def _percent(sql: str) -> Any:
    return re.sub(r"(?<!:):([a-z_][a-z0-9_]*)", r"%(\1)s", sql)


_MEASURE_EVERY = 30.0
#: A measurement that took longer is too inexact.
_LONGEST_ROUND = 1.0


class ServerClock:
    """The server's clock, kept between measurements by a local one that cannot be set."""

    def __init__(self, local: Callable[[], float] = uptime) -> None:
        self._local = local
        self._offset = 0.0
        self._measured: float | None = None

    def __call__(self) -> float:
        """Unix seconds. Measured at least once before."""
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


_LOOK = 0.5


class Watchdog:
    """Shuts a connection's socket down when an answer is overdue; libpq then finds the connection lost.

    A statement has no deadline on the client's side, and a server that is frozen still acknowledges what it is sent:
    neither psycopg nor keepalives would ever end the wait.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self._until: float | None = None
        self._ended = threading.Event()
        #: Whether an answer was overdue.
        self.has_fired = False
        weakref.finalize(connection, self._ended.set)
        threading.Thread(target=self._watch, name="ledger-watchdog", daemon=True).start()

    @contextmanager
    def awaiting(self, seconds: float) -> Iterator[None]:
        """An answer is due within so many seconds."""
        self.expect(seconds)
        try:
            yield
        finally:
            self.rest()

    def expect(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def rest(self) -> None:
        self._until = None

    def end(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        with self._socket:
            while not self._ended.wait(_LOOK):
                until = self._until
                if until is not None and time.monotonic() > until:
                    self.has_fired = True
                    try:
                        self._socket.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        return
