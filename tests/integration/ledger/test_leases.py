"""The contract of the ledger on each database: fences of leases and groups, and the brake that stops all intents."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from patternmill.errors import LeaseLost, LedgerError
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Lease
from patternmill.states import AttemptState

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RAW, RECORD, RUN, STAGING, UNLIMITED, begin, intent, item

OTHER = RunId("run-2")
WORK = '{"rows":[]}'
PAUSE = Pause("", CATALOG, "the supplier checks the list", "anna")


def take(ledger: Ledger, run: RunId = RUN, over: int | None = None, catalog: str = CATALOG) -> Lease | None:
    seen = ledger.catalogs.lease(STAGING, catalog)
    with ledger.transaction():
        over_it = replace(seen, fence=over) if seen and over else None
        return ledger.catalogs.claim_lease(STAGING, catalog, run, f'{{"of":"{run}"}}', over=over_it)


def held(ledger: Ledger, run: RunId = RUN, over: int | None = None) -> Lease:
    hold = take(ledger, run, over)
    assert hold is not None
    return hold


def test_lease_passes_to_who_has_seen_the_present_fence(ledger: Ledger) -> None:
    """Each catalog has its own; a taker who has seen another fence is too late. A released one keeps its fence."""
    assert ledger.catalogs.lease(STAGING, CATALOG) is None
    hold = held(ledger)
    assert hold == Lease(STAGING, CATALOG, 1, RUN)
    assert ledger.catalogs.lease(STAGING, CATALOG) == replace(hold, holder='{"of":"run-1"}')
    assert take(ledger, OTHER, catalog="autumn") == Lease(STAGING, "autumn", 1, OTHER)
    assert take(ledger, OTHER) is None
    with ledger.transaction(hold):
        ledger.catalogs.release_lease(hold)
    assert ledger.catalogs.lease(STAGING, CATALOG) == hold
    assert held(ledger, OTHER, over=1).fence == 2
    assert take(ledger, RunId("run-3"), over=1) is None


def test_beats_and_stops_are_of_one_holder(ledger: Ledger) -> None:
    """Beats are counted from zero again, and a recorded stop is over, with each new holder."""
    hold = held(ledger)
    for _ in range(3):
        with ledger.transaction(hold):
            ledger.catalogs.renew_lease(hold)
    with ledger.transaction():
        ledger.catalogs.record_stop(hold, "Cancelled in the Prefect UI.")
    seen = [(lease.beats, lease.stop) for lease in ledger.catalogs.held_leases()]
    assert seen == [(3, "Cancelled in the Prefect UI.")]
    assert take(ledger, OTHER, over=1) is not None
    assert [(lease.beats, lease.stop) for lease in ledger.catalogs.held_leases()] == [(0, None)]


def test_fenced_writer_cannot_write(ledger: Ledger) -> None:
    """A process that was paused while another took over: none of its writes count."""
    begin(ledger, "before")
    old = held(ledger)
    new = held(ledger, OTHER, over=1)
    with pytest.raises(LeaseLost, match="took over"), ledger.transaction(old):
        ledger.purchases.add_items(STAGING, CATALOG, [item("late")])
    late: list[Callable[[], object]] = [
        lambda: ledger.catalogs.renew_lease(old),
        lambda: ledger.catalogs.release_lease(old),
        lambda: ledger.catalogs.record_stop(old, "late"),
    ]
    for write in late:
        with pytest.raises(LeaseLost), ledger.transaction():
            write()
    with ledger.transaction(new):
        ledger.purchases.add_items(STAGING, CATALOG, [item("good")])
    assert ledger.database.rows("SELECT key FROM items ORDER BY key") == [("before",), ("good",)]
    with ledger.transaction():
        ledger.database.execute("UPDATE ledger SET id = 'another'")
    with pytest.raises(LedgerError, match="removed, replaced or moved"), ledger.transaction(new):
        pytest.fail("nothing is written into another ledger in the place of ours")


def test_takeover_waits_for_the_transaction_of_the_holder(open_ledger: OpenLedger) -> None:
    """A transaction that has checked its fence ends before the lease changes."""
    holder, taker = open_ledger(), open_ledger()
    old, order = held(holder), list[str]()

    def taken() -> Lease | None:
        lease = take(taker, OTHER, 1)
        order.append("taken over")
        return lease

    with ThreadPoolExecutor(1) as thread:
        with holder.transaction(old):
            taking = thread.submit(taken)
            holder.purchases.add_items(STAGING, CATALOG, [item("a")])
            holder.purchases.intend(RUN, intent("a"), UNLIMITED)
            # This is as long as a takeover takes when nothing keeps it waiting.
            wait([taking], timeout=0.3)
            order.append("written")
        assert taking.result(timeout=30) == Lease(STAGING, CATALOG, 2, OTHER)
    assert order == ["written", "taken over"]
    with pytest.raises(LeaseLost), holder.transaction(old):
        pass


def test_one_of_many_takers_gets_the_lease(open_ledger: OpenLedger) -> None:
    """They try at once, on their own connections, first for a free catalog and then for that of a dead holder."""
    ledgers = [open_ledger() for _ in range(4)]
    runs = [RunId(f"run-{number}") for number in range(4)]
    for over in (None, 1):
        with ThreadPoolExecutor(4) as threads:
            taken = list(threads.map(take, ledgers, runs, [over] * 4))
        assert sum(hold is not None for hold in taken) == 1


# -- groups of rows


@pytest.fixture
def two_groups(ledger: Ledger) -> Ledger:
    """A run that has its lease, and two groups; an earlier run began something of the second one."""
    with ledger.transaction():
        ledger.runs.add(RECORD, RAW, number=1)
        ledger.catalogs.claim_lease(STAGING, CATALOG, RUN, "{}", over=None)
        ledger.purchases.add_items(STAGING, CATALOG, [item("first"), item("second")])
        ledger.runs.add_groups(RUN, [(WORK, 8, 0), (WORK, 7, 1)])
    return ledger


def execution(ledger: Ledger, number: int = 1) -> Lease:
    with ledger.transaction():
        begun = ledger.runs.begin_group(RECORD, number)
    assert begun is not None and begun[1] == WORK
    return begun[0]


def beat(ledger: Ledger, lease: Lease, rows_left: int = 7) -> tuple[str | None, int, int]:
    with ledger.transaction(lease):
        return ledger.runs.beat_group(lease, f'{{"group":{lease.group}}}', rows_left, 0)


def test_only_the_newest_execution_writes(two_groups: Ledger, open_ledger: OpenLedger) -> None:
    """The older one's intent is refused with its transaction, and so is its outcome."""
    older = execution(two_groups)
    with two_groups.transaction(older):
        two_groups.purchases.intend(RUN, intent("first"), UNLIMITED)
    newer = execution(open_ledger())
    assert (older.fence, newer.fence) == (1, 2)
    refusal = "Group 1 of run run-1 is driven elsewhere"
    with pytest.raises(LeaseLost, match=refusal), two_groups.transaction(older):
        two_groups.purchases.intend(RUN, intent("second"), UNLIMITED)
    with two_groups.transaction(newer):
        two_groups.purchases.change(RUN, RequestId("first/1"), AttemptState.ACCEPTED, job_id="job")
    assert two_groups.purchases.attempt(RequestId("second/1")) is None


