"""The contract of the ledger on each database: what a run may buy is reserved with the intent, and never passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from patternmill.errors import BudgetReached
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import SpendingLimits
from patternmill.ledger.spending import SECOND_ATTEMPT, Spent, day_of
from patternmill.states import AttemptState, Stage
from tests.integrity import problems

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RUN, STAGING, begin, change, intent, item

OTHER_RUN = RunId("run-2")
DAY = 86_400


def spent(ledger: Ledger) -> tuple[int, int]:
    """Items and amount, of all runs and days."""
    return ledger.database.rows("SELECT coalesce(sum(items), 0), coalesce(sum(amount), 0) FROM spending")[0]


def refused(ledger: Ledger, name: str, limits: SpendingLimits, **how: object) -> BudgetReached:
    """The reason why an intent was not written; it is certain that it was not."""
    before = spent(ledger)
    with pytest.raises(BudgetReached) as caught:
        begin(ledger, name, limits=limits, **how)  # type: ignore[arg-type]
    assert ledger.purchases.attempt(RequestId(f"{name}/1")) is None
    assert spent(ledger) == before
    return caught.value


def test_item_limit_of_a_run(ledger: Ledger) -> None:
    """The third of two is refused with the option to raise, whatever it is."""
    limits = SpendingLimits(items=2)
    begin(ledger, "a", stage=Stage.PATTERN, limits=limits)
    begin(ledger, "b", stage=Stage.PRODUCT, limits=limits)
    for stage in (Stage.PATTERN, Stage.REFINEMENT, Stage.PRODUCT):
        reached = refused(ledger, "c", limits, stage=stage)
        assert reached.code == "max_items"
        assert "--max-items" in reached.remedy


def test_limit_of_zero_buys_nothing(ledger: Ledger) -> None:
    assert refused(ledger, "a", SpendingLimits(items=0)).code == "max_items"
    assert refused(ledger, "a", SpendingLimits(run_amount=0), price=1).code == "budget"


def test_budget_of_a_run(ledger: Ledger) -> None:
    """Patterns and products together; to the last minor unit, and not one more."""
    limits = SpendingLimits(run_amount=100)
    begin(ledger, "a", limits=limits, price=60)
    assert refused(ledger, "b", limits, price=41).code == "budget"
    begin(ledger, "c", stage=Stage.PRODUCT, limits=limits, price=40)
    refused(ledger, "d", limits, price=1)
    assert spent(ledger) == (2, 100)


def test_refusal_shows_amounts_in_the_currency(ledger: Ledger) -> None:
    """The limit itself is one of minor units."""
    limits = SpendingLimits(run_amount=1000, currency="EUR")
    begin(ledger, "a", limits=limits, price=600)
    text = "€10.00, of which €6.00 is spent or reserved, is reached: the next pattern costs €4.01."
    assert text in refused(ledger, "b", limits, price=401).message
    assert replace(limits, currency="USD") == limits


def test_amounts_in_two_units_are_not_added_up(ledger: Ledger, clock: Clock) -> None:
    """A day's budget in another unit than what was spent that day refuses, and says how to go on."""
    yen, euros = (SpendingLimits(day_amount=20_000, currency=unit) for unit in ("JPY", "EUR"))
    begin(ledger, "a", limits=yen, price=10_000)
    reached = refused(ledger, "b", euros, price=1, run=OTHER_RUN)
    assert "cannot be compared with the ¥10,000" in reached.message
    assert "PATTERNMILL_CURRENCY" in reached.remedy
    begin(ledger, "b", limits=yen, price=1, run=OTHER_RUN)
    clock.now += DAY
    begin(ledger, "c", limits=euros, price=1)
    assert ledger.purchases.spent_by_run(RUN).amounts == {"JPY": 10_000, "EUR": 1}
    assert list(problems(ledger)) == []


def test_daily_budget_is_per_environment(ledger: Ledger, clock: Clock) -> None:
    """All runs and catalogs of a day; another environment has its own; tomorrow is another day (UTC)."""
    limits = SpendingLimits(day_amount=100)
    begin(ledger, "a", limits=limits, price=70)
    refused(ledger, "b", limits, price=31, run=OTHER_RUN, catalog="autumn")
    begin(ledger, "c", limits=limits, price=31, environment="production")
    clock.now += DAY
    begin(ledger, "b", limits=limits, price=31, run=OTHER_RUN, catalog="autumn")


def test_budget_of_a_run_does_not_restart_at_midnight(ledger: Ledger, clock: Clock) -> None:
    limits = SpendingLimits(run_amount=100, items=2)
    begin(ledger, "a", limits=limits, price=60)
    clock.now += DAY
    refused(ledger, "b", limits, price=60)
    begin(ledger, "b", limits=limits, price=10)
    clock.now += DAY
    assert refused(ledger, "c", limits, price=1).code == "max_items"


def test_known_intent_reserves_nothing_more(ledger: Ledger) -> None:
    """Also when the budget is used up."""
    limits = SpendingLimits(items=1, run_amount=50)
    assert begin(ledger, "a", limits=limits, price=50) == begin(ledger, "a", limits=limits, price=50)
    assert spent(ledger) == (1, 50)


