"""A ledger whose database server goes away, returns, freezes, has a clock of its own, or refuses an address."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from patternmill.errors import LedgerError, LedgerUnavailable, PatternmillError
from patternmill.identifiers import RequestId
from patternmill.ledger import postgres as postgres_module
from patternmill.ledger.ledger import Ledger, open_database
from patternmill.ledger.postgres import PostgresDatabase
from patternmill.states import AttemptState

from .frozen import Frost, frost_over
from .samples import CATALOG, RUN, STAGING, UNLIMITED, begin, intent, item


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Ledger]:
    with Ledger(PostgresDatabase(postgres_url)) as ledger:
        yield ledger


def cut_off(url: str) -> None:
    """End every connection except this one, as a restart of the server does."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_lost_connection_is_reopened(postgres: Ledger, postgres_url: str) -> None:
    """What finds it lost is refused; the next read or write succeeds, but never the second half of a transaction."""
    begin(postgres, "a")
    cut_off(postgres_url)
    with pytest.raises(LedgerError, match="PostgreSQL"):
        begin(postgres, "b")
    assert begin(postgres, "b").state is AttemptState.INTENDED
    cut_off(postgres_url)
    with pytest.raises(LedgerError):
        postgres.catalogs.lease(STAGING, CATALOG)
    with pytest.raises(LedgerError), postgres.transaction():
        postgres.purchases.add_items(STAGING, CATALOG, [item("c")])
        cut_off(postgres_url)
        for _ in range(2):
            with pytest.raises(LedgerError):
                postgres.purchases.intend(RUN, intent("a", 2), UNLIMITED)
    assert len(list(postgres.purchases.last_attempts(STAGING, CATALOG))) == 2
    assert postgres.database.rows("SELECT key FROM items ORDER BY key") == [("a",), ("b",)]
    assert postgres.purchases.attempt(RequestId("a/2")) is None


def test_refused_address_is_not_shown(postgres_url: str) -> None:
    """It may contain a password. A server that is up and refuses a name is not called unreachable."""
    password = "canary-secret"
    for wrong in ({"dbname": "patternmill_none"}, {"user": "nobody_here"}):
        with pytest.raises(
            LedgerUnavailable, match=r"refuses the connection: .*(_none|nobody_here)"
        ) as caught:
            PostgresDatabase(make_conninfo(postgres_url, password=password, **wrong))
        assert password not in str(caught.value)
    for address, text in (
        (f"postgresql://user:{password}@127.0.0.1:1/nothing", "PATTERNMILL_LEDGER_URL"),
        (f"mysql://user:{password}@127.0.0.1/nothing", "cannot be reached"),
    ):
        with pytest.raises(PatternmillError) as error:
            open_database(address)
        assert text in f"{error.value}{error.value.remedy}"
        assert password not in f"{error.value}{error.value.__cause__!r}"


def test_server_ends_the_transaction_of_a_paused_process(
    postgres: Ledger, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one has its locks, and the paused one, resumed, has written nothing."""
    monkeypatch.setattr(postgres_module, "_LONGEST_PAUSE_MS", 500)
    still = Ledger(PostgresDatabase(postgres_url))
    with postgres.transaction():
        hold = postgres.catalogs.claim_lease(STAGING, CATALOG, RUN, "{}", over=None)
    assert hold is not None
    with pytest.raises(LedgerUnavailable), still.transaction(hold):
        still.purchases.add_items(STAGING, CATALOG, [item("a")])
        with postgres.transaction(hold):
            postgres.catalogs.renew_lease(hold)
    assert postgres.database.rows("SELECT key FROM items") == []
    still.close()


def test_slow_reader_of_a_stream_is_not_ended(
    postgres: Ledger, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader can be slow, for example an export into a pager."""
    begin(postgres, "a")
    monkeypatch.setattr(postgres_module, "_LONGEST_PAUSE_MS", 50)
    with Ledger(PostgresDatabase(postgres_url)) as reader:
        stream = reader.purchases.last_attempts(STAGING, CATALOG)
        next(stream)
        time.sleep(0.3)
        assert list(stream) == []


# -- a server that answers nothing: every wait ends


@pytest.fixture
def frost(postgres_url: str) -> Iterator[Frost]:
    """The proxy to the server."""
    with frost_over(postgres_url) as proxy:
        yield proxy


def commit(ledger: Ledger) -> None:
    with ledger.database.transaction():
        ledger.database.execute("SELECT 1")


WAITS: dict[str, Callable[[Ledger], object]] = {
    "a read": lambda ledger: ledger.catalogs.lease(STAGING, CATALOG),
    "many changes": lambda ledger: ledger.purchases.add_items(STAGING, CATALOG, [item("half")]),
    "a stream": lambda ledger: list(ledger.purchases.last_attempts(STAGING, CATALOG)),
    "a transaction": commit,
}


def test_operations_on_a_frozen_database_end(frost: Frost, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an error that names the database as unresponsive; afterwards the ledger can be used again."""
    with Ledger(PostgresDatabase(frost.url)) as ledger:
        begin(ledger, "a")
        for wait in WAITS.values():
            with monkeypatch.context() as impatient:
                impatient.setattr(postgres_module, "_ANSWER_WITHIN", 0.3)
                frost.flows.clear()
                with pytest.raises(
                    LedgerUnavailable, match=r"PostgreSQL \(patternmill_test_.* does not answer"
                ):
                    wait(ledger)
            frost.flows.set()
            assert [each.item_key for each in ledger.purchases.last_attempts(STAGING, CATALOG)] == ["a"]
    frost.flows.clear()
    monkeypatch.setitem(postgres_module._KEEPALIVES, "connect_timeout", 2)
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        PostgresDatabase(frost.url)


def test_commit_and_stream_without_an_answer_end(frost: Frost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server freezes between the last statement and the commit, or between two parts of a stream."""
    with Ledger(PostgresDatabase(frost.url)) as ledger:
        with ledger.transaction():
            ledger.purchases.add_items(STAGING, CATALOG, [item(f"i{number}") for number in range(1500)])
        stream = ledger.database.stream("SELECT key FROM items")
        next(stream)
        with monkeypatch.context() as impatient:
            impatient.setattr(postgres_module, "_ANSWER_WITHIN", 0.3)
            frost.flows.clear()
            with pytest.raises(LedgerUnavailable):
                list(stream)
        frost.flows.set()
        with monkeypatch.context() as impatient, pytest.raises(LedgerUnavailable), ledger.transaction():
            ledger.purchases.add_items(STAGING, CATALOG, [item("a")])
            impatient.setattr(postgres_module, "_ANSWER_WITHIN", 0.3)
            frost.flows.clear()
        frost.flows.set()
        assert ledger.database.rows("SELECT key FROM items WHERE key = 'a'") in ([], [("a",)])


# -- its clock


@pytest.mark.parametrize("skew", [-26 * 3600.0, 26 * 3600.0])
def test_postgres_ledger_is_dated_by_the_servers_clock(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    """Attempts, events and everything else, whatever the machine's clock says."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + skew)
    with Ledger(PostgresDatabase(postgres_url)) as ledger:
        ((server_time,),) = ledger.database.rows("SELECT extract(epoch FROM clock_timestamp())")
        assert begin(ledger, "a").intended_at == pytest.approx(float(server_time), abs=60)