def test_ended_groups_and_those_of_a_run_that_was_taken_over_are_closed(two_groups: Ledger) -> None:
    """Whether they are driven or wait; who comes too late takes nothing over."""
    lease = execution(two_groups)
    with two_groups.transaction(lease):
        two_groups.runs.end_group(lease, "{}")
    for fence, is_taken in ((0, False), (1, True)):
        driven = execution(two_groups, 2)
        with two_groups.transaction():
            over = Lease(STAGING, CATALOG, fence, RUN)
            taken = two_groups.catalogs.claim_lease(STAGING, CATALOG, OTHER, "{}", over=over)
        assert (taken is not None) is is_taken
    for number in (1, 2):
        with two_groups.transaction():
            assert two_groups.runs.begin_group(RECORD, number) is None
    with pytest.raises(LeaseLost), two_groups.transaction(driven):
        pass


def test_shares_and_orders_of_groups(two_groups: Ledger, clock: Clock) -> None:
    """A row that has ended leaves its group's share, and only the run adds to it; beats show how many live."""
    first, second = execution(two_groups, 1), execution(two_groups, 2)
    with two_groups.transaction():
        two_groups.runs.steer_groups(RUN, None, {1: 5})
    assert beat(two_groups, first, 8) == (None, 5, 2)
    assert beat(two_groups, second) == (None, 1, 2)
    clock.now += 11
    assert beat(two_groups, first, 3) == (None, 3, 1)
    with two_groups.transaction():
        begun = two_groups.runs.begin_group(RECORD, 1)
        two_groups.runs.steer_groups(RUN, "enough", {1: 0, 2: 5})
    assert begun is not None and begun[2] == 3, "the share of a lost execution stays"
    assert beat(two_groups, second) == ("enough", 6, 2)
    with two_groups.transaction(begun[0]):
        two_groups.runs.end_group(begun[0], "{}")
    assert beat(two_groups, second) == ("enough", 6, 1)
    seen = [(group.rows_left, group.share, group.report) for group in two_groups.runs.groups(RUN)]
    assert seen == [(0, 0, "{}"), (7, 6, '{"group":2}')]


# -- the brake


def test_pause_waits_for_the_intent_under_way(open_ledger: OpenLedger) -> None:
    """Once it returns, no intent is committed that did not see it."""
    ledger, brake = open_ledger(), open_ledger().brake
    hold, order = held(ledger), list[str]()

    def pause() -> tuple[Pause, int]:
        result = brake.set(PAUSE)
        order.append("paused")
        return result

    with ThreadPoolExecutor(1) as pool:
        with ledger.transaction(hold):
            setting = pool.submit(pause)
            assert ledger.brake.pause_of(STAGING, CATALOG) is None
            ledger.purchases.add_items(STAGING, CATALOG, [])
            wait([setting], timeout=0.3)
            order.append("written")
        paused, count = setting.result(timeout=30)
    assert order == ["written", "paused"]
    assert (paused, count) == (replace(PAUSE, since=paused.since), 1)
    assert brake.set(replace(PAUSE, reason="once more")) == (paused, 2)
    with ledger.transaction(hold):
        assert ledger.brake.pause_of(STAGING, f"{CATALOG}/orders") == paused
        assert ledger.brake.pause_of(STAGING, "autumn") is None
    assert brake.lift("", CATALOG, "bert") == paused
    assert brake.lift("", CATALOG, "bert") is None
    with ledger.transaction(hold):
        assert ledger.brake.pause_of(STAGING, CATALOG) is None
