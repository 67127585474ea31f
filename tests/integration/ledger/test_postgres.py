"""What only a database server can do to a ledger: go away, return, and differ from a wrong address."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from patternmill.errors import ConfigurationError, LedgerError, LedgerUnavailable
from patternmill.identifiers import RequestId
from patternmill.ledger.ledger import Ledger, open_database
from patternmill.ledger.postgres import PostgresDatabase
from patternmill.states import AttemptState

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


def test_connection_lost_between_writes_is_reopened(postgres: Ledger, postgres_url: str) -> None:
    """The write that finds it lost is refused; the next one succeeds."""
    begin(postgres, "a")
    cut_off(postgres_url)
    with pytest.raises(LedgerError, match="PostgreSQL"):
        begin(postgres, "b")
    assert begin(postgres, "b").state is AttemptState.INTENDED
    postgres.close()


def test_connection_lost_between_reads_is_reopened(postgres: Ledger, postgres_url: str) -> None:
    """A read outside of a transaction is refused as a LedgerError, and works again."""
    begin(postgres, "a")
    cut_off(postgres_url)
    with pytest.raises(LedgerError):
        postgres.catalogs.lease(STAGING, CATALOG)
    assert postgres.catalogs.lease(STAGING, CATALOG) is None
    assert len(list(postgres.purchases.last_attempts(STAGING, CATALOG))) == 1
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


def test_unreachable_server_is_reported_without_the_address(tmp_path: Path) -> None:
    """It may hold a password."""
    with pytest.raises(LedgerError) as caught:
        open_database("postgresql://user:canary-secret@127.0.0.1:1/nothing", tmp_path)
    assert "PATTERNMILL_LEDGER_URL" in str(caught.value)
    assert "canary-secret" not in f"{caught.value}{caught.value.__cause__!r}"


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


def test_unknown_kind_of_database_is_refused_without_the_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unknown kind of database") as caught:
        open_database("mysql://user:canary-secret@127.0.0.1/nothing", tmp_path)
    assert "canary-secret" not in str(caught.value)


def test_server_ends_the_transaction_of_a_paused_process(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one has its locks, and the paused one, resumed, has written nothing."""
    monkeypatch.setattr("patternmill.ledger.postgres_connection._LONGEST_PAUSE_MS", 500)
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
    monkeypatch.setattr("patternmill.ledger.postgres_connection._LONGEST_PAUSE_MS", 200)
    begin(postgres, "a")
    reader = Ledger(PostgresDatabase(postgres_url))
    stream = reader.purchases.last_attempts(STAGING, CATALOG)
    next(stream)
    time.sleep(0.6)
    assert list(stream) == []
    for ledger in (reader, postgres):
        ledger.close()
