"""The contract of the ledger on each database: what may be bought is reserved with the intent, and never exceeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from patternmill.errors import BudgetReached, LedgerError, Overtaken
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Approval, SpendingLimits
from patternmill.ledger.spending import SECOND_ATTEMPT, Spent, day_of
from patternmill.states import AttemptState, Stage, Verdict
from tests.integrity import problems

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RUN, STAGING, begin, change, intent, item

OTHER_RUN = RunId("run-2")
DAY = 86_400
PRICES = {Stage.PATTERN: 40, Stage.PRODUCT: 10}
FIRST = SpendingLimits(first={Stage.PATTERN: 3, Stage.PRODUCT: 3}, prices=PRICES)
UNDER = SpendingLimits(approval="approval-1")
ASKED = Approval(
    "approval-1", STAGING, CATALOG, "ab" * 32, items=3, expected=30, worst=60, most_purchases=6, asked_at=1.0
)
HUGE = 10**15


def spent(ledger: Ledger) -> tuple[int, int]:
    """Items and amount, of all runs and days."""
    return ledger.database.rows("SELECT coalesce(sum(items), 0), coalesce(sum(amount), 0) FROM spending")[0]


def refused(ledger: Ledger, name: str, limits: SpendingLimits, **how: Any) -> BudgetReached:
    """The reason why an intent was not written; it is certain that it was not."""
    before = spent(ledger)
    with pytest.raises(BudgetReached) as caught:
        begin(ledger, name, limits=limits, **how)
    assert ledger.purchases.attempt(RequestId(f"{name}/1")) is None
    assert spent(ledger) == before
    return caught.value


#: Limits, purchases with their prices (or where they differ from the default), and what the last one is refused for.
BUDGETS: dict[str, tuple[SpendingLimits, list[int | dict[str, Any]], str]] = {
    "items of any kind": (SpendingLimits(items=2), [0, {"stage": Stage.PRODUCT}, 0], "--max-items"),
    "no items": (SpendingLimits(items=0), [0], "--max-items"),
    "no money": (SpendingLimits(run_amount=0), [1], "--budget"),
    "the run's money, to the last unit": (SpendingLimits(run_amount=100), [60, 40, 1], "--budget"),
    "the run's money, at once": (SpendingLimits(run_amount=100), [60, 41], "--budget"),
    "beyond 32 bits": (SpendingLimits(run_amount=2 * HUGE), [HUGE, HUGE, 1], "--budget"),
    "the day's money of all runs and catalogs": (
        SpendingLimits(day_amount=100),
        [
            70,
            {"price": 31, "environment": "production"},
            {"price": 31, "run": OTHER_RUN, "catalog": "autumn"},
        ],
        "PATTERNMILL_DAY_BUDGET",
    ),
    "another day has its own money": (
        SpendingLimits(day_amount=100),
        [70, {"price": 70, "later": DAY}, 31],
        "PATTERNMILL_DAY_BUDGET",
    ),
    "the run's money does not restart at midnight": (
        SpendingLimits(run_amount=100),
        [60, {"price": 60, "later": DAY}],
        "--budget",
    ),
}


@pytest.mark.parametrize("case", BUDGETS)
def test_limits_are_never_exceeded(ledger: Ledger, clock: Clock, case: str) -> None:
    """All purchases but the last are made."""
    limits, purchases, option = BUDGETS[case]
    for number, how in enumerate(purchases, start=1):
        terms = {"price": how} if isinstance(how, int) else dict(how)
        clock.now += terms.pop("later", 0)
        if number < len(purchases):
            begin(ledger, str(number), limits=limits, **terms)
        else:
            assert option in refused(ledger, str(number), limits, **terms).remedy
    assert list(problems(ledger)) == []


def test_amounts_are_shown_and_kept_apart_by_currency(ledger: Ledger, clock: Clock) -> None:
    """A day's budget in another unit than what was spent refuses, and says how to go on."""
    yen, euros = (SpendingLimits(day_amount=20_000, currency=unit) for unit in ("JPY", "EUR"))
    begin(ledger, "a", limits=yen, price=10_000)
    reached = refused(ledger, "b", euros, price=1, run=OTHER_RUN)
    assert "cannot be compared with the ¥10,000" in reached.message
    assert "PATTERNMILL_CURRENCY" in reached.remedy
    clock.now += DAY
    begin(ledger, "b", limits=euros, price=600)
    text = "€10.00 for today, of which €6.00 is spent or reserved, is reached: the next pattern costs €4.01."
    assert text in refused(ledger, "c", replace(euros, day_amount=1000), price=401).message
    assert ledger.purchases.spent_by_run(RUN).amounts == {"JPY": 10_000, "EUR": 600}


