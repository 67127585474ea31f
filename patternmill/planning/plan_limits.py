"""How much of a plan its limits cover: whole rows with their patterns, so that no money is left in patterns alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import TO_DO, Plan, Reason
from patternmill.states import Stage
from patternmill.text import goods, plural


@dataclass(frozen=True)
class PlanLimit:
    """One limit: its name, what raises it, and what is left of it.

    A purchase takes `pattern` or `product` of what is left: 1 where items are counted, else the price.
    """

    name: str
    remedy: str
    left: int
    pattern: int
    product: int

    def covers(self, patterns: int, products: int) -> bool:
        return patterns * self.pattern + products * self.product <= self.left


@dataclass(frozen=True)
class LimitedPlan:
    """A plan cut to the rows that all limits cover; the others are left out."""

    plan: Plan
    rows: int
    #: All rows to do.
    of: int
    #: The limits that keep a row out.
    hit: tuple[PlanLimit, ...]

    def __str__(self) -> str:
        """`The budget of €10.00 reaches to 20 of 60 rows: 20 patterns and 20 products.`"""
        bought = goods(*self.plan.purchases())
        all_names = dict.fromkeys(limit.name for limit in self.hit)
        names = " and ".join(all_names)
        reach = "reaches" if len(all_names) == 1 else "reach"
        return (
            f"{names[:1].upper()}{names[1:]} {reach} to {self.rows:,} of {plural(self.of, 'row')}: {bought}."
        )

    @property
    def remedy(self) -> str:
        return " ".join(dict.fromkeys(limit.remedy for limit in self.hit))


def limit_plan(plan: Plan, limits: Sequence[PlanLimit]) -> LimitedPlan | None:
    """The plan as far as the limits cover it; None where they cover all of it.

    Rows whose pattern exists or is begun come first, then all in the order of the file. A row that does not fit
    is skipped, and a cheaper one behind it may still fit. What is begun takes nothing more.
    """
    if not limits:
        return None
    rows = list(plan.to_do())
    covered: set[ItemKey] = set()
    hit: dict[PlanLimit, None] = {}
    bought = {Stage.PATTERN: 0, Stage.PRODUCT: 0}
    kept = 0
    for row in sorted(rows, key=lambda row: Stage.PATTERN in plan.buys(row)):
        new = {stage: key for stage, key in plan.buys(row).items() if key not in covered}
        after = {stage: count + (stage in new) for stage, count in bought.items()}
        exceeded = [limit for limit in limits if not limit.covers(after[Stage.PATTERN], after[Stage.PRODUCT])]
        if exceeded and new:
            hit |= dict.fromkeys(exceeded)
            continue
        bought = after
        kept += 1
        covered.update(row.keys)
    return LimitedPlan(restricted(plan, covered), kept, len(rows), tuple(hit)) if hit else None


def restricted(plan: Plan, allowed: Collection[ItemKey]) -> Plan:
    """The plan without the rows that need an item outside of `allowed`: those are left out."""
    rows_of = dict.fromkeys(plan.patterns, 0)
    products = dict(plan.products)
    for row in plan.to_do():
        assert row.pattern is not None and row.product is not None, "a row to do has its items"
        has_pattern = row.pattern in allowed or plan.patterns[row.pattern].reason not in TO_DO
        if row.product in allowed and has_pattern:
            rows_of[row.pattern] += 1
        else:
            products[row.product] = replace(products[row.product], reason=Reason.LEFT_OUT)
    patterns = dict(plan.patterns)
    for key, pattern in plan.patterns.items():
        if pattern.reason in TO_DO:
            reason = pattern.reason if rows_of[key] else Reason.LEFT_OUT
            patterns[key] = replace(pattern, rows=rows_of[key], reason=reason)
    return replace(plan, patterns=patterns, products=products)
