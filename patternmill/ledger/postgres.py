"""A ledger in a PostgreSQL database: one that several machines share, with its clock instead of theirs."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import count, islice
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from patternmill.errors import ConfigurationError, LedgerUnavailable
from patternmill.ledger.database import Database, Params, bring_up_to_date, unusable
from patternmill.parameters import UPGRADE
from patternmill.passwords import mask_passwords
from patternmill.processes import uptime

T = TypeVar("T")
_ROWS_AT_ONCE = 1000
_NOW = "SELECT extract(epoch FROM clock_timestamp())"
#: A process that is stopped in a transaction, or whose machine is gone, would keep all others waiting for its locks.
#: PostgreSQL ends its transaction after these milliseconds, before its lease can be taken over (after 20 seconds).
_LONGEST_PAUSE_MS = 12_000
#: Seconds within which PostgreSQL has to complete a statement, or send the next rows.
_ANSWER_WITHIN = 20.0
#: Connection settings that detect a dead server or network; the address may override them.
_KEEPALIVES = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(_ANSWER_WITHIN * 1000),
}
_UNNAMED = "PostgreSQL"
#: Matches the server's refusal of a database, user or password, in any of its languages.
_REFUSAL = re.compile(r"FATAL: +(.+)")


class PostgresDatabase(Database):
    """PostgreSQL, for a ledger that several machines share. It reconnects after a connection was lost."""

    lock_suffix, share_suffix = " FOR UPDATE", " FOR SHARE"
    serial = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    # Read from the catalog itself, because waiting for the lock does not refresh what `to_regclass` has cached.
    table_names = "SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))"
    #: Returns the size of the whole database, with whatever else is in it.
    size_query = "SELECT pg_database_size(current_database())"
    _connection: _Connection

    def __init__(self, url: str, *, may_upgrade: bool = False) -> None:
        """Connect. `may_upgrade` says that a person has copied an older ledger, which may be brought up to date."""
        self._url, self._may_upgrade = url, may_upgrade
        self.name = _server_name(url)
        self._inside, self._streams = False, count()
        self._connection = self._connect()
        try:
            self.place = f"{self.name}, schema {self.rows('SELECT current_schema()')[0][0]},"
            bring_up_to_date(self)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> _Connection:
        try:
            missing = {
                name: value for name, value in _KEEPALIVES.items() if name not in conninfo_to_dict(self._url)
            }
            connection = _Connection.connect(make_conninfo(self._url, **missing), autocommit=True)
            connection.execute(f"SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE_MS}")
            sent = uptime()
            server = float(connection.execute(_NOW).fetchall()[0][0])
            #: The server's clock, taken as of the middle of the round trip, minus this machine's uptime.
            self._offset = server - (sent + uptime()) / 2
            return connection
        except psycopg.Error as error:
            raise self._unavailable(_failure_to_connect(self.name, error)) from None

    def back_up(self, schema: int) -> None:
        """Raise ConfigurationError until a person says that the database was copied."""
        if not self._may_upgrade:
            raise ConfigurationError(
                f"The ledger in {self.place} is of an older version of patternmill (schema {schema}), and is to be "
                "brought up to this one.",
                code="ledger_schema",
                remedy="Copy the database first (`pg_dump`); then run the same command once with "
                f"PATTERNMILL_CONFIRM={UPGRADE}. Nothing was changed.",
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all or nothing; a lost connection is an error here, and the next transaction reconnects."""
        with self._using() as connection, connection.transaction():
            self._inside = True
            try:
                yield
            finally:
                self._inside = False
            if connection.closed:
                # psycopg ends the transaction of a lost connection without an error.
                raise psycopg.OperationalError("the connection was lost")

    def _sql(self, sql: str) -> Any:
        return _with_percent_signs(sql)

    def stream(self, sql: str, **params: Any) -> Iterator[tuple[Any, ...]]:
        # The cursor needs no transaction, so that writes made meanwhile are durable and a slow reader locks nothing.
        name = f"stream {next(self._streams)}"
        with self._using() as connection, connection.cursor(name, withhold=True) as cursor:
            cursor.execute(self._sql(sql), params)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield from rows

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        rest = iter(params)
        while batch := list(islice(rest, _ROWS_AT_ONCE)):
            with self._using() as connection, connection.cursor() as cursor:
                cursor.executemany(self._sql(sql), batch)
                # After psycopg's pipeline, the server does not time idle transactions until the next statement.
                cursor.execute("SELECT 1")

    def lock(self, name: str) -> None:
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended(:name, 7310841))", name=name)

    def require_in_place(self) -> None:
        """Do nothing: a server has no file that another could replace."""

    def tidy(self) -> None:
        """Do nothing: a server tidies up by itself."""

    def time(self) -> float:
        """Return the server's time: machines whose clocks differ share one ledger."""
        return uptime() + self._offset

    @contextmanager
    def _using(self) -> Iterator[_Connection]:
        """Yield the connection; reconnect where it was lost, but never within a transaction."""
        if self._connection.closed and not self._inside:
            self._connection = self._connect()
        connection = self._connection
        try:
            yield connection
        except psycopg.Error as error:
            is_lost = connection.closed
            if connection.broken:
                connection.close()
            text = mask_passwords(str(error), self._url)
            if not is_lost:
                raise unusable("in PostgreSQL", text) from error
            what = "does not answer" if isinstance(error, _Overdue) else "is unavailable"
            raise self._unavailable(f"{what}: {text}") from error

    def _unavailable(self, what: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The ledger's {self.name} {what}.",
            remedy="Nothing that it acknowledged is lost. See that PATTERNMILL_LEDGER_URL is right and the server is "
            "up, then run the same command again.",
        )


