"""The contract of the ledger on each database: what may be bought is reserved with the intent, and never exceeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from patternmill.errors import BudgetReached, LedgerError, Overtaken
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.events import intend_feedback
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.postgres import PostgresDatabase
from patternmill.ledger.records import Approval, OrderRecord, SpendingLimits
from patternmill.ledger.spending import SECOND_ATTEMPT, Spent, day_of
from patternmill.states import AttemptState, Stage, Verdict
from tests.integrity import problems

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RUN, STAGING, begin, change, intent, item

OTHER_RUN = RunId("run-2")
DAY = 86_400
HUGE = 10**15
UNDER = SpendingLimits(approval="approval-1")
ASKED = Approval(
    "approval-1", STAGING, CATALOG, "ab" * 32, items=3, expected=30, worst=60, most_purchases=6, asked_at=1.0
)
PRODUCT = {"stage": Stage.PRODUCT}


def spent(ledger: Ledger) -> tuple[int, int]:
    """Return the items and the amount that all runs spent on all days."""
    return ledger.database.rows("SELECT coalesce(sum(items), 0), coalesce(sum(amount), 0) FROM spending")[0]


def refused(ledger: Ledger, name: str, limits: SpendingLimits, attempt: int = 1, **how: Any) -> BudgetReached:
    """Return why an intent was refused, after checking that it was not written."""
    before = spent(ledger)
    with pytest.raises(BudgetReached) as caught:
        begin(ledger, name, attempt, limits=limits, **how)
    assert ledger.purchases.attempt(RequestId(f"{name}/{attempt}")) is None
    assert spent(ledger) == before
    return caught.value


#: Limits, purchases with their prices (or where they differ from the default), and what the last one is refused for.
BUDGETS: dict[str, tuple[SpendingLimits, list[int | dict[str, Any]], str]] = {
    "items of any kind": (SpendingLimits(items=2), [0, PRODUCT, 0], "--max-items"),
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
    "the run's money is its own, and does not restart at midnight": (
        SpendingLimits(run_amount=100),
        [60, {"price": 100, "run": OTHER_RUN}, {"price": 60, "later": DAY}],
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
    """The warning comes as a purchase of any run reaches 80 % of it, and never for a run's own budget."""
    limits = SpendingLimits(day_amount=1000, run_amount=500, currency="EUR")
    for number, price in enumerate([400, 399, 1, 200]):
        begin(ledger, f"item {number}", run=RunId(f"run-{number}"), limits=limits, price=price)
    assert caplog.messages == ["80 % of today's budget of €10.00 is spent or reserved."]


def test_prices_by_state_add_up_to_what_counts(ledger: Ledger) -> None:
    """In doubt, reserved and spent, by currency and environment, as whole numbers; what is released counts nothing."""
    ends = (AttemptState.ACCEPTED, AttemptState.HELD, AttemptState.WITHDRAWN)
    for price, (name, state) in enumerate(zip("abc", ends, strict=True), 1):
        begin(ledger, name, price=price * HUGE, limits=SpendingLimits(currency="EUR"))
        change(ledger, name, state)
    for _ in range(2):
        begin(ledger, "d", price=10)
    begin(ledger, "free", limits=SpendingLimits(currency="JPY"))
    begin(ledger, "far", price=7, environment="production", run=OTHER_RUN)
    amounts = ledger.purchases.amounts_by_state(RUN)
    assert {state: dict(of_state) for state, of_state in amounts.items() if of_state} == {
        AttemptState.ACCEPTED: {"EUR": HUGE},
        AttemptState.HELD: {"EUR": 2 * HUGE},
        AttemptState.WITHDRAWN: {"EUR": 3 * HUGE},
        AttemptState.INTENDED: {"": 10},
    }
    by_run = ledger.purchases.spent_by_run(RUN)
    assert by_run == Spent(Counter({Stage.PATTERN: 4}), Counter({"EUR": 3 * HUGE, "": 10}))
    far = Spent(Counter({Stage.PATTERN: 1}), Counter({"": 7}))
    assert ledger.purchases.spent_on(day_of(ledger.now())) == {STAGING: by_run, "production": far}
    assert type(by_run.amounts["EUR"]) is int


def test_price_of_what_a_person_sends_again_counts_for_today(ledger: Ledger, clock: Clock) -> None:
    attempt = begin(ledger, "a", price=50)
    clock.now += DAY
    with ledger.transaction():
        ledger.purchases.reopen_for_resend(RUN, attempt.request_id)
    assert ledger.purchases.spent_on(day_of(clock.now))[STAGING].amounts == {"": 50}
    assert spent(ledger) == (1, 50)
    assert list(problems(ledger)) == []


# -- second attempts


