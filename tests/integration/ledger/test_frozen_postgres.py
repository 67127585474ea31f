"""A PostgreSQL that freezes without closing: every wait ends, the loop stays free, and nothing is bought twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from patternmill.errors import LedgerUnavailable
from patternmill.ledger import ledger as ledger_module
from patternmill.ledger import postgres_connection
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.postgres import PostgresDatabase

from .frozen import Frost
from .samples import CATALOG, STAGING, begin, item


@pytest.fixture
def frost(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Frost]:
    """The proxy to the server, and deadlines that a test can wait for."""
    monkeypatch.setattr(postgres_connection, "_ANSWER_WITHIN", 1.0)
    monkeypatch.setitem(postgres_connection._KEEPALIVES, "connect_timeout", 2)
    monkeypatch.setattr(ledger_module, "_PATIENCE", 4.0)
    monkeypatch.setattr(ledger_module, "_PATIENCE_STOPPED", 1.0)
    with Frost(postgres_url) as proxy:
        yield proxy
        proxy.is_frozen.clear()


def in_a_transaction(ledger: Ledger) -> None:
    with ledger.transaction():
        pass


def half_a_transaction(ledger: Ledger) -> None:
    with ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item("half")])


WAITS: dict[str, Callable[[Ledger], object]] = {
    "a read": lambda ledger: ledger.catalogs.lease(STAGING, CATALOG),
    "a transaction's beginning": in_a_transaction,
    "many changes": half_a_transaction,
    "a stream": lambda ledger: list(ledger.purchases.last_attempts(STAGING, CATALOG)),
    "a lock": lambda ledger: ledger.database.lock("spending"),
}


@pytest.mark.parametrize("wait", WAITS)
def test_operations_on_a_frozen_database_end(frost: Frost, wait: str) -> None:
    """With an error that names the database as unresponsive; afterwards the ledger can be used again."""
    ledger = Ledger(PostgresDatabase(frost.url))
    begin(ledger, "a")
    frost.is_frozen.set()
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable, match=r"PostgreSQL \(patternmill_test_.* does not answer"):
        WAITS[wait](ledger)
    assert time.monotonic() - began < 5
    frost.is_frozen.clear()
    assert [attempt.item_key for attempt in ledger.purchases.last_attempts(STAGING, CATALOG)] == ["a"]
    ledger.close()


def test_commit_without_an_answer_ends(frost: Frost) -> None:
    """The server freezes between the last statement and the commit."""
    ledger = Ledger(PostgresDatabase(frost.url))
    with pytest.raises(LedgerUnavailable), ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item("a")])
        frost.is_frozen.set()
    frost.is_frozen.clear()
    assert ledger.database.rows("SELECT key FROM items") in ([], [("a",)])
    ledger.close()


def test_frozen_stream_ends(frost: Frost) -> None:
    """As a read does; a slow reader is not taken for a frozen server."""
    ledger = Ledger(PostgresDatabase(frost.url))
    with ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item(f"i{number}") for number in range(1500)])
    stream = ledger.database.stream("SELECT key FROM items")
    next(stream)
    time.sleep(1.8)
    next(stream)
    frost.is_frozen.set()
    with pytest.raises(LedgerUnavailable):
        list(stream)
    ledger.close()


def test_connecting_to_a_frozen_server_ends(frost: Frost) -> None:
    """A server that accepts the connection and answers nothing."""
    frost.is_frozen.set()
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        PostgresDatabase(frost.url)
    assert time.monotonic() - began < 6
