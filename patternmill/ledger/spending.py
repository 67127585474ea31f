"""What is left of each limit of a run, as its plan is cut to them and each purchase is held to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from patternmill.errors import BudgetReached
from patternmill.ledger.records import Approval, Attempt, Intent, SpendingLimits
from patternmill.limits import Limit
from patternmill.money import money, sums
from patternmill.states import Stage
from patternmill.text import goods, plural

#: The code of BudgetReached where a limit is reached for second attempts only.
SECOND_ATTEMPT = "second_attempt"


@dataclass(frozen=True)
class Spent:
    """What was reserved with intents, and not released. Amounts are in minor units, by currency."""

    items: Counter[Stage] = field(default_factory=Counter)
    amounts: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.items + other.items, self.amounts + other.amounts)


def spent_of(stage: str, currency: str, items: int, amount: int) -> Spent:
    return Spent(Counter({Stage(stage): int(items)}), Counter({currency: int(amount)}))


def prices_of(attempts: Iterable[Attempt]) -> Counter[str]:
    """Return what was reserved for attempts, by currency."""
    return sum((Counter({one.currency: one.price}) for one in attempts), Counter())


_REMEDY = "Raise {} and run the same command again."


def limits_of(
    limits: SpendingLimits,
    prices: Mapping[Stage, int],
    of_run: Spent,
    of_day: Spent,
    approval: Approval | None = None,
) -> list[Limit]:
    """All limits of a run, as its plan is cut to them and as each purchase is held to them, with what is left of each.

    `of_day`: spent or reserved today, by all runs.
    """
    found = []
    if limits.items is not None:
        left = limits.items - of_run.items.total()
        name = f"the limit of {plural(limits.items, 'item')}"
        found.append(Limit("max_items", name, _REMEDY.format("--max-items"), left, dict.fromkeys(Stage, 1)))
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
        found.append(Limit("budget", name, remedy, left, prices, is_money=True))
    if approval is not None:
        name = f"the approval of plan {approval.short} by {approval.who}"
        remedy = "Run again: what is left needs another approval."
        requests, amount = approval.most_purchases - approval.purchases, approval.left_in(limits.unit)
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