PLAN = {Stage.PATTERN: 3, Stage.PRODUCT: 3}
PRICES = {Stage.PATTERN: 40, Stage.PRODUCT: 10}
#: What was bought before the second attempt at `a`, and how much money it needs then with what is left of the plan.
SECOND_ATTEMPTS: dict[str, tuple[list[str], int]] = {
    "no other pattern": ([], 190),
    "another pattern": (["b"], 190),
    "all patterns": (["b", "c"], 190),
    "more than was planned": (["b", "c", "d"], 230),
    "a product too": (["b", "c", "b-product"], 190),
    "a pattern that is held": (["b", "c", "c is held"], 180),
    "a pattern that failed": (["b", "c", "c failed"], 180),
    "a pattern that failed and is tried again": (["b", "c", "c failed", "c again"], 230),
}


@pytest.mark.parametrize("case", SECOND_ATTEMPTS)
def test_second_attempt_leaves_the_planned_money(ledger: Ledger, case: str) -> None:
    """Three rows for 50 each are planned, one pattern fails: what the others cost stays reserved, to the last unit."""
    before, enough = SECOND_ATTEMPTS[case]
    begin(ledger, "a", price=40)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    for what in before:
        name, _, how = what.partition(" ")
        if how == "is held":
            change(ledger, name, AttemptState.HELD)
        elif how == "failed":
            change(ledger, name, AttemptState.ACCEPTED, AttemptState.FAILED)
        elif name.endswith("-product"):
            begin(ledger, name, stage=Stage.PRODUCT, price=10)
        else:
            begin(ledger, name, 2 if how else 1, price=40)
    limits = SpendingLimits(run_amount=enough - 1, first=PLAN, prices=PRICES)
    assert refused(ledger, "a", limits, 2, price=40).code == SECOND_ATTEMPT
    begin(ledger, "a", 2, limits=replace(limits, run_amount=enough), price=40)


def test_first_purchases_may_use_all_that_is_left(ledger: Ledger) -> None:
    """Also an attempt after one that failed in an earlier run: the plan includes it. Items are limited as money is."""
    begin(ledger, "a", price=40)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    limits = SpendingLimits(run_amount=50, first={Stage.PATTERN: 1, Stage.PRODUCT: 1}, prices=PRICES)
    begin(ledger, "a", 2, limits=limits, price=40, run=OTHER_RUN)
    begin(ledger, "a-product", stage=Stage.PRODUCT, limits=limits, price=10, run=OTHER_RUN)
    items = SpendingLimits(items=7, first=PLAN)
    for number in range(3):
        begin(ledger, f"b{number}", limits=items, run=RunId("run-3"))
    with ledger.transaction():
        for state in (AttemptState.ACCEPTED, AttemptState.FAILED):
            ledger.purchases.change(RunId("run-3"), RequestId("b0/1"), state, job_id="job-b0")
    assert refused(ledger, "b0", replace(items, items=6), 2, run=RunId("run-3")).code == SECOND_ATTEMPT
    begin(ledger, "b0", 2, limits=items, run=RunId("run-3"))


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


def test_question_is_decided_once_or_overtaken(ledger: Ledger, clock: Clock) -> None:
    """A request replaces what its flow run asked before, and ends what another one asked about the catalog."""
    waiting = ask(ledger, flow_run_id="flow-run-1")
    assert ledger.approvals.last_of("flow-run-1") == waiting
    with ledger.transaction():
        decided = ledger.approvals.decide("approval-1", Verdict.APPROVED, who="anna", note="yes")
    assert (decided.who, decided.note, decided.decided_at) == ("anna", "yes", clock.now)
    for name in ("approval-1", "unknown"):
        with pytest.raises(LedgerError, match="does not wait"), ledger.transaction():
            ledger.approvals.decide(name, Verdict.REJECTED, who="bert")
    autumn = ask(ledger, id="approval-9", catalog="autumn", flow_run_id="flow-run-9")
    ask(ledger, id="approval-2", flow_run_id="flow-run-2")
    for name in ("approval-3", "approval-4"):
        last = ask(ledger, id=name, flow_run_id="flow-run-1", asked_at=99.0, plan="xy")
    assert ledger.approvals.last_of("flow-run-1") == last
    overtaken = ledger.approvals.get("approval-2")
    assert overtaken is not None
    assert (overtaken.verdict, overtaken.who) == (Verdict.OVERTAKEN, "flow run flow-run-1")
    assert ledger.approvals.find() == [decided, autumn, overtaken, last]
    assert [ledger.approvals.items(f"approval-{number}") for number in (1, 3)] == [set("abc"), set()]
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
    named = [approval.id for approval in ledger.approvals.find(STAGING, CATALOG)]
    assert named == ["approval-3", "approval-1", "approval-2"]


