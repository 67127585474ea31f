"""What is left of each limit of a run: its plan is cut to that, and each purchase must stay within it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from patternmill.errors import BudgetReached
from patternmill.ledger.records import Approval, Attempt, Intent, SpendingLimits
from patternmill.money import Limit, money, sums
from patternmill.states import Stage
from patternmill.text import goods, plural

#: The code of BudgetReached where a limit is reached for second attempts only.
SECOND_ATTEMPT = "second_attempt"


@dataclass(frozen=True)
class Spent:
    """Money reserved with intents and not released, in minor units by currency."""

    items: Counter[Stage] = field(default_factory=Counter)
    amounts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> Spent:
        """Return the sums of reservations, each a stage, a currency, and numbers of items and minor units."""
        items, amounts = Counter[Stage](), Counter[str]()
        for stage, currency, count, amount in rows:
            items[Stage(stage)] += int(count)
            amounts[currency] += int(amount)
        return cls(+items, +amounts)


def prices_of(attempts: Iterable[Attempt]) -> Counter[str]:
    """Return what was reserved for attempts, by currency."""
    return sum((Counter({attempt.currency: attempt.price}) for attempt in attempts), Counter())


_REMEDY = "Raise {} and run the same command again."


def limits_of(
    limits: SpendingLimits,
    prices: Mapping[Stage, int],
    of_run: Spent,
    of_day: Spent,
    approval: Approval | None = None,
) -> list[Limit]:
    """Return all limits of a run with what is left of each.

    `of_day`: spent or reserved today, by all runs.
    """
    left_of_each = []
    if limits.items is not None:
        left = limits.items - of_run.items.total()
        name = f"the limit of {plural(limits.items, 'item')}"
        remedy = _REMEDY.format("--max-items")
        left_of_each.append(Limit("max_items", name, remedy, left, dict.fromkeys(Stage, 1)))
    for most, spent, day, option in (
        (limits.run_amount, of_run, "", "--budget"),
        (limits.day_amount, of_day, " for today", "PATTERNMILL_DAY_BUDGET"),
    ):
        if most is None:
            continue
        name, used = f"the budget of {money(most, limits.currency)}{day}", spent.amounts[limits.unit]
        remedy, left = _REMEDY.format(option), most - used
        if others := sums(spent.amounts - Counter({limits.unit: used})):
            name += f", which cannot be compared with the {others} spent or reserved,"
            remedy, left = f"Set PATTERNMILL_CURRENCY as it was, or leave out {option}.", 0
        elif used:
            name += f", of which {money(used, limits.currency)} is spent or reserved,"
        left_of_each.append(Limit("budget", name, remedy, left, prices, is_money=True))
    if approval is not None:
        name = f"the approval of plan {approval.short} by {approval.who}"
        remedy = "Run again: what is left needs another approval."
        requests, amount = approval.most_purchases - approval.purchases, approval.left_in(limits.unit)
        left_of_each.append(Limit("approval", name, remedy, requests, dict.fromkeys(Stage, 1)))
        left_of_each.append(Limit("approval", name, remedy, amount, prices, is_money=True))
    return left_of_each


#: The share of a day's budget, in percent, at which people are warned.
_NEARLY_ALL = 80


def nearly_spent(limits: SpendingLimits, of_day: Spent, more: int = 0) -> str | None:
    """Return a warning that most of a day's budget is spent or reserved, with `more`; None: enough is left."""
    used = of_day.amounts[limits.unit] + more
    if not limits.day_amount or used * 100 < limits.day_amount * _NEARLY_ALL:
        return None
    share = used * 100 // limits.day_amount
    return f"{share} % of today's budget of {money(limits.day_amount, limits.currency)} is spent or reserved."


def refusal(
    intent: Intent, left: list[Limit], limits: SpendingLimits, planned: Mapping[Stage, int]
) -> BudgetReached | None:
    """Return why a purchase would exceed a limit; `planned`: how many of each stage must remain possible after it."""
    for limit in left:
        takes = intent.price if limit.is_money else 1
        if not takes or limit.covers(planned, takes):
            continue
        cost = f": the next {intent.stage} costs {money(takes, limits.currency)}" if limit.is_money else ""
        for_others = (
            f"; what is left is kept for {goods(planned)} of the plan" if sum(planned.values()) else ""
        )
        message = f"{limit.name[:1].upper()}{limit.name[1:]} is reached{cost}{for_others}."
        return BudgetReached(message, code=limit.code, remedy=limit.remedy)
    return None


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
