"""Groups of rows on each database: each execution under its own fence, and all of them in one window."""

from __future__ import annotations

import pytest

from patternmill.errors import LeaseLost
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Lease
from patternmill.states import AttemptState

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RAW, RECORD, RUN, STAGING, UNLIMITED, begin, intent, item

WORK = '{"rows":[]}'
#: A lease that nobody has.
OVER = Lease(STAGING, CATALOG, 0, RUN)


@pytest.fixture
def two_groups(ledger: Ledger) -> Ledger:
    """A run that has its lease, and two groups; what an earlier run began is in the second one."""
    begin(ledger, "begun", run=RunId("before"))
    with ledger.transaction():
        ledger.runs.add(RECORD, RAW, number=1)
        ledger.catalogs.claim_lease(STAGING, CATALOG, RUN, "{}", over=None)
        ledger.purchases.add_items(STAGING, CATALOG, [item("first"), item("second")])
        ledger.runs.add_groups(RUN, [(1, WORK, ()), (2, WORK, (ItemKey("begun"),))])
    return ledger


def execution(ledger: Ledger, number: int = 1) -> Lease:
    with ledger.transaction():
        begun = ledger.runs.begin_group(RECORD, number)
    assert begun is not None
    assert begun[1] == WORK
    return begun[0]


def is_closed(ledger: Ledger, number: int = 1) -> bool:
    with ledger.transaction():
        return ledger.runs.begin_group(RECORD, number) is None


def test_only_the_newest_execution_writes(two_groups: Ledger, open_ledger: OpenLedger) -> None:
    """The older one's intent is refused with its transaction, and so is its outcome."""
    older = execution(two_groups)
    with two_groups.transaction(older):
        two_groups.purchases.intend(RUN, STAGING, intent("first"), UNLIMITED)
    newer = execution(open_ledger())
    assert (older.fence, newer.fence) == (1, 2)
    for write in (
        lambda: two_groups.purchases.intend(RUN, STAGING, intent("second"), UNLIMITED),
        lambda: two_groups.purchases.change(RUN, RequestId("first/1"), AttemptState.ACCEPTED, job_id="job"),
    ):
        with (
            pytest.raises(LeaseLost, match="Group 1 of run run-1 is driven elsewhere"),
            two_groups.transaction(older),
        ):
            write()
    assert two_groups.purchases.attempt(RequestId("second/1")) is None
    with two_groups.transaction(newer):
        two_groups.purchases.change(RUN, RequestId("first/1"), AttemptState.ACCEPTED, job_id="job")


def test_ended_groups_are_not_begun_again(two_groups: Ledger) -> None:
    lease = execution(two_groups)
    with two_groups.transaction(lease):
        two_groups.runs.end_group(lease)
    with two_groups.transaction():
        late = two_groups.catalogs.claim_lease(
            STAGING, CATALOG, RunId("late"), "{}", over=Lease(STAGING, CATALOG, 0, RUN)
        )
    assert late is None and is_closed(two_groups)
    assert not is_closed(two_groups, 2), "who comes too late takes nothing over"


def test_run_that_takes_over_closes_the_groups(two_groups: Ledger) -> None:
    """Those that are driven, and those that wait."""
    lease = execution(two_groups)
    with two_groups.transaction():
        assert two_groups.catalogs.claim_lease(
            STAGING, CATALOG, RunId("run-2"), "{}", over=Lease(STAGING, CATALOG, 1, RUN)
        )
    with pytest.raises(LeaseLost), two_groups.transaction(lease):
        pass
    assert is_closed(two_groups, 1) and is_closed(two_groups, 2)


def test_window_counts_what_has_no_end(two_groups: Ledger) -> None:
    """What an earlier run began counts too, and what the run follows no longer does not."""
    first, second = execution(two_groups, 1), execution(two_groups, 2)

    def room(window: int) -> bool:
        with two_groups.transaction(first):
            return two_groups.purchases.has_room(first, window)

    assert (room(1), room(2)) == (False, True)
    with two_groups.transaction(first):
        two_groups.purchases.intend(RUN, STAGING, intent("first"), UNLIMITED)
    assert not room(2)
    execution(two_groups, 1)
    first = execution(two_groups, 1)
    assert not room(2), "a lost execution's slots stay occupied"
    with two_groups.transaction(second):
        two_groups.purchases.change(RUN, RequestId("begun/1"), AttemptState.REJECTED, error="no")
    assert (room(1), room(2)) == (False, True)
    with two_groups.transaction(first):
        two_groups.purchases.free_slot(RequestId("first/1"))
    assert room(1)


def test_beats_show_who_lives_and_why_to_stop(two_groups: Ledger, clock: Clock) -> None:
    """A group that was begun and has no execution is lost: also one that an earlier run began."""

    def beat(lease: Lease, report: str = "{}") -> tuple[str | None, int, bool]:
        with two_groups.transaction(lease):
            return two_groups.runs.beat_group(lease, report)

    first = execution(two_groups, 1)
    assert beat(first) == (None, 1, True)
    second = execution(two_groups, 2)
    assert beat(second, '{"ended":3}') == (None, 2, False)
    assert [(group.number, group.fence, group.report) for group in two_groups.runs.groups(RUN)] == [
        (1, 1, "{}"),
        (2, 1, '{"ended":3}'),
    ]
    clock.now += 11
    assert beat(first) == (None, 1, True)
    with two_groups.transaction():
        two_groups.runs.order_groups(RUN, "enough")
    assert beat(second) == ("enough", 2, False)
    with two_groups.transaction(first):
        two_groups.runs.end_group(first)
    assert beat(second)[1:] == (1, False)


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_windows_of_two_connections_are_one(two_groups: Ledger, open_ledger: OpenLedger) -> None:
    """While one machine begins a job no other does, or waits for it: it has outcomes to write, which free slots."""
    other = open_ledger()
    first, second = execution(two_groups, 1), execution(other, 2)

    def other_has_room(window: int) -> bool:
        with other.transaction(second):
            return other.purchases.has_room(second, window)

    with two_groups.transaction(first):
        assert two_groups.purchases.has_room(first, 3)
        assert not other_has_room(3)
        two_groups.purchases.intend(RUN, STAGING, intent("first"), UNLIMITED)
    assert (other_has_room(2), other_has_room(3)) == (False, True)