def test_approval_is_never_exceeded(ledger: Ledger) -> None:
    """To the last minor unit, over all runs, for its items only; one that nobody gave covers nothing."""
    ask(ledger, worst=3 * HUGE)
    for verdict in (Verdict.WAITING, Verdict.REJECTED, Verdict.OVERTAKEN):
        with ledger.transaction():
            ledger.database.execute("UPDATE approvals SET verdict = :v, who = 'b', decided_at = 1", v=verdict)
        with pytest.raises(LedgerError, match="approves nothing"):
            begin(ledger, "a", limits=UNDER)
    with ledger.transaction():
        ledger.database.execute("UPDATE approvals SET verdict = 'approved'")
    begin(ledger, "a", limits=UNDER, price=2 * HUGE)
    assert refused(ledger, "b", UNDER, price=HUGE + 1, run=OTHER_RUN).code == "approval"
    assert "lacks the pattern" in refused(ledger, "z", UNDER, price=1).message
    begin(ledger, "b", limits=UNDER, price=HUGE, run=OTHER_RUN)
    assert drawn(ledger) == (2, 3 * HUGE)
    with ledger.transaction():
        ledger.database.execute("UPDATE approvals SET most_purchases = 2")
    assert "is reached" in refused(ledger, "c", UNDER).message, "without prices too an approval has an end"
    assert list(problems(ledger)) == []


@pytest.mark.parametrize("state", [AttemptState.WITHDRAWN, AttemptState.REJECTED])
def test_reservation_of_a_withdrawn_request_is_returned(
    ledger: Ledger, clock: Clock, state: AttemptState
) -> None:
    """It returns to the day that it was reserved for and to its approval; then it may be reserved again."""
    limits = SpendingLimits(items=1, run_amount=50)
    approve(ledger)
    for _ in range(2):
        begin(ledger, "a", limits=replace(limits, approval="approval-1"), price=50)
        assert (spent(ledger), drawn(ledger)) == ((1, 50), (1, 50))
        clock.now += DAY
        for _ in range(2):
            change(ledger, "a", state)
            assert (spent(ledger), drawn(ledger)) == ((0, 0), (0, 0))
    begin(ledger, "b", limits=limits, price=50)
    with pytest.raises(BudgetReached):
        begin(ledger, "a", limits=limits, price=50)
    begin(ledger, "a", limits=limits, price=50, run=OTHER_RUN)
    assert (spent(ledger), drawn(ledger)) == ((2, 100), (0, 0)), "this time without an approval"
    change(ledger, "b", AttemptState.ACCEPTED, AttemptState.FAILED)
    change(ledger, "a", state)
    assert spent(ledger) == (1, 50), "a failed job may have cost something"
    assert list(problems(ledger)) == []


# -- several writers at once


#: Operations that read before they write, each with the lock that keeps other connections from doing so.
LOCKED: dict[str, Callable[[Ledger], object]] = {
    "intent": lambda ledger: ledger.purchases.intend(RUN, intent("b"), SpendingLimits(items=9)),
    "withdrawal": lambda ledger: ledger.purchases.change(RUN, RequestId("a/1"), AttemptState.WITHDRAWN),
    "order": lambda ledger: ledger.purchases.record_order(
        RUN, ItemKey("a"), OrderRecord(None, None, False, False)
    ),
    "question": lambda ledger: ledger.approvals.request(replace(ASKED, id="2", flow_run_id="2"), []),
    "decision": lambda ledger: ledger.approvals.decide("approval-1", Verdict.APPROVED, who="anna"),
    "feedback": lambda ledger: intend_feedback(ledger, RUN, RequestId("a/1"), "f-1"),
    "overtaking": lambda ledger: ledger.approvals.overtake(STAGING, CATALOG, "run run-2"),
}


@pytest.mark.parametrize("change", LOCKED)
def test_what_reads_before_it_writes_is_locked(postgres_url: str, change: str) -> None:
    """PostgreSQL: until its transaction ends. In SQLite no other transaction begins meanwhile."""
    with Ledger(PostgresDatabase(postgres_url)) as ledger:
        begin(ledger, "a")
        ask(ledger)
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        with ledger.transaction():
            ledger.purchases.add_items(STAGING, CATALOG, [item("b")])
            LOCKED[change](ledger)
            assert ledger.database.rows(locks) == [(1,)]
        assert ledger.database.rows(locks) == [(0,)]


def test_concurrent_writers_never_exceed_a_limit(open_ledger: OpenLedger) -> None:
    """Four writers at once, on connections of their own: exactly what the limits allow is bought."""
    ledgers = [open_ledger() for _ in range(4)]
    names = [[f"{number}-{n}" for n in range(8)] for number in range(4)]
    approve(ledgers[0], replace(ASKED, worst=200, most_purchases=64), [name for own in names for name in own])

    def buy(ledger: Ledger, own: list[str]) -> int:
        bought = 0
        for name in own:
            with ledger.transaction():
                ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
                try:
                    ledger.purchases.intend(RUN, intent(name, price=10), UNDER)
                except BudgetReached:
                    continue
                bought += 1
        return bought

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(buy, ledgers, names)) == 20
    assert spent(ledgers[0]) == (20, 200)
    assert list(problems(ledgers[0])) == []
