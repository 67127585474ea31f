"""How far limits reach into a plan: whole rows, each with its pattern, so that no money is left in patterns alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import TO_BUY, Plan, PlannedRow
from patternmill.planning.proposal import within
from patternmill.text import goods, plural


@dataclass(frozen=True)
class Bound:
    """One limit: how it is called, what raises it, and what is left of it.

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
    """A plan cut to the rows that all bounds cover; the others are left out."""

    plan: Plan
    rows: int
    #: How many rows there were to do, and the bounds that kept one of them out.
    of: int
    hit: tuple[Bound, ...]

    def __str__(self) -> str:
        """`The budget of €10.00 reaches to 20 of 60 rows: 20 patterns and 20 products.`"""
        bought = goods(*self.plan.purchases())
        all_names = dict.fromkeys(bound.name for bound in self.hit)
        names = " and ".join(all_names)
        reach = "reaches" if len(all_names) == 1 else "reach"
        return (
            f"{names[:1].upper()}{names[1:]} {reach} to {self.rows:,} of {plural(self.of, 'row')}: {bought}."
        )

    @property
    def remedy(self) -> str:
        """What raises the bounds."""
        return " ".join(dict.fromkeys(bound.remedy for bound in self.hit))


def limit_plan(plan: Plan, bounds: Sequence[Bound]) -> LimitedPlan | None:
    """The plan as far as the bounds reach; None where they reach to all of it.

    Rows whose pattern is there or begun come first, then all in the order of the file. A row that does not fit
    is passed over, and a cheaper one behind it may still fit. What is begun takes nothing more.
    """
    if not bounds:
        return None
    rows = list(plan.to_do())
    allowed: set[ItemKey] = set()
    hit: dict[Bound, None] = {}
    patterns = products = kept = 0
    for row in sorted(rows, key=lambda row: _buys_pattern(plan, row)):
        new_pattern = _buys_pattern(plan, row) and row.pattern not in allowed
        new_product = _buys_product(plan, row)
        after = patterns + new_pattern, products + new_product
        over = [bound for bound in bounds if not bound.covers(*after)]
        if over and (new_pattern or new_product):
            hit |= dict.fromkeys(over)
            continue
        patterns, products = after
        kept += 1
        allowed.update(_keys(row))
    return LimitedPlan(within(plan, allowed), kept, len(rows), tuple(hit)) if hit else None


def _buys_pattern(plan: Plan, row: PlannedRow) -> bool:
    assert row.pattern is not None, "a row to do has a pattern"
    return plan.patterns[row.pattern].reason in TO_BUY


def _buys_product(plan: Plan, row: PlannedRow) -> bool:
    assert row.product is not None, "a row to do has a product"
    return plan.products[row.product].reason in TO_BUY


def _keys(row: PlannedRow) -> Iterator[ItemKey]:
    yield from (key for key in (row.pattern, row.product) if key is not None)