@pytest.mark.parametrize("state", [AttemptState.WITHDRAWN, AttemptState.REJECTED])
def test_reservation_of_a_withdrawn_request_is_returned(
    ledger: Ledger, clock: Clock, state: AttemptState
) -> None:
    """To the day it was reserved for, whatever the day is now; opened again, it is reserved again."""
    limits = SpendingLimits(items=1, run_amount=50)
    begin(ledger, "a", limits=limits, price=50)
    clock.now += DAY
    change(ledger, "a", state)
    assert spent(ledger) == (0, 0)
    change(ledger, "a", state)
    assert spent(ledger) == (0, 0)
    begin(ledger, "b", limits=limits, price=50)
    with pytest.raises(BudgetReached):
        begin(ledger, "a", limits=limits, price=50)
    begin(ledger, "a", limits=limits, price=50, run=OTHER_RUN)
    assert spent(ledger) == (2, 100)
    change(ledger, "a", state)
    assert spent(ledger) == (1, 50)


@pytest.mark.parametrize("state", [AttemptState.FAILED, AttemptState.SUCCEEDED])
def test_failed_job_stays_spent(ledger: Ledger, state: AttemptState) -> None:
    """It may have cost something."""
    begin(ledger, "a", price=50)
    change(ledger, "a", AttemptState.ACCEPTED, state)
    assert spent(ledger) == (1, 50)


PRICES = {Stage.PATTERN: 40, Stage.PRODUCT: 10}
FIRST = SpendingLimits(first={Stage.PATTERN: 3, Stage.PRODUCT: 3}, prices=PRICES)


@pytest.mark.parametrize(
    ("enough", "short"),
    [
        (replace(FIRST, run_amount=190), replace(FIRST, run_amount=189)),
        (replace(FIRST, day_amount=190), replace(FIRST, day_amount=189)),
        (replace(FIRST, items=7), replace(FIRST, items=6)),
    ],
)
def test_second_attempt_leaves_the_planned_money(
    ledger: Ledger, enough: SpendingLimits, short: SpendingLimits
) -> None:
    """Three rows for 50 each are planned, one pattern fails: 150 stay reserved for them, whatever was bought so far."""
    begin(ledger, "a", limits=short, price=40)
    change(ledger, "a", AttemptState.ACCEPTED, AttemptState.FAILED)
    with pytest.raises(BudgetReached) as caught:
        begin(ledger, "a", 2, limits=short, price=40)
    assert caught.value.code == SECOND_ATTEMPT
    begin(ledger, "b", limits=short, price=40)
    with pytest.raises(BudgetReached):
        begin(ledger, "a", 2, limits=short, price=40)
    begin(ledger, "a", 2, limits=enough, price=40)
    begin(ledger, "c", limits=enough, price=40)
    for name in "abc":
        begin(ledger, f"{name}-product", stage=Stage.PRODUCT, limits=enough, price=10)
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


@pytest.mark.parametrize(
    "limits", [SpendingLimits(items=20), SpendingLimits(run_amount=200), SpendingLimits(day_amount=200)]
)
def test_concurrent_writers_never_exceed_the_limit(open_ledger: OpenLedger, limits: SpendingLimits) -> None:
    """Four writers at once, on connections of their own: exactly what the limit allows is bought."""
    ledgers = [open_ledger() for _ in range(4)]
    names = [[f"{number}-{n}" for n in range(12)] for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(buying(limits), ledgers, names))
    assert sum(made) == 20
    assert spent(ledgers[0]) == (20, 200)


def buying(limits: SpendingLimits) -> Callable[[Ledger, list[str]], int]:
    def buy(ledger: Ledger, names: list[str]) -> int:
        bought = 0
        for name in names:
            with ledger.transaction():
                ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
                try:
                    ledger.purchases.intend(RUN, STAGING, intent(name, price=10), limits)
                except BudgetReached:
                    continue
                bought += 1
        return bought

    return buy


def test_amounts_may_exceed_32_bits(ledger: Ledger) -> None:
    """Reserved, summed, refused at the limit and returned, and every sum is a whole number."""
    price = 10**15
    begin(ledger, "a", price=price)
    begin(ledger, "b", price=price)
    refused(ledger, "c", SpendingLimits(run_amount=2 * price), price=1)
    refused(ledger, "c", SpendingLimits(day_amount=2 * price), price=1)
    spent_by = ledger.purchases.spent_by_run(RUN)
    day = ledger.purchases.spent_on(day_of(ledger.now()))[STAGING]
    assert spent_by == day == Spent(Counter({Stage.PATTERN: 2}), Counter({"": 2 * price}))
    assert type(spent_by.amounts[""]) is type(day.amounts[""]) is int
    change(ledger, "a", AttemptState.WITHDRAWN)
    assert ledger.purchases.spent_by_run(RUN) == Spent(Counter({Stage.PATTERN: 1}), Counter({"": price}))
    assert list(problems(ledger)) == []
