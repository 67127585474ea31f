"""The contract of the ledger on each database: a person's decision on a plan, and a ceiling that is never passed."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from patternmill.errors import BudgetReached, LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Approval, SpendingLimits
from patternmill.states import AttemptState, Verdict
from tests.integrity import problems

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RUN, STAGING, begin, change, intent, item

DIGEST = "ab" * 32
UNDER = SpendingLimits(approval="approval-1")
OTHER_RUN = RunId("run-2")
#: The columns in minor units.
ASKED = Approval(
    "approval-1", STAGING, CATALOG, DIGEST, items=3, expected=30, worst=60, most_purchases=6, asked_at=1.0
)


def asked(ledger: Ledger, approval: Approval = ASKED, items: Collection[str] = "abc") -> Approval:
    with ledger.transaction():
        ledger.approvals.request(approval, [ItemKey(name) for name in items])
    return approval


def approved(ledger: Ledger, approval: Approval = ASKED) -> Approval:
    asked(ledger, approval)
    with ledger.transaction():
        return ledger.approvals.decide(approval.id, Verdict.APPROVED, who="anna@mill", note="for spring")


def drawn(ledger: Ledger) -> tuple[int, int]:
    approval = ledger.approvals.get("approval-1")
    assert approval is not None
    return approval.purchases, approval.amount


def test_approval_request_and_decision_are_recorded(ledger: Ledger, clock: Clock) -> None:
    """The request is kept unchanged, with the decision and its time."""
    waiting = replace(ASKED, flow_run_id="flow-run-1")
    asked(ledger, waiting)
    assert ledger.approvals.waiting("flow-run-1") == waiting
    with ledger.transaction():
        decided = ledger.approvals.decide("approval-1", Verdict.APPROVED, who="anna", note="yes")
    assert ledger.approvals.waiting("flow-run-1") is None
    assert decided == ledger.approvals.get("approval-1")
    assert (decided.who, decided.note, decided.decided_at) == ("anna", "yes", clock.now)
    assert ledger.approvals.items("approval-1") == set("abc")
    assert ledger.approvals.find() == [decided]


def test_request_takes_the_place_of_what_its_flow_run_asked_before(ledger: Ledger) -> None:
    """Another flow run's stays, and so does a decision."""
    others = approved(ledger, replace(ASKED, flow_run_id="flow-run-1"))
    waits = asked(ledger, replace(ASKED, id="approval-2", flow_run_id="flow-run-2", asked_at=others.asked_at))
    for name in ("approval-3", "approval-4"):
        last = asked(ledger, replace(ASKED, id=name, flow_run_id="flow-run-1", asked_at=99.0), "xy")
    assert ledger.approvals.waiting("flow-run-1") == last

    assert ledger.approvals.find() == [others, waits, last]
    assert ledger.approvals.items("approval-3") == set()


def test_decisions_are_in_their_order_whatever_the_clock_says(
    ledger: Ledger, clock: Clock, open_ledger: OpenLedger
) -> None:
    """An approval that was given with a clock a day ahead does not outlive the rejection after it."""
    clock.now += 86_400
    first = approved(ledger)
    clock.now -= 86_400
    other = open_ledger()
    second = asked(other, replace(ASKED, id="approval-2", asked_at=clock.now))
    with other.transaction():
        other.approvals.decide(second.id, Verdict.REJECTED, who="bert")
    assert [one.id for one in ledger.approvals.find()] == [first.id, second.id]


def test_approval_is_decided_once(ledger: Ledger) -> None:
    """A different decision needs another request; without a request there is no decision."""
    approved(ledger)
    for name in ("approval-1", "approval-9"):
        with pytest.raises(LedgerError, match="does not wait"), ledger.transaction():
            ledger.approvals.decide(name, Verdict.REJECTED, who="bert")
    assert drawn(ledger) == (0, 0)


def test_approvals_of_a_catalog_come_in_the_order_of_their_decisions(ledger: Ledger, clock: Clock) -> None:
    """By when they were asked for as long as they wait; whatever times they have."""
    asked(ledger, replace(ASKED, id="approval-2", asked_at=clock.now + 10))
    asked(ledger, replace(ASKED, id="approval-3", catalog="autumn"))
    approved(ledger)
    assert [one.id for one in ledger.approvals.find(STAGING, CATALOG)] == [
        "approval-2",
        "approval-1",
    ]
    assert len(ledger.approvals.find()) == 3