@lru_cache
def _with_percent_signs(sql: str) -> str:
    """Return a statement with psycopg's placeholders; a literal percent sign, as of LIKE, is doubled."""
    return re.sub(r"(?<!:):([a-z_][a-z0-9_]*)", r"%(\1)s", sql.replace("%", "%%"))


class _Overdue(psycopg.OperationalError):
    """Raised when the server has sent nothing for too long."""


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that commits each statement outside of a transaction, and is closed by an overdue result.

    psycopg sets no deadline for a statement, and a frozen server's machine still acknowledges what it is sent.
    """

    def wait(self, gen: Generator[Any, Any, T], interval: float = 0.1, *more: Any) -> T:
        """Wait as psycopg does after everything that it sends, but not for ever. Raises _Overdue."""
        try:
            return super().wait(_within(gen, _ANSWER_WITHIN), interval, *more)
        except _Overdue:
            self.close()
            raise


def _within(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """Limit a wait of psycopg, which resumes this generator when data came, and after each interval without any."""
    until = time.monotonic() + seconds
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > until:
                raise _Overdue(f"nothing came for {seconds:.0f} s")
            awaited = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


def _server_name(url: str) -> str:
    """Return where a database is, for people; only its kind if a misread address might show a part of a password."""
    try:
        address: Mapping[str, Any] = conninfo_to_dict(url)
    except psycopg.Error:
        return _UNNAMED
    host, port = str(address.get("host", "localhost")), str(address.get("port", "5432"))
    if re.fullmatch(r"[\w./:,-]+", host) and re.fullmatch(r"\d{1,5}(,\d{1,5})*", port):
        return f"{_UNNAMED} ({address.get('dbname', 'default')} on {host}:{port})"
    return _UNNAMED


def _failure_to_connect(name: str, error: psycopg.Error) -> str:
    """Quote only the server's own words, because the rest may contain the address and so a password."""
    refusal = _REFUSAL.search(str(error))
    if refusal is None or name == _UNNAMED:
        return f"cannot be reached ({type(error).__name__})"
    return f"refuses the connection: {mask_passwords(refusal[1])}"
