"""A PostgreSQL that freezes without closing: every wait ends, the loop stays free, and nothing is bought twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from patternmill.errors import LedgerUnavailable
from patternmill.ledger import ledger as ledger_module
from patternmill.ledger import postgres
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.postgres import PostgresDatabase
from patternmill.states import Outcome, Stage
from tests.unit.runs.fake_studio import FakeStudioApi, Service
from tests.unit.runs.workshop import Workshop, many

from .frozen import Frost
from .samples import CATALOG, STAGING, begin, item


@pytest.fixture
def frost(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Frost]:
    """The proxy to the server, and deadlines that a test can wait for."""
    monkeypatch.setattr(postgres, "_ANSWER_WITHIN", 1.0)
    monkeypatch.setitem(postgres._KEEPALIVES, "connect_timeout", 2)
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
        ledger.add_items(STAGING, CATALOG, [item("half")])


WAITS: dict[str, Callable[[Ledger], object]] = {
    "a read": lambda ledger: ledger.lease(STAGING, CATALOG),
    "a transaction's beginning": in_a_transaction,
    "many changes": half_a_transaction,
    "a stream": lambda ledger: list(ledger.last_attempts(STAGING, CATALOG)),
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
    assert [attempt.item_key for attempt in ledger.last_attempts(STAGING, CATALOG)] == ["a"]
    ledger.close()


def test_commit_without_an_answer_ends(frost: Frost) -> None:
    """The server freezes between the last statement and the commit."""
    ledger = Ledger(PostgresDatabase(frost.url))
    with pytest.raises(LedgerUnavailable), ledger.transaction():
        ledger.add_items(STAGING, CATALOG, [item("a")])
        frost.is_frozen.set()
    frost.is_frozen.clear()
    assert ledger.database.rows("SELECT key FROM items") in ([], [("a",)])
    ledger.close()


def test_frozen_stream_ends(frost: Frost) -> None:
    """As a read does; a slow reader is not taken for a frozen server."""
    ledger = Ledger(PostgresDatabase(frost.url))
    with ledger.transaction():
        ledger.add_items(STAGING, CATALOG, [item(f"i{number}") for number in range(1500)])
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


def test_many_quick_statements_are_not_a_freeze(frost: Frost) -> None:
    ledger = Ledger(PostgresDatabase(frost.url))
    with ledger.transaction():
        for _ in range(4):
            ledger.database.rows("SELECT pg_sleep(0.6)")
    ledger.close()


def test_keepalive_settings_of_the_address_count(frost: Frost) -> None:
    ledger = PostgresDatabase(f"{frost.url}?keepalives_idle=77")
    parameters = ledger._connection.info.get_parameters()
    assert parameters["keepalives_idle"] == "77"
    assert parameters["keepalives_count"] == "3"
    ledger.close()


class Freezing:
    """A run whose database freezes in the middle, watched from its own event loop."""

    def __init__(self, frost: Frost, shop: Workshop, *, stopped: bool = False) -> None:
        self._frost, self._shop, self._stopped = frost, shop, stopped
        self.longest_pause = 0.0
        self.reported: set[str] = set()
        self.reason = ""

    def run(self) -> float:
        """Returns for how long the run went on after the freeze. Raises what ends it."""
        return asyncio.run(asyncio.wait_for(self._main(), 40))

    async def _main(self) -> float:
        api, run = await self._shop.begin(many(30), max_in_flight=4)
        beating = asyncio.create_task(self._beat(run))
        driving = asyncio.create_task(self._drive(run, api))
        while run.progress.made[Stage.PRODUCT] < 3:
            await asyncio.sleep(0.005)
        self._frost.is_frozen.set()
        began = time.monotonic()
        if self._stopped:
            await asyncio.sleep(0.5)
            run.stop("Stopped by SIGINT.")
        try:
            await driving
            with pytest.raises(LedgerUnavailable) as caught:
                await run.end()
        finally:
            beating.cancel()
        self.reason = f"{run.halt.reason.message if run.halt.reason else ''} {caught.value}"
        assert run.halt.reason is not None
        assert run.halt.reason.outcome is (Outcome.CANCELLED if self._stopped else Outcome.FAILED)
        return time.monotonic() - began

    async def _drive(self, run: object, api: FakeStudioApi) -> None:
        from tests.unit.runs.workshop import drive

        await drive(run)  # type: ignore[arg-type, attr-defined]

    async def _beat(self, run: object) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.05)
            self.longest_pause = max(self.longest_pause, time.monotonic() - before)
            self.reported.add(run.writer.waiting.partition(" since")[0])  # type: ignore[attr-defined]


@pytest.mark.parametrize("stopped", [False, True], ids=["alone", "stopped by a person"])
def test_run_over_a_frozen_database_ends_and_can_be_resumed(
    frost: Frost, postgres_url: str, tmp_path: Path, stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in time, its loop is never blocked, it names what it waits for, and nothing is bought twice."""
    monkeypatch.setattr(ledger_module, "_SHOWN_AFTER", 0.5)
    service = Service()
    shop = Workshop(tmp_path / "home", service, SecretStr(frost.url))
    freezing = Freezing(frost, shop, stopped=stopped)
    assert freezing.run() < (8 if stopped else 12)
    assert freezing.longest_pause < 1
    assert any(reported.startswith("waiting for the ledger's PostgreSQL") for reported in freezing.reported)
    assert "PostgreSQL" in freezing.reason
    frost.is_frozen.clear()
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        # As the server does once it thaws: the connection is closed.
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    shop.bury()
    assert shop.run(many(30)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 60
