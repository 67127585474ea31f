"""What is left of each limit of a run, as its plan is cut to them and each purchase is held to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from patternmill.errors import BudgetReached
from patternmill.ledger.records import Approval, Intent, SpendingLimits
from patternmill.limits import Limit
from patternmill.money import money
from patternmill.states import Stage
from patternmill.text import goods, plural

#: The code of BudgetReached where a limit is reached for second attempts only.
SECOND_ATTEMPT = "second_attempt"


@dataclass(frozen=True)
class Spent:
    """What was reserved with intents, and not released. The amount is in minor units."""

    items: Counter[Stage] = field(default_factory=Counter)
    amount: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.items + other.items, self.amount + other.amount)


def spent_of(stage: str, items: int, amount: int) -> Spent:
    return Spent(Counter({Stage(stage): int(items)}), int(amount))


_REMEDY = "Raise {} and run the same command again."


def limits_of(
    limits: SpendingLimits,
    prices: Mapping[Stage, int],
    of_run: Spent,
    day_amount: int,
    approval: Approval | None = None,
) -> list[Limit]:
    """All limits of a run, as its plan is cut to them and as each purchase is held to them, with what is left of each.

    `day_amount`: spent or reserved today, by all runs.
    """
    found = []
    if limits.items is not None:
        left = limits.items - of_run.items.total()
        name = f"the limit of {plural(limits.items, 'item')}"
        found.append(Limit("max_items", name, _REMEDY.format("--max-items"), left, dict.fromkeys(Stage, 1)))
    for most, used, day, option in (
        (limits.run_amount, of_run.amount, "", "--budget"),
        (limits.day_amount, day_amount, " for today", "PATTERNMILL_DAY_BUDGET"),
    ):
        if most is not None:
            of_it = f", of which {money(used, limits.currency)} is spent or reserved," if used else ""
            name = f"the budget of {money(most, limits.currency)}{day}{of_it}"
            found.append(Limit("budget", name, _REMEDY.format(option), most - used, prices, is_money=True))
    if approval is not None:
        name = f"the approval of plan {approval.short} by {approval.who}"
        remedy = "Run again: what is left needs another approval."
        requests, amount = approval.most_purchases - approval.purchases, approval.worst - approval.amount
        found.append(Limit("approval", name, remedy, requests, dict.fromkeys(Stage, 1)))
        found.append(Limit("approval", name, remedy, amount, prices, is_money=True))
    return found


def refusal(
    intent: Intent, left: list[Limit], limits: SpendingLimits, kept: Mapping[Stage, int]
) -> BudgetReached | None:
    """Why a purchase would exceed a limit; `kept`: how many of each stage have to remain possible after it."""
    for limit in left:
        takes = intent.price if limit.is_money else 1
        if not takes or limit.covers(kept, takes):
            continue
        cost = f": the next {intent.stage} costs {money(takes, limits.currency)}" if limit.is_money else ""
        for_others = f"; what is left is kept for {goods(kept)} of the plan" if sum(kept.values()) else ""
        message = f"{limit.name[:1].upper()}{limit.name[1:]} is reached{cost}{for_others}."
        return BudgetReached(message, code=limit.code, remedy=limit.remedy)
    return None


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
