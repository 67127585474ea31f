"""What only a database server can do to a ledger: go away, return, freeze, have a clock, and refuse an address."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from patternmill.errors import LedgerError, LedgerUnavailable, PatternmillError
from patternmill.identifiers import RequestId
from patternmill.ledger import postgres as postgres_module
from patternmill.ledger.ledger import Ledger, open_database
from patternmill.ledger.postgres import PostgresDatabase
from patternmill.states import AttemptState

from .frozen import Frost
from .samples import CATALOG, RUN, STAGING, UNLIMITED, begin, intent, item


@pytest.fixture
def postgres(postgres_url: str) -> Ledger:
    return Ledger(PostgresDatabase(postgres_url))


def cut_off(url: str) -> None:
    """Every connection but this one ends, as when the server restarts."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_lost_connection_is_reopened(postgres: Ledger, postgres_url: str) -> None:
    """The read or write that finds it lost is refused; the next one succeeds."""
    begin(postgres, "a")
    cut_off(postgres_url)
    with pytest.raises(LedgerError, match="PostgreSQL"):
        begin(postgres, "b")
    assert begin(postgres, "b").state is AttemptState.INTENDED
    cut_off(postgres_url)
    with pytest.raises(LedgerError):
        postgres.catalogs.lease(STAGING, CATALOG)
    assert len(list(postgres.purchases.last_attempts(STAGING, CATALOG))) == 2
    postgres.close()


def test_interrupted_transaction_leaves_nothing(postgres: Ledger, postgres_url: str) -> None:
    """Its second half is never written on a new connection."""
    begin(postgres, "a")
    with pytest.raises(LedgerError), postgres.transaction():
        postgres.purchases.add_items(STAGING, CATALOG, [item("b")])
        cut_off(postgres_url)
        for _ in range(2):
            with pytest.raises(LedgerError):
                postgres.purchases.intend(RUN, STAGING, intent("a", 2), UNLIMITED)
    assert postgres.database.rows("SELECT key FROM items") == [("a",)]
    assert postgres.purchases.attempt(RequestId("a/2")) is None
    postgres.close()


def test_no_transaction_is_left_open(postgres: Ledger, postgres_url: str) -> None:
    """Between its operations a ledger holds no lock and no snapshot."""
    begin(postgres, "a")
    list(postgres.purchases.last_attempts(STAGING, CATALOG))
    next(postgres.purchases.last_attempts(STAGING, CATALOG))
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        states = admin.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert states == [("idle",)]
    postgres.close()


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"dbname": "patternmill_none"}, 'database "patternmill_none"'),
        ({"user": "nobody_here"}, '"nobody_here"'),
    ],
)
def test_wrong_name_is_not_called_unreachable(
    postgres_url: str, changes: dict[str, str], refusal: str
) -> None:
    """The server is up, and says what is wrong; the password is not shown."""
    address = make_conninfo(postgres_url, **{"password": "swordfish"} | changes)
    with pytest.raises(LedgerUnavailable, match=f"refuses the connection: .*{refusal}") as refused:
        PostgresDatabase(address)
    assert "swordfish" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("postgresql://user:canary-secret@127.0.0.1:1/nothing", "PATTERNMILL_LEDGER_URL"),
        ("mysql://user:canary-secret@127.0.0.1/nothing", "unknown kind of database"),
    ],
)
def test_refused_address_is_not_shown(tmp_path: Path, address: str, text: str) -> None:
    """It may contain a password."""
    with pytest.raises(PatternmillError) as caught:
        open_database(address, tmp_path)
    assert text in f"{caught.value}{caught.value.remedy}"
    assert "canary-secret" not in f"{caught.value}{caught.value.__cause__!r}"