def test_approved_money_is_never_exceeded(ledger: Ledger) -> None:
    """To the last minor unit, beyond 32 bits too; a refusal writes nothing; summed over all runs of the approval."""
    price = 10**15
    approved(ledger, replace(ASKED, worst=3 * price))
    begin(ledger, "a", limits=UNDER, price=2 * price)
    with pytest.raises(BudgetReached, match="is reached") as caught:
        begin(ledger, "b", limits=UNDER, price=price + 1, run=OTHER_RUN)
    assert caught.value.code == "approval"
    assert ledger.purchases.attempt(RequestId("b/1")) is None
    begin(ledger, "b", limits=UNDER, price=price, run=OTHER_RUN)
    assert drawn(ledger) == (2, 3 * price)
    assert list(problems(ledger)) == []


def test_approved_number_of_requests_is_never_exceeded(ledger: Ledger) -> None:
    """Without prices too an approval has an end."""
    approved(ledger, replace(ASKED, worst=0, most_purchases=2))
    begin(ledger, "a", limits=UNDER)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    begin(ledger, "a", 2, limits=UNDER)
    with pytest.raises(BudgetReached, match="is reached"):
        begin(ledger, "b", limits=UNDER)


def test_approval_covers_only_approved_items(ledger: Ledger) -> None:
    approved(ledger)
    with pytest.raises(BudgetReached):
        begin(ledger, "z", limits=UNDER, price=1)
    assert drawn(ledger) == (0, 0)


@pytest.mark.parametrize("verdict", [None, Verdict.REJECTED])
def test_nothing_is_bought_under_a_request_that_was_not_approved(
    ledger: Ledger, verdict: Verdict | None
) -> None:
    asked(ledger)
    if verdict is not None:
        with ledger.transaction():
            ledger.approvals.decide("approval-1", verdict, who="bert")
    with pytest.raises(LedgerError, match="approves nothing"):
        begin(ledger, "a", limits=UNDER)


@pytest.mark.parametrize("state", [AttemptState.WITHDRAWN, AttemptState.REJECTED])
def test_amount_of_a_withdrawn_request_returns_to_its_approval(ledger: Ledger, state: AttemptState) -> None:
    """And is drawn again when the attempt is opened again, then also from another approval."""
    approved(ledger)
    begin(ledger, "a", limits=UNDER, price=10)
    change(ledger, "a", state)
    change(ledger, "a", state)
    assert drawn(ledger) == (0, 0)
    begin(ledger, "a", limits=UNDER, price=10)
    assert drawn(ledger) == (1, 10)
    change(ledger, "a", state)
    begin(ledger, "a", price=10)
    assert drawn(ledger) == (0, 0)
    change(ledger, "a", state)
    assert drawn(ledger) == (0, 0)
    assert list(problems(ledger)) == []


def test_concurrent_writers_never_exceed_the_approval(open_ledger: OpenLedger) -> None:
    """Four writers at once, on connections of their own: exactly what was approved is bought."""
    ledgers = [open_ledger() for _ in range(4)]
    names = [f"{number}-{n}" for number in range(4) for n in range(8)]
    asked(ledgers[0], replace(ASKED, items=32, worst=200, most_purchases=64), names)
    with ledgers[0].transaction():
        ledgers[0].approvals.decide("approval-1", Verdict.APPROVED, who="anna")

    def buy(number: int) -> int:
        bought = 0
        for name in (f"{number}-{n}" for n in range(8)):
            ledger = ledgers[number]
            with ledger.transaction():
                ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
                try:
                    ledger.purchases.intend(RUN, STAGING, intent(name, price=10), UNDER)
                except BudgetReached:
                    continue
                bought += 1
        return bought

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(buy, range(4))) == 20
    assert drawn(ledgers[0]) == (20, 200)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE approvals SET amount = 9", "drawn, and its attempts come to 1 for 10"),
        ("DELETE FROM documents WHERE name <> 'schema'", "under an approval that does not cover it"),
        ("UPDATE approvals SET verdict = 'rejected'", "under an approval that does not cover it"),
    ],
)
def test_check_finds_a_contradiction_between_approvals_and_purchases(
    ledger: Ledger, damage: str, problem: str
) -> None:
    """What was drawn from an approval is what was bought under it."""
    approved(ledger)
    begin(ledger, "a", limits=UNDER, price=10)
    assert list(problems(ledger)) == []
    with ledger.transaction():
        ledger.database.execute(damage)
    assert [problem in found for found in problems(ledger)] == [True]