def test_warning_is_logged_once_when_the_day_budget_is_nearly_spent(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """As a purchase of any run reaches 80 % of it, and never for a budget of a run."""
    limits = SpendingLimits(day_amount=1000, run_amount=500, currency="EUR")
    for number, price in enumerate([400, 399, 1, 200]):
        begin(ledger, f"item {number}", run=RunId(f"run-{number}"), limits=limits, price=price)
    assert caplog.messages == ["80 % of today's budget of €10.00 is spent or reserved."]


def test_prices_by_state_add_up_to_what_counts(ledger: Ledger) -> None:
    """In doubt, reserved and spent, by currency, as whole numbers; what is released counts for nothing."""
    ends = (AttemptState.ACCEPTED, AttemptState.HELD, AttemptState.WITHDRAWN)
    for price, (name, state) in enumerate(zip("abc", ends, strict=True), 1):
        begin(ledger, name, price=price * HUGE, limits=SpendingLimits(currency="EUR"))
        change(ledger, name, state)
    begin(ledger, "d", price=10)
    begin(ledger, "d", price=10)
    amounts = ledger.purchases.amounts_by_state(RUN)
    assert {state: dict(of_state) for state, of_state in amounts.items() if of_state} == {
        AttemptState.ACCEPTED: {"EUR": HUGE},
        AttemptState.HELD: {"EUR": 2 * HUGE},
        AttemptState.WITHDRAWN: {"EUR": 3 * HUGE},
        AttemptState.INTENDED: {"": 10},
    }
    by_run = ledger.purchases.spent_by_run(RUN)
    assert by_run == Spent(Counter({Stage.PATTERN: 3}), Counter({"EUR": 3 * HUGE, "": 10}))
    assert by_run == ledger.purchases.spent_on(day_of(ledger.now()))[STAGING]
    assert type(by_run.amounts["EUR"]) is int


@pytest.mark.parametrize("state", [AttemptState.WITHDRAWN, AttemptState.REJECTED])
def test_reservation_of_a_withdrawn_request_is_returned(
    ledger: Ledger, clock: Clock, state: AttemptState
) -> None:
    """To the day it was reserved for, whatever the day is now; opened again, it is reserved again."""
    limits = SpendingLimits(items=1, run_amount=50)
    begin(ledger, "a", limits=limits, price=50)
    clock.now += DAY
    for _ in range(2):
        change(ledger, "a", state)
        assert spent(ledger) == (0, 0)
    begin(ledger, "b", limits=limits, price=50)
    with pytest.raises(BudgetReached):
        begin(ledger, "a", limits=limits, price=50)
    begin(ledger, "a", limits=limits, price=50, run=OTHER_RUN)
    assert spent(ledger) == (2, 100)
    change(ledger, "b", AttemptState.ACCEPTED, AttemptState.FAILED)
    change(ledger, "a", state)
    assert spent(ledger) == (1, 50), "a failed job may have cost something"


@pytest.mark.parametrize(("name", "enough"), [("run_amount", 190), ("day_amount", 190), ("items", 7)])
def test_second_attempt_leaves_the_planned_money(ledger: Ledger, name: str, enough: int) -> None:
    """Three rows for 50 each are planned, one pattern fails: 150 stay reserved for them, whatever was bought so far."""
    plenty, short = (replace(FIRST, **{name: most}) for most in (enough, enough - 1))
    begin(ledger, "a", limits=short, price=40)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    with pytest.raises(BudgetReached) as caught:
        begin(ledger, "a", 2, limits=short, price=40)
    assert caught.value.code == SECOND_ATTEMPT
    begin(ledger, "b", limits=short, price=40)
    with pytest.raises(BudgetReached):
        begin(ledger, "a", 2, limits=short, price=40)
    begin(ledger, "a", 2, limits=plenty, price=40)
    begin(ledger, "c", limits=plenty, price=40)
    for product in ("a-product", "b-product", "c-product"):
        begin(ledger, product, stage=Stage.PRODUCT, limits=plenty, price=10)
    assert spent(ledger) == (7, 190)


def test_money_of_a_lost_patterns_product_is_free(ledger: Ledger) -> None:
    """Held, rejected or failed for good: what its product would have cost can buy a second attempt."""
    limits = replace(FIRST, run_amount=160, prices=PRICES | {Stage.PATTERN: 10})
    for name in "abc":
        begin(ledger, name, limits=limits, price=40)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    with pytest.raises(BudgetReached):
        begin(ledger, "a", 2, limits=limits, price=20)
    change(ledger, "b", AttemptState.HELD)
    begin(ledger, "a", 2, limits=limits, price=20)


def test_attempt_after_one_of_an_earlier_run_is_a_first_one(ledger: Ledger) -> None:
    """The plan includes it."""
    begin(ledger, "a", price=40)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    limits = replace(FIRST, run_amount=50, first={Stage.PATTERN: 1, Stage.PRODUCT: 1})
    begin(ledger, "a", 2, limits=limits, price=40, run=OTHER_RUN)
    begin(ledger, "a-product", stage=Stage.PRODUCT, limits=limits, price=10, run=OTHER_RUN)


# -- approvals


def ask(
    ledger: Ledger, approval: Approval = ASKED, plan: Collection[str] = "abc", **changes: Any
) -> Approval:
    approval = replace(approval, **changes)
    with ledger.transaction():
        ledger.approvals.request(approval, [ItemKey(name) for name in plan])
    return approval


def approve(ledger: Ledger, *asked: Any, **changes: Any) -> Approval:
    approval = ask(ledger, *asked, **changes)
    with ledger.transaction():
        return ledger.approvals.decide(approval.id, Verdict.APPROVED, who="anna@mill", note="for spring")


def drawn(ledger: Ledger) -> tuple[int, int]:
    approval = ledger.approvals.get("approval-1")
    assert approval is not None
    return approval.purchases, approval.amount


def test_request_and_decision_are_recorded_once(ledger: Ledger, clock: Clock) -> None:
    """A different decision needs another request; without a request there is no decision."""
    waiting = ask(ledger, flow_run_id="flow-run-1")
    assert ledger.approvals.last_of("flow-run-1") == waiting
    with ledger.transaction():
        decided = ledger.approvals.decide("approval-1", Verdict.APPROVED, who="anna", note="yes")
    assert ledger.approvals.find() == [decided]
    assert (decided.who, decided.note, decided.decided_at) == ("anna", "yes", clock.now)
    assert ledger.approvals.items("approval-1") == set("abc")
    for name in ("approval-1", "approval-9"):
        with pytest.raises(LedgerError, match="does not wait"), ledger.transaction():
            ledger.approvals.decide(name, Verdict.REJECTED, who="bert")


def test_request_replaces_what_its_flow_run_asked_before(ledger: Ledger) -> None:
    """It ends what another flow run asked about the catalog; a decision stays, and so does another catalog's."""
    decided = approve(ledger, flow_run_id="flow-run-1")
    autumn = ask(ledger, id="approval-9", catalog="autumn", flow_run_id="flow-run-9")
    ask(ledger, id="approval-2", flow_run_id="flow-run-2")
    for name in ("approval-3", "approval-4"):
        last = ask(ledger, id=name, flow_run_id="flow-run-1", asked_at=99.0, plan="xy")
    assert ledger.approvals.last_of("flow-run-1") == last
    overtaken = ledger.approvals.get("approval-2")
    assert overtaken is not None
    assert (overtaken.verdict, overtaken.who) == (Verdict.OVERTAKEN, "flow run flow-run-1")
    assert ledger.approvals.find() == [decided, autumn, overtaken, last]
    assert ledger.approvals.items("approval-3") == set()
    with pytest.raises(Overtaken, match="overtaken by flow run flow-run-1"), ledger.transaction():
        ledger.approvals.decide("approval-2", Verdict.APPROVED, who="bert")


def test_approvals_are_in_the_order_of_decisions_whatever_the_clock_says(
    ledger: Ledger, clock: Clock, open_ledger: OpenLedger
) -> None:
    """An approval that was given with a clock a day ahead does not outlive the rejection after it."""
    ask(ledger, id="approval-3", asked_at=clock.now + 10)
    clock.now += DAY
    approve(ledger)
    clock.now -= DAY
    other = open_ledger()
    ask(other, id="approval-2", asked_at=clock.now)
    with other.transaction():
        other.approvals.decide("approval-2", Verdict.REJECTED, who="bert")
    ask(other, id="approval-4", catalog="autumn")
    named = [approval.id for approval in ledger.approvals.find(STAGING, CATALOG)]
    assert named == ["approval-3", "approval-1", "approval-2"]


@pytest.mark.parametrize("verdict", [Verdict.WAITING, Verdict.REJECTED, Verdict.OVERTAKEN])
def test_nothing_is_bought_under_a_request_that_was_not_approved(ledger: Ledger, verdict: Verdict) -> None:
    ask(ledger)
    with ledger.transaction():
        if verdict is Verdict.REJECTED:
            ledger.approvals.decide("approval-1", verdict, who="bert")
        elif verdict is Verdict.OVERTAKEN:
            ledger.approvals.overtake(STAGING, CATALOG, "run run-2")
    with pytest.raises(LedgerError, match="approves nothing"):
        begin(ledger, "a", limits=UNDER)


def test_approval_is_never_exceeded(ledger: Ledger) -> None:
    """To the last minor unit, over all runs, for its items only; a refusal writes nothing."""
    approve(ledger, worst=3 * HUGE)
    begin(ledger, "a", limits=UNDER, price=2 * HUGE)
    assert refused(ledger, "b", UNDER, price=HUGE + 1, run=OTHER_RUN).code == "approval"
    assert "lacks the pattern" in refused(ledger, "z", UNDER, price=1).message
    begin(ledger, "b", limits=UNDER, price=HUGE, run=OTHER_RUN)
    assert drawn(ledger) == (2, 3 * HUGE)
    assert list(problems(ledger)) == []


def test_approved_number_of_requests_is_never_exceeded(ledger: Ledger) -> None:
    """Without prices too an approval has an end."""
    approve(ledger, worst=0, most_purchases=2)
    begin(ledger, "a", limits=UNDER)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    begin(ledger, "a", 2, limits=UNDER)
    assert "is reached" in refused(ledger, "b", UNDER).message


@pytest.mark.parametrize("state", [AttemptState.WITHDRAWN, AttemptState.REJECTED])
def test_amount_of_a_withdrawn_request_returns_to_its_approval(ledger: Ledger, state: AttemptState) -> None:
    """It is drawn again when the attempt is opened again, then perhaps under another approval."""
    approve(ledger)
    for limits, amount in ((UNDER, (1, 10)), (UNDER, (1, 10)), (SpendingLimits(), (0, 0))):
        begin(ledger, "a", limits=limits, price=10)
        assert drawn(ledger) == amount
        for _ in range(2):
            change(ledger, "a", state)
            assert drawn(ledger) == (0, 0)
    assert list(problems(ledger)) == []


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE approvals SET amount = 9", "drawn, and its attempts come to 1 for 10"),
        ("DELETE FROM documents", "under an approval that does not cover it"),
        ("UPDATE approvals SET verdict = 'rejected'", "under an approval that does not cover it"),
    ],
)
def test_check_finds_a_contradiction_between_approvals_and_purchases(
    ledger: Ledger, damage: str, problem: str
) -> None:
    approve(ledger)
    begin(ledger, "a", limits=UNDER, price=10)
    assert list(problems(ledger)) == []
    with ledger.transaction():
        ledger.database.execute(damage)
    assert [problem in text for text in problems(ledger)] == [True]


# -- several writers at once


@pytest.mark.parametrize(
    "limits",
    [SpendingLimits(items=20), SpendingLimits(day_amount=200), UNDER],
    ids=["items", "money", "approval"],
)
def test_concurrent_writers_never_exceed_a_limit(open_ledger: OpenLedger, limits: SpendingLimits) -> None:
    """Four writers at once, on connections of their own: exactly what the limit allows is bought."""
    ledgers = [open_ledger() for _ in range(4)]
    names = [[f"{number}-{n}" for n in range(8)] for number in range(4)]
    every = [name for own in names for name in own]
    approve(ledgers[0], replace(ASKED, worst=200, most_purchases=64), every)

    def buy(ledger: Ledger, own: list[str]) -> int:
        bought = 0
        for name in own:
            with ledger.transaction():
                ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
                try:
                    ledger.purchases.intend(RUN, STAGING, intent(name, price=10), limits)
                except BudgetReached:
                    continue
                bought += 1
        return bought

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(buy, ledgers, names)) == 20
    assert spent(ledgers[0]) == (20, 200)
    assert list(problems(ledgers[0])) == []
