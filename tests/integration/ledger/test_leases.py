"""The contract of the ledger on each database: one run drives a catalog, and the one taken over writes no more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from patternmill.errors import LeaseLost, LedgerError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Lease

from .conftest import OpenLedger
from .samples import CATALOG, RUN, STAGING, UNLIMITED, begin, intent, item

OTHER = RunId("run-2")


def take(ledger: Ledger, run: RunId = RUN, over: int | None = None, catalog: str = CATALOG) -> Lease | None:
    seen = ledger.catalogs.lease(STAGING, catalog)
    with ledger.transaction():
        over_it = replace(seen, fence=over) if seen and over else None
        return ledger.catalogs.claim_lease(STAGING, catalog, run, f'{{"of":"{run}"}}', over=over_it)


def held(ledger: Ledger, run: RunId = RUN, over: int | None = None) -> Lease:
    hold = take(ledger, run, over)
    assert hold is not None
    return hold


def test_free_catalog_is_leased(ledger: Ledger) -> None:
    """The first fence is 1."""
    assert ledger.catalogs.lease(STAGING, CATALOG) is None
    assert held(ledger) == Lease(STAGING, CATALOG, 1, RUN)
    assert ledger.catalogs.lease(STAGING, CATALOG) == Lease(STAGING, CATALOG, 1, RUN, '{"of":"run-1"}', 0)


def test_each_catalog_has_its_own_lease(ledger: Ledger) -> None:
    held(ledger)
    assert take(ledger, OTHER, catalog="autumn") == Lease(STAGING, "autumn", 1, OTHER)


def test_leased_catalog_needs_the_present_fence(ledger: Ledger) -> None:
    """A taker who has not seen the present fence is too late."""
    held(ledger)
    assert take(ledger, OTHER) is None
    second = held(ledger, OTHER, over=1)
    assert second.fence == 2
    assert take(ledger, RunId("run-3"), over=1) is None
    assert ledger.catalogs.lease(STAGING, CATALOG) == Lease(STAGING, CATALOG, 2, OTHER, '{"of":"run-2"}', 0)


def test_another_ledger_in_the_place_of_ours_is_not_written(ledger: Ledger) -> None:
    hold = held(ledger)
    with ledger.transaction():
        ledger.database.execute("UPDATE identity SET id = 'another'")
    with pytest.raises(LedgerError, match="removed, replaced or moved"), ledger.transaction(hold):
        pytest.fail("nothing is written")


def test_heartbeats_are_counted(ledger: Ledger) -> None:
    """From one again with each new holder."""
    hold = held(ledger)
    for beats in (1, 2, 3):
        with ledger.transaction(hold):
            ledger.catalogs.renew_lease(hold)
        kept = ledger.catalogs.lease(STAGING, CATALOG)
        assert kept == Lease(STAGING, CATALOG, 1, RUN, '{"of":"run-1"}', beats)
    held(ledger, OTHER, over=1)
    assert ledger.catalogs.lease(STAGING, CATALOG) == Lease(STAGING, CATALOG, 2, OTHER, '{"of":"run-2"}', 0)


def test_released_catalog_keeps_its_fence(ledger: Ledger) -> None:
    """The next holder's is newer, so that late writes of the earlier one are refused."""
    hold = held(ledger)
    with ledger.transaction(hold):
        ledger.catalogs.release_lease(hold)
    assert ledger.catalogs.lease(STAGING, CATALOG) == Lease(STAGING, CATALOG, 1, RUN, "", 0)
    assert held(ledger, OTHER, over=1).fence == 2


def test_stop_is_on_record_until_the_next_run(ledger: Ledger) -> None:
    """Whatever becomes of the process that was asked; one that was taken over records nothing."""
    hold = held(ledger)
    with ledger.transaction():
        ledger.catalogs.record_stop(hold, "Cancelled in the Prefect UI.")
    assert [lease.stop for lease in ledger.catalogs.held_leases()] == ["Cancelled in the Prefect UI."]
    held(ledger, OTHER, over=1)
    assert [lease.stop for lease in ledger.catalogs.held_leases()] == [None]
    with pytest.raises(LeaseLost), ledger.transaction():
        ledger.catalogs.record_stop(hold, "late")


def test_fenced_writer_cannot_write(ledger: Ledger) -> None:
    """A process that was paused while another took over: none of its writes count."""
    begin(ledger, "before")
    old = held(ledger)
    new = held(ledger, OTHER, over=1)
    with pytest.raises(LeaseLost, match="took over"), ledger.transaction(old):
        ledger.purchases.add_items(STAGING, CATALOG, [item("late")])
    with pytest.raises(LeaseLost), ledger.transaction():
        ledger.catalogs.renew_lease(old)
    with pytest.raises(LeaseLost), ledger.transaction():
        ledger.catalogs.release_lease(old)
    with ledger.transaction(new):
        ledger.purchases.add_items(STAGING, CATALOG, [item("good")])
    assert ledger.database.rows("SELECT key FROM items ORDER BY key") == [("before",), ("good",)]


def test_takeover_waits_for_the_transaction_of_the_holder(open_ledger: OpenLedger) -> None:
    """A transaction that has checked its fence ends before the lease changes."""
    holder, taker = open_ledger(), open_ledger()
    old = held(holder)
    with ThreadPoolExecutor(1) as thread:
        with holder.transaction(old):
            taking = thread.submit(take, taker, OTHER, 1)
            holder.purchases.add_items(STAGING, CATALOG, [item("a")])
            holder.purchases.intend(RUN, STAGING, intent("a"), UNLIMITED)
            assert not taking.done()
        assert taking.result(timeout=30) == Lease(STAGING, CATALOG, 2, OTHER)
    with pytest.raises(LeaseLost), holder.transaction(old):
        pass


def test_one_of_many_takers_gets_the_lease(open_ledger: OpenLedger) -> None:
    """At once, on connections of their own, of a free catalog first and of a dead holder's afterwards."""
    ledgers = [open_ledger() for _ in range(4)]
    runs = [RunId(f"run-{number}") for number in range(4)]
    for over in (None, 1, 2):
        with ThreadPoolExecutor(4) as threads:
            taken = list(threads.map(take, ledgers, runs, [over] * 4))
        assert sum(hold is not None for hold in taken) == 1
