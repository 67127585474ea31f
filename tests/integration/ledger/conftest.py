"""A ledger on each database: SQLite in a folder, PostgreSQL in a database of this session's own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from patternmill.errors import LedgerError
from patternmill.ledger.database import MIGRATIONS
from patternmill.ledger.ledger import Ledger, open_database
from tests.unit.cli.ledgers import Clock as Clock

SERVER = "postgresql://postgres@127.0.0.1:5432"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the address of an empty database, dropped after the session. Without PostgreSQL, skip, or fail in CI."""
    name = f"patternmill_test_{uuid.uuid4().hex[:12]}"
    try:
        with psycopg.connect(f"{SERVER}/postgres", autocommit=True, connect_timeout=3) as admin:
            admin.execute(f'CREATE DATABASE "{name}"')
            # The server is never killed: what is committed need not be on the disk.
            admin.execute(f'ALTER DATABASE "{name}" SET synchronous_commit TO off')
    except psycopg.Error as error:
        reason = f"no PostgreSQL on 127.0.0.1:5432 that lets `postgres` in ({type(error).__name__})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    try:
        yield f"{SERVER}/{name}"
    finally:
        with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


#: Empties the tables of a ledger of this version, which takes a tenth of the time of making them.
EMPTY = """
SET session_replication_role = replica;
DELETE FROM documents; DELETE FROM items; DELETE FROM attempts; DELETE FROM events; DELETE FROM runs;
DELETE FROM run_rows; DELETE FROM run_groups; DELETE FROM leases; DELETE FROM spending; DELETE FROM approvals;
DELETE FROM catalog_rows; DELETE FROM pauses; UPDATE ledger SET brake = 0
"""


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """Return the address of the session's database, with an empty ledger in it, or nothing."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        with suppress(psycopg.Error):
            if connection.execute("SELECT schema FROM ledger").fetchall() == [(len(MIGRATIONS),)]:
                connection.execute(EMPTY)
                return postgres_server
        connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgres_server


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty ledger."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/home/ledger.sqlite3"
    return str(request.getfixturevalue("postgres_url"))


OpenLedger = Callable[[], Ledger]


@pytest.fixture
def open_ledger(url: str, clock: Clock) -> Iterator[OpenLedger]:
    """Opens the same ledger once more; everything is closed after the test."""
    opened: list[Ledger] = []

    def opens() -> Ledger:
        opened.append(Ledger(open_database(url), clock=clock))
        return opened[-1]

    yield opens
    for ledger in opened:
        with suppress(LedgerError):
            ledger.close()


@pytest.fixture
def ledger(open_ledger: OpenLedger) -> Ledger:
    return open_ledger()
