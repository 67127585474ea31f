"""The contract of the ledger on each database: fences of leases and groups, and the brake that stops all intents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from patternmill.engine.item_attempts import Attempts
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt
from patternmill.errors import LeaseLost, LedgerError, NotStarted
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.records import Lease
from patternmill.planning.items import Item, Scope, pattern_content
from patternmill.states import AttemptState, Stage

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
    """Each catalog has its own; a taker who has seen another fence is too late."""
    assert ledger.catalogs.lease(STAGING, CATALOG) is None
    assert held(ledger) == Lease(STAGING, CATALOG, 1, RUN)
    assert ledger.catalogs.lease(STAGING, CATALOG) == Lease(STAGING, CATALOG, 1, RUN, '{"of":"run-1"}', 0)
    assert take(ledger, OTHER, catalog="autumn") == Lease(STAGING, "autumn", 1, OTHER)
    assert take(ledger, OTHER) is None
    assert held(ledger, OTHER, over=1).fence == 2
    assert take(ledger, RunId("run-3"), over=1) is None
    assert ledger.catalogs.lease(STAGING, CATALOG) == Lease(STAGING, CATALOG, 2, OTHER, '{"of":"run-2"}', 0)


def test_beats_and_stops_are_of_one_holder(ledger: Ledger) -> None:
    """Beats are counted from one again, and a recorded stop is over, with each new holder."""
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


def test_released_catalog_keeps_its_fence(ledger: Ledger) -> None:
    """The next holder's is newer, so that late writes of the earlier one are refused."""
    hold = held(ledger)
    with ledger.transaction(hold):
        ledger.catalogs.release_lease(hold)
    assert ledger.catalogs.lease(STAGING, CATALOG) == Lease(STAGING, CATALOG, 1, RUN, "", 0)
    assert held(ledger, OTHER, over=1).fence == 2


LATE_WRITES: dict[str, Callable[[Ledger, Lease], object]] = {
    "a beat": lambda ledger, old: ledger.catalogs.renew_lease(old),
    "a release": lambda ledger, old: ledger.catalogs.release_lease(old),
    "a stop": lambda ledger, old: ledger.catalogs.record_stop(old, "late"),
}


def test_fenced_writer_cannot_write(ledger: Ledger) -> None:
    """A process that was paused while another took over: none of its writes count."""
    begin(ledger, "before")
    old = held(ledger)
    new = held(ledger, OTHER, over=1)
    with pytest.raises(LeaseLost, match="took over"), ledger.transaction(old):
        ledger.purchases.add_items(STAGING, CATALOG, [item("late")])
    for write in LATE_WRITES.values():
        with pytest.raises(LeaseLost), ledger.transaction():
            write(ledger, old)
    with ledger.transaction(new):
        ledger.purchases.add_items(STAGING, CATALOG, [item("good")])
    assert ledger.database.rows("SELECT key FROM items ORDER BY key") == [("before",), ("good",)]


def test_another_ledger_in_the_place_of_ours_is_not_written(ledger: Ledger) -> None:
    hold = held(ledger)
    with ledger.transaction():
        ledger.database.execute("UPDATE ledger SET id = 'another'")
    with pytest.raises(LedgerError, match="removed, replaced or moved"), ledger.transaction(hold):
        pytest.fail("nothing is written")


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


def is_closed(ledger: Ledger, number: int) -> bool:
    with ledger.transaction():
        return ledger.runs.begin_group(RECORD, number) is None


def test_only_the_newest_execution_writes(two_groups: Ledger, open_ledger: OpenLedger) -> None:
    """The older one's intent is refused with its transaction, and so is its outcome."""
    older = execution(two_groups)
    with two_groups.transaction(older):
        two_groups.purchases.intend(RUN, STAGING, intent("first"), UNLIMITED)
    newer = execution(open_ledger())
    assert (older.fence, newer.fence) == (1, 2)
    refusal = "Group 1 of run run-1 is driven elsewhere"
    with pytest.raises(LeaseLost, match=refusal), two_groups.transaction(older):
        two_groups.purchases.intend(RUN, STAGING, intent("second"), UNLIMITED)
    with two_groups.transaction(newer):
        two_groups.purchases.change(RUN, RequestId("first/1"), AttemptState.ACCEPTED, job_id="job")
    assert two_groups.purchases.attempt(RequestId("second/1")) is None