def test_server_ends_the_transaction_of_a_paused_process(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one has its locks, and the paused one, resumed, has written nothing."""
    monkeypatch.setattr("patternmill.ledger.postgres._LONGEST_PAUSE_MS", 500)
    still, other = Ledger(PostgresDatabase(postgres_url)), Ledger(PostgresDatabase(postgres_url))
    with other.transaction():
        hold = other.catalogs.claim_lease(STAGING, CATALOG, RUN, "{}", over=None)
    assert hold is not None
    with pytest.raises(LedgerUnavailable), still.transaction(hold):
        still.purchases.add_items(STAGING, CATALOG, [item("a")])
        with other.transaction(hold):
            other.catalogs.renew_lease(hold)
    assert list(other.database.rows("SELECT key FROM items")) == []
    for ledger in (still, other):
        ledger.close()


def test_slow_reader_of_a_stream_is_not_ended(
    postgres: Ledger, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with an export into a pager."""
    monkeypatch.setattr("patternmill.ledger.postgres._LONGEST_PAUSE_MS", 200)
    begin(postgres, "a")
    reader = Ledger(PostgresDatabase(postgres_url))
    stream = reader.purchases.last_attempts(STAGING, CATALOG)
    next(stream)
    time.sleep(0.6)
    assert list(stream) == []
    for ledger in (reader, postgres):
        ledger.close()


# -- a server that answers nothing: every wait ends


@pytest.fixture
def frost(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Frost]:
    """The proxy to the server, and deadlines that a test can wait for."""
    monkeypatch.setattr(postgres_module, "_ANSWER_WITHIN", 0.5)
    monkeypatch.setitem(postgres_module._KEEPALIVES, "connect_timeout", 2)
    with Frost(postgres_url) as proxy:
        yield proxy
        proxy.is_frozen.clear()


WAITS: dict[str, Callable[[Ledger], object]] = {
    "a read": lambda ledger: ledger.catalogs.lease(STAGING, CATALOG),
    "many changes": lambda ledger: ledger.purchases.add_items(STAGING, CATALOG, [item("half")]),
    "a stream": lambda ledger: list(ledger.purchases.last_attempts(STAGING, CATALOG)),
}


@pytest.mark.parametrize("wait", WAITS)
def test_operations_on_a_frozen_database_end(frost: Frost, wait: str) -> None:
    """With an error that names the database as unresponsive; afterwards the ledger can be used again."""
    ledger = Ledger(PostgresDatabase(frost.url))
    begin(ledger, "a")
    frost.is_frozen.set()
    with pytest.raises(LedgerUnavailable, match=r"PostgreSQL \(patternmill_test_.* does not answer"):
        WAITS[wait](ledger)
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
    time.sleep(1.2)
    next(stream)
    frost.is_frozen.set()
    with pytest.raises(LedgerUnavailable):
        list(stream)
    ledger.close()


def test_connecting_to_a_frozen_server_ends(frost: Frost) -> None:
    """A server that accepts the connection and answers nothing."""
    frost.is_frozen.set()
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        PostgresDatabase(frost.url)


# -- its clock


def server_time(ledger: Ledger) -> float:
    return float(ledger.database.rows("SELECT extract(epoch FROM clock_timestamp())")[0][0])


@pytest.mark.parametrize("skew", [-26 * 3600.0, 26 * 3600.0])
def test_postgres_ledger_is_dated_by_the_servers_clock(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    """Attempts, events and everything else, whatever the machine's clock says."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + skew)
    ledger = Ledger(PostgresDatabase(postgres_url))
    assert ledger.now() == pytest.approx(server_time(ledger), abs=1)
    assert begin(ledger, "a").intended_at == pytest.approx(server_time(ledger), abs=1)
    ledger.close()


def test_servers_clock_is_measured_again(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After half a minute, so that a clock that was set is followed; an answer that took too long is no measurement."""
    now, answers, seconds = 50.0, iter((1000.0, 5000.0, 9000.0)), iter((0.4, 9.0, 0.0))

    def ask(sql: str) -> SimpleNamespace:
        nonlocal now
        now += next(seconds)
        return SimpleNamespace(fetchall=lambda: [[next(answers)]])

    database = PostgresDatabase(postgres_url)
    monkeypatch.setattr(postgres_module, "uptime", lambda: now)
    database._measured_at = float("-inf")
    database._measure_clock(SimpleNamespace(execute=ask))  # type: ignore[arg-type]
    assert database.time() == pytest.approx(1000.2)
    now += 30
    database._measure_clock(SimpleNamespace(execute=ask))  # type: ignore[arg-type]
    assert database.time() == pytest.approx(1039.2)
    database._measure_clock(SimpleNamespace(execute=ask))  # type: ignore[arg-type]
    assert database.time() == 9000
    database.close()
