"""A run that was taken over, or whose ledger broke, stops: nothing that it does from there on counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from patternmill.errors import LeaseLost, LedgerError
from patternmill.identifiers import RunId
from patternmill.runs.run import Run
from patternmill.states import Outcome
from tests.hostile.in_process import Service

from .workshop import Workshop, drive, many


def take_over(shop: Workshop) -> None:
    """Another run takes the catalog while this one stands still."""
    with shop.ledger() as ledger, ledger.transaction():
        lease = ledger.catalogs.lease("staging", "spring")
        assert lease is not None
        ledger.catalogs.claim_lease("staging", "spring", RunId("other"), "", over=lease)


def test_run_that_was_taken_over_stops(shop: Workshop, service: Service) -> None:
    """It buys no more, writes no more, and has the reason; the taker loses nothing."""
    shop.at(4, lambda: take_over(shop))
    assert shop.broken(many(30), LeaseLost, max_in_flight=2) == "fenced"
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
        ledger.database.execute("UPDATE ledger SET id = 'another'")


def _upgraded(shop: Workshop) -> None:
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE ledger SET schema = schema + 1")


@pytest.mark.parametrize("change", [_removed, _moved, _replaced, _another, _upgraded])
def test_ledger_that_is_replaced_under_a_run_stops_it(
    shop: Workshop, service: Service, change: Callable[[Workshop], None]
) -> None:
    """Before the next purchase: else everything after it would be bought without a record."""
    shop.at(4, lambda: change(shop))
    code = shop.broken(many(12), LedgerError, max_in_flight=2)
    assert code == ("ledger_schema" if change is _upgraded else "ledger_replaced")
    # What was in flight, and nothing more.
    assert len(service.creates) <= 10


def test_full_disk_stops_before_the_next_purchase(shop: Workshop, service: Service) -> None:
    """Every create that reached the service had its intent on disk; with room again, the run can be resumed."""

    async def fill_up(run: Run) -> None:
        await run.writer.run(lambda ledger: ledger.database.execute("PRAGMA max_page_count = 1"))
        await drive(run)

    shop.broken(many(200), LedgerError, driving=fill_up, max_in_flight=4)
    intended = {one.request_id for these in shop.attempts().values() for one in these}
    assert {create.request_id for create in service.creates} <= intended
    shop.bury()
    assert shop.run(many(200), max_in_flight=50).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 400