def test_ended_groups_and_those_of_a_run_that_was_taken_over_are_closed(two_groups: Ledger) -> None:
    """Whether they are driven or wait; who comes too late takes nothing over."""
    lease = execution(two_groups)
    with two_groups.transaction(lease):
        two_groups.runs.end_group(lease, "{}")
    assert is_closed(two_groups, 1)
    for fence, is_taken in ((0, False), (1, True)):
        driven = execution(two_groups, 2)
        with two_groups.transaction():
            over = Lease(STAGING, CATALOG, fence, RUN)
            taken = two_groups.catalogs.claim_lease(STAGING, CATALOG, OTHER, "{}", over=over)
        assert (taken is not None) is is_taken
    assert is_closed(two_groups, 2)
    with pytest.raises(LeaseLost), two_groups.transaction(driven):
        pass


def test_shares_of_the_window(two_groups: Ledger) -> None:
    """A row that has ended leaves its group's share, and only the run adds to it; a lost execution's stays."""
    lease = execution(two_groups)
    with two_groups.transaction():
        two_groups.runs.steer_groups(RUN, None, {1: 5})
    with two_groups.transaction(lease):
        assert two_groups.runs.beat_group(lease, "{}", 8, 0)[1] == 5
        assert two_groups.runs.beat_group(lease, "{}", 3, 0)[1] == 3
    with two_groups.transaction():
        begun = two_groups.runs.begin_group(RECORD, 1)
    assert begun is not None and begun[2] == 3
    with two_groups.transaction(begun[0]):
        two_groups.runs.end_group(begun[0], "{}")
    with two_groups.transaction():
        two_groups.runs.steer_groups(RUN, None, {1: 5, 2: 5})
    shares = [(group.rows_left, group.share) for group in two_groups.runs.groups(RUN)]
    assert shares == [(0, 0), (7, 6)]


def test_beats_show_who_lives_and_why_to_stop(two_groups: Ledger, clock: Clock) -> None:
    def beat(lease: Lease, report: str = "{}") -> tuple[str | None, int]:
        with two_groups.transaction(lease):
            orders, _, living = two_groups.runs.beat_group(lease, report, 7, 0)
        return orders, living

    first, second = execution(two_groups, 1), execution(two_groups, 2)
    assert beat(first) == (None, 2)
    assert beat(second, '{"ended":3}') == (None, 2)
    assert [group.report for group in two_groups.runs.groups(RUN)] == ["{}", '{"ended":3}']
    clock.now += 11
    assert beat(first) == (None, 1)
    with two_groups.transaction():
        two_groups.runs.steer_groups(RUN, "enough", {1: 0, 2: 0})
    assert beat(second) == ("enough", 2)
    with two_groups.transaction(first):
        two_groups.runs.end_group(first, "{}")
    assert beat(second) == ("enough", 1)


# -- the brake


def test_pause_waits_for_the_intent_under_way(open_ledger: OpenLedger) -> None:
    """Once it returns, no intent is committed that did not see it."""
    ledger, brake = open_ledger(), open_ledger().brake
    hold = held(ledger)
    with ThreadPoolExecutor(1) as pool:
        with ledger.transaction(hold):
            setting = pool.submit(brake.set, PAUSE)
            with pytest.raises(TimeoutError):
                setting.result(timeout=0.3)
            assert ledger.brake.pause_of(STAGING, CATALOG) is None
            ledger.purchases.add_items(STAGING, CATALOG, [])
        pause, count = setting.result(timeout=20)
    assert (pause, count) == (replace(PAUSE, since=pause.since), 1)
    assert brake.set(replace(PAUSE, reason="once more")) == (pause, 2)
    with ledger.transaction(hold):
        assert ledger.brake.pause_of(STAGING, f"{CATALOG}/orders") == pause
        assert ledger.brake.pause_of(STAGING, "autumn") is None
    assert brake.lift("", CATALOG, "bert") == pause
    assert brake.lift("", CATALOG, "bert") is None
    with ledger.transaction(hold):
        assert ledger.brake.pause_of(STAGING, CATALOG) is None


async def test_intent_that_sees_the_pause_is_refused(open_ledger: OpenLedger) -> None:
    """Before any beat has seen it; nothing is written, and whoever wrote knows why."""
    ledger = open_ledger()
    hold = held(ledger)
    pattern = Item(Stage.PATTERN, Scope(STAGING, CATALOG), pattern_content("herons"))
    seen: list[Pause] = []
    writer = LedgerWriter(ledger, hold)
    writer.heed(seen.append, lambda: True)
    attempts = Attempts(hold, writer, RunOptions(), Halt())
    (pause, _) = await asyncio.to_thread(open_ledger().brake.set, PAUSE)
    with pytest.raises(NotStarted):
        await attempts.begin(pattern, {})
    assert seen == [pause]
    assert writer.is_awaited
    await writer.write_beat(lambda ledger, brake: ledger.catalogs.renew_lease(hold, brake))
    assert not writer.is_awaited
    await writer.close()
    other = open_ledger()
    assert other.database.rows("SELECT count(*) FROM attempts") == [(0,)]
    assert other.brake.holders_without(1) == []
