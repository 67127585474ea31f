"""What a plan will cost and how long it will take, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from patternmill.planning.plan import TO_DO, Plan
from patternmill.states import Stage
from patternmill.text import money

#: What jobs are taken to last while the ledger has seen none: the service speaks of one to two minutes a pattern.
ASSUMED = {Stage.PATTERN: timedelta(seconds=90), Stage.PRODUCT: timedelta(seconds=20)}


@dataclass(frozen=True)
class Cost:
    """Amounts in minor units. `worst`: every item fails until its last attempt."""

    expected: int
    worst: int
    currency: str | None = None

    def __str__(self) -> str:
        """`€5.00, at most €10.00 if jobs fail`."""
        return (
            f"{money(self.expected, self.currency)}, at most {money(self.worst, self.currency)} if jobs fail"
        )


def cost_of(plan: Plan, prices: Mapping[Stage, int], attempts: int, currency: str | None = None) -> Cost:
    """What the plan's purchases come to; items begun earlier are paid for already."""
    patterns, products = plan.purchases()
    expected = patterns * prices[Stage.PATTERN] + products * prices[Stage.PRODUCT]
    return Cost(expected, expected * attempts, currency)


def time_for(plan: Plan, lasting: Mapping[Stage, timedelta], window: int) -> timedelta:
    """About how long the plan takes with `window` jobs in flight, each lasting as long as its stage's usually do."""
    patterns, products = plan.counts(TO_DO)
    if not products:
        return timedelta(0)
    pattern, product = lasting[Stage.PATTERN], lasting[Stage.PRODUCT]
    work = patterns * pattern + products * product
    return max(work / window, (pattern if patterns else timedelta(0)) + product)
