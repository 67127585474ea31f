"""A connection to PostgreSQL every wait of which ends, and what may be said of its address."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Mapping
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from patternmill.passwords import mask_passwords

#: A process that is stopped in a transaction, or whose machine is gone, would keep all others waiting for its locks.
#: PostgreSQL ends it after this, before its lease is taken over after 20 seconds without a heartbeat.
_LONGEST_PAUSE_MS = 12_000
#: Seconds in which PostgreSQL has to answer a statement, or send the next rows.
_ANSWER_WITHIN = 20.0
#: Detect a server or a network that does not answer any more; the address may set others.
_KEEPALIVES = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(_ANSWER_WITHIN * 1000),
}
_UNNAMED = "PostgreSQL"
#: What the server says of a database, user or password that it refuses, in any of its languages.
_REFUSAL = re.compile(r"FATAL: +(.+)")
T = TypeVar("T")


class Overdue(psycopg.OperationalError):
    """Nothing came for too long."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """Commits each statement outside of a transaction. An answer that is overdue closes it.

    A statement has no deadline on the client's side, and a server that is frozen still acknowledges what it is sent.
    """

    def wait(self, gen: Generator[Any, Any, T], interval: float = 0.1, *more: Any) -> T:
        """As psycopg waits for all that it sends. Raises Overdue."""
        try:
            return super().wait(_within(gen, _ANSWER_WITHIN), interval, *more)
        except Overdue:
            self.close()
            raise


def _within(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """psycopg goes on with it when something came, and at each of its intervals with nothing."""
    until = time.monotonic() + seconds
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > until:
                raise Overdue(f"nothing came for {seconds:.0f} s")
            awaited = gen.send(ready)
    except StopIteration as end:
        answer: T = end.value
        return answer


def connect(url: str) -> Connection:
    """Raises psycopg.Error, and Overdue."""
    missing = {name: value for name, value in _KEEPALIVES.items() if name not in conninfo_to_dict(url)}
    connection = Connection.connect(make_conninfo(url, **missing), autocommit=True)
    connection.execute(f"SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE_MS}")
    return connection


def server_name(url: str) -> str:
    """Where a database is, for people. What is misread of an address may be a part of its password."""
    try:
        address: Mapping[str, Any] = conninfo_to_dict(url)
    except psycopg.Error:
        return _UNNAMED
    database, host, port = (
        str(address.get(name, default))
        for name, default in (("dbname", "default"), ("host", "localhost"), ("port", "5432"))
    )
    plain = re.fullmatch(r"[\w./:,-]+", host) and re.fullmatch(r"\d{1,5}(,\d{1,5})*", port)
    return f"{_UNNAMED} ({database} on {host}:{port})" if plain else _UNNAMED


def failure_to_connect(name: str, error: psycopg.Error) -> str:
    """Only the server's own words are quoted: the rest may have the address, and with it a password."""
    refusal = _REFUSAL.search(str(error))
    if refusal is None or name == _UNNAMED:
        return f"cannot be reached ({type(error).__name__})"
    return f"refuses the connection: {mask_passwords(refusal[1])}"
