"""Groups of rows on each database: each execution under its own fence, and all of them in one window."""

from __future__ import annotations

import pytest

from patternmill.errors import LeaseLost
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Lease
from patternmill.states import AttemptState

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RAW, RECORD, RUN, STAGING, UNLIMITED, intent, item

WORK = '{"rows":[]}'
#: A lease that nobody has.
OVER = Lease(STAGING, CATALOG, 0, RUN)


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
        two_groups.runs.end_group(lease, "{}")
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


def test_shares_of_the_window(two_groups: Ledger) -> None:
    """A row that has ended leaves its group's share, and only the run adds to it; a lost execution's stays."""
    lease = execution(two_groups)
    with two_groups.transaction():
        two_groups.runs.steer_groups(RUN, None, {1: 5})
    with two_groups.transaction(lease):
        assert two_groups.runs.beat_group(lease, "{}", 8)[1] == 5
        assert two_groups.runs.beat_group(lease, "{}", 3)[1] == 3
    with two_groups.transaction():
        begun = two_groups.runs.begin_group(RECORD, 1)
    assert begun is not None
    assert begun[2] == 3
    with two_groups.transaction(begun[0]):
        two_groups.runs.end_group(begun[0], "{}")
    with two_groups.transaction():
        two_groups.runs.steer_groups(RUN, None, {1: 5, 2: 5})
    shares = [(group.rows_left, group.share) for group in two_groups.runs.groups(RUN)]
    assert shares == [(0, 0), (7, 6)]


def test_beats_show_who_lives_and_why_to_stop(two_groups: Ledger, clock: Clock) -> None:
    def beat(lease: Lease, report: str = "{}") -> tuple[str | None, int]:
        with two_groups.transaction(lease):
            orders, _, living = two_groups.runs.beat_group(lease, report, 7)
        return orders, living

    first = execution(two_groups, 1)
    assert beat(first) == (None, 1)
    second = execution(two_groups, 2)
    assert beat(second, '{"ended":3}') == (None, 2)
    assert [(group.number, group.report) for group in two_groups.runs.groups(RUN)] == [
        (1, "{}"),
        (2, '{"ended":3}'),
    ]
    clock.now += 11
    assert beat(first) == (None, 1)
    with two_groups.transaction():
        two_groups.runs.steer_groups(RUN, "enough", {1: 0, 2: 0})
    assert beat(second) == ("enough", 2)
    with two_groups.transaction(first):
        two_groups.runs.end_group(first, "{}")
    assert beat(second) == ("enough", 1)
