"""A ledger in a PostgreSQL database: one that several machines share, with its clock instead of theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import Any

import psycopg

from patternmill.errors import LedgerUnavailable
from patternmill.ledger.database import NO_PARAMS, Params, ServerClock, has_schema, make_tables, unusable
from patternmill.ledger.postgres_connection import (
    Connection,
    Overdue,
    connect,
    failure_to_connect,
    server_name,
)
from patternmill.passwords import mask_passwords

_SERIAL = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
_ROWS_AT_ONCE = 1000
_NOW = "SELECT extract(epoch FROM clock_timestamp())"


class PostgresDatabase:
    """PostgreSQL, for a ledger shared by several machines. Its connection is made anew after it was lost."""

    lock_suffix = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = server_name(url)
        self._inside = False
        self._clock = ServerClock()
        self._connection = self._connect()
        try:
            make_tables(self, _SERIAL)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Connection:
        try:
            return connect(self._url)
        except psycopg.Error as error:
            raise self._unavailable(failure_to_connect(self.name, error)) from None

    def has_tables(self) -> bool:
        # Of the catalog itself: what `to_regclass` has cached is not refreshed by waiting for the lock.
        present = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))")
        where = f"{self.name}, schema {self.rows('SELECT current_schema()')[0][0]},"
        return has_schema((name for (name,) in present), self.rows, where)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a lost connection is an error here, and made anew for the next one."""
        with self._live() as connection, connection.transaction():
            self._inside = True
            try:
                yield
            finally:
                self._inside = False
            if connection.closed:
                # psycopg ends the transaction of a lost connection without an error.
                raise psycopg.OperationalError("the connection was lost")

    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]:
        with self._live() as connection:
            return connection.execute(_percent(sql), params).fetchall()

    def stream(self, sql: str, params: Params = NO_PARAMS) -> Iterator[tuple[Any, ...]]:
        with self._live() as connection, connection.transaction(), connection.cursor("stream") as cursor:
            # A slow reader locks nothing.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute(_percent(sql), params)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield from rows

    def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        with self._live() as connection:
            return connection.execute(_percent(sql), params).rowcount

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        rest = iter(params)
        while batch := list(islice(rest, _ROWS_AT_ONCE)):
            with self._live() as connection, connection.cursor() as cursor:
                cursor.executemany(_percent(sql), batch)
                # After psycopg's pipeline the server's watch over idle transactions is off, until the next statement.
                cursor.execute("SELECT 1")

    def lock(self, name: str) -> None:
        """Wait until no other transaction has this name locked, then lock it until this one ends."""
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended(:name, 7310841))", {"name": name})

    def clock(self) -> Callable[[], float]:
        """The server's: machines whose clocks differ share one ledger."""
        return self._clock

    def require_in_place(self) -> None:
        """Do nothing: a server's database has no file that could be moved."""

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _live(self) -> Iterator[Connection]:
        """The connection, made anew where it was lost; never within a transaction, half of which would be missing."""
        if self._connection.closed and not self._inside:
            self._connection = self._connect()
        connection = self._connection
        try:
            if self._clock.is_due() and not self._inside:
                self._clock.measure(lambda: connection.execute(_NOW).fetchall()[0][0])
            yield connection
        except psycopg.Error as error:
            lost = connection.closed
            if connection.broken:
                connection.close()
            if not lost:
                raise unusable("in PostgreSQL", mask_passwords(str(error), self._url)) from error
            what = "does not answer" if isinstance(error, Overdue) else "is unavailable"
            raise self._unavailable(f"{what}: {mask_passwords(str(error), self._url)}") from error

    def _unavailable(self, what: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The ledger's {self.name} {what}.",
            remedy="Nothing that it acknowledged is lost. See that PATTERNMILL_LEDGER_URL is right and the server is "
            "up, then run the same command again.",
        )


@lru_cache
def _percent(sql: str) -> Any:
    return re.sub(r"(?<!:):([a-z_][a-z0-9_]*)", r"%(\1)s", sql)
