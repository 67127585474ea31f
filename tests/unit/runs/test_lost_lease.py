"""A run that was taken over, or whose ledger broke, stops: nothing that it does from there on counts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable

import pytest

from patternmill.errors import LeaseLost, LedgerError
from patternmill.identifiers import RunId
from patternmill.runs.run import Run
from patternmill.states import Outcome

from .fake_studio import Create, FakeStudioApi, Service
from .workshop import Workshop, drive, many, rows


def take_over(shop: Workshop) -> None:
    """Another run takes the catalog while this one stands still."""
    with shop.ledger() as ledger, ledger.transaction():
        lease = ledger.catalogs.lease("staging", "spring")
        assert lease is not None
        ledger.catalogs.claim_lease("staging", "spring", RunId("other"), "", over=lease)


def test_run_that_was_taken_over_stops(shop: Workshop, service: Service) -> None:
    """It buys no more, writes no more, and has the reason; the taker loses nothing."""
    taken = False

    def received(create: Create) -> None:
        nonlocal taken
        if not taken and create.name == "prompt 003":
            taken = True
            take_over(shop)

    service.at_create = received

    async def main() -> None:
        _, run = await shop.begin(many(30), max_in_flight=2)
        await drive(run)
        assert run.halt.reason is not None and run.halt.reason.code == "fenced"
        with pytest.raises(LeaseLost):
            await run.end()

    asyncio.run(asyncio.wait_for(main(), 30))
    assert len(service.bought) <= 10
    service.at_create = lambda _: None
    assert shop.run(many(30)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 60


def _removed(shop: Workshop) -> None:
    (shop.home / "ledger.sqlite3").unlink()


def _moved(shop: Workshop) -> None:
    shop.home.rename(shop.home.with_name("elsewhere"))


def _replaced(shop: Workshop) -> None:
    file = shop.home / "ledger.sqlite3"
    shutil.copy(file, shop.home / "copy")
    (shop.home / "copy").replace(file)


def _another(shop: Workshop) -> None:
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE identity SET id = 'another'")


@pytest.mark.parametrize("change", [_removed, _moved, _replaced, _another])
def test_ledger_that_is_replaced_under_a_run_stops_it(
    shop: Workshop, service: Service, change: Callable[[Workshop], None]
) -> None:
    """Before the next purchase: else everything after it would be bought without a record."""
    changed = False

    def received(create: Create) -> None:
        nonlocal changed
        if not changed and create.name == "prompt 003":
            changed = True
            change(shop)

    service.at_create = received

    async def main() -> None:
        _, run = await shop.begin(many(12), max_in_flight=2)
        await drive(run)
        assert run.halt.reason is not None and run.halt.reason.code == "ledger_replaced"
        with pytest.raises(LedgerError, match="removed, replaced or moved"):
            await run.end()

    asyncio.run(asyncio.wait_for(main(), 30))
    # What was in flight, and nothing more.
    assert len(service.creates) <= 10


def test_full_disk_stops_before_the_next_purchase(shop: Workshop, service: Service) -> None:
    """Every create that reached the service had its intent on disk; with room again, the run can be resumed."""

    async def main() -> None:
        _, run = await shop.begin(many(200), max_in_flight=4)
        await run.writer.run(lambda ledger: ledger.database.execute("PRAGMA max_page_count = 1"))
        await drive(run)
        assert run.halt.reason is not None and run.halt.reason.outcome is Outcome.FAILED
        with pytest.raises(LedgerError):
            await run.end()

    asyncio.run(asyncio.wait_for(main(), 30))
    intended = {one.request_id for these in shop.attempts().values() for one in these}
    assert {create.request_id for create in service.creates} <= intended
    shop.bury()
    assert shop.run(many(200), max_in_flight=50).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 400


def test_lost_heartbeat_halts_new_items(shop: Workshop) -> None:
    """The loss that the heartbeat finds, before any write does, is the run's reason."""

    async def watch(run: Run, api: FakeStudioApi) -> None:
        run._lost(LeaseLost("Another run took over."))

    ended = shop.run(rows(("H-1", "herons")), watch=watch)
    assert ended.outcome in (Outcome.FAILED, Outcome.COMPLETED)
    assert ended.outcome is Outcome.COMPLETED or "took over" in (ended.ending.record.reason or "")
