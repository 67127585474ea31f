"""The contract of the ledger on each database: a part belongs to the one process that its run gave it to last."""

from __future__ import annotations

import pytest

from patternmill.errors import LeaseLost
from patternmill.identifiers import RunId
from patternmill.ledger.leases import COORDINATOR
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Lease, PartLease
from patternmill.states import PartState

from .conftest import OpenLedger
from .samples import CATALOG, RAW, RECORD, RUN, STAGING, begin, run_row

STOPS = {"pattern": {"outcome": "Failed", "code": "unauthorized", "message": "401"}}


@pytest.fixture
def hold(ledger: Ledger) -> Lease:
    """Of a run with two parts."""
    with ledger.transaction():
        taken = ledger.claim_lease(STAGING, CATALOG, RUN, "{}", over=None)
        ledger.add_parts(RUN, [(COORDINATOR, "{}"), (1, '{"rows": [0]}'), (2, '{"rows": [1]}')])
    assert taken is not None
    return taken


def granted(ledger: Ledger, hold: Lease, number: int = 1) -> int:
    with ledger.transaction(hold):
        return ledger.assign_part(hold, number)


def begun(ledger: Ledger, hold: Lease, number: int = 1) -> PartLease:
    grant = granted(ledger, hold, number)
    with ledger.transaction(hold):
        return ledger.begin_part(hold, number, grant)


def test_grant_is_used_once(ledger: Ledger, hold: Lease) -> None:
    """The flow run that its scheduler starts twice begins the part once."""
    grant = granted(ledger, hold)
    with ledger.transaction(hold):
        ledger.begin_part(hold, 1, grant)
    with pytest.raises(LeaseLost, match="Part 1"), ledger.transaction(hold):
        ledger.begin_part(hold, 1, grant)


def test_older_grant_is_void(ledger: Ledger, hold: Lease) -> None:
    """Assigned to another process meanwhile: the late one begins nothing."""
    late = granted(ledger, hold)
    granted(ledger, hold)
    with pytest.raises(LeaseLost), ledger.transaction(hold):
        ledger.begin_part(hold, 1, late)


def test_process_that_lost_its_part_is_fenced(ledger: Ledger, hold: Lease, open_ledger: OpenLedger) -> None:
    """Though the run's lease holds; the other part continues."""
    stood_still, other = begun(ledger, hold), begun(ledger, hold, 2)
    elsewhere = open_ledger()
    with elsewhere.transaction(stood_still):
        elsewhere.update_part(stood_still, {}, {})
    reassigned = begun(ledger, hold)
    with pytest.raises(LeaseLost), elsewhere.transaction(stood_still):
        pytest.fail("it wrote")
    for valid in (reassigned, other):
        with elsewhere.transaction(valid):
            elsewhere.update_part(valid, {}, {})


@pytest.mark.parametrize("how", ["taken over", "ended"])
def test_part_of_an_ended_or_fenced_run_is_fenced(ledger: Ledger, hold: Lease, how: str) -> None:
    part = begun(ledger, hold)
    with ledger.transaction():
        if how == "ended":
            ledger.end_parts(RUN)
        else:
            ledger.claim_lease(STAGING, CATALOG, RUN, "{}", over=hold.fence)
    with pytest.raises(LeaseLost), ledger.transaction(part):
        pytest.fail("it wrote")


def test_parts_report_counts_and_halts(ledger: Ledger, hold: Lease) -> None:
    """Their heartbeats, counts, halts and the final report; the run's own counts are kept next to them."""
    part = begun(ledger, hold)
    with ledger.transaction(hold):
        ledger.halt_parts(RUN, STOPS)
    before = {part.number: part for part in ledger.parts_of(RUN)}
    with ledger.transaction(part):
        ledger.update_part(part, {"ended": 3}, STOPS, PartState.ENDED)
    after = {part.number: part for part in ledger.parts_of(RUN)}
    assert before[1].state is PartState.BEGUN and after[1].state is PartState.ENDED
    assert after[1].beats > before[1].beats
    assert (after[1].counts, after[1].halt) == ({"ended": 3}, STOPS)
    assert after[COORDINATOR].halt == STOPS and after[2].state is PartState.GRANTED


def test_rows_at_positions(ledger: Ledger) -> None:
    """Scattered over more than one chunk, in order."""
    with ledger.transaction():
        ledger.add_run(RECORD, RAW)
        ledger.add_rows(RUN, [run_row(position) for position in range(1300)])
    wanted = [*range(0, 1300, 2), 1299]
    assert [row.position for row in ledger.rows_at(RUN, wanted)] == wanted


def test_items_begun_by_a_run(ledger: Ledger) -> None:
    begin(ledger, "a")
    begin(ledger, "b", run=RunId("run-2"))
    assert ledger.begun_in(RUN) == {"a"}
