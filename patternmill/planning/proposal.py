"""A plan as it is put before a person: its digest, what it may cost, and how far an approval of N items reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from patternmill.identifiers import ItemKey
from patternmill.planning.forecast import Cost, cost_of
from patternmill.planning.items import Item
from patternmill.planning.plan import TO_BUY, TO_DO, Plan, PlannedPattern, PlannedRow, Reason
from patternmill.planning.request_ids import canonical_json
from patternmill.states import Stage
from patternmill.text import plural

Prices = Mapping[Stage, int]


@dataclass(frozen=True)
class Reach:
    """The items that an approval covers, and the most that may be bought for them (minor units)."""

    items: int
    keys: frozenset[ItemKey]
    purchases: int
    amount: int


@dataclass(frozen=True)
class Proposal:
    """A plan with the prices and attempts that it would be carried out with."""

    plan: Plan
    prices: Prices
    attempts: int
    edition: str | None = None
    #: How people read the prices.
    currency: str | None = None

    @property
    def items(self) -> int:
        """How many would be bought."""
        return sum(self.plan.purchases())

    @property
    def cost(self) -> Cost:
        return cost_of(self.plan, self.prices, self.attempts, self.currency)

    def __str__(self) -> str:
        """`20 items for €5.00, at most €10.00 if jobs fail`; without prices, costs are not counted."""
        items = plural(self.items, "item")
        return f"{items} for {self.cost}" if self.cost.worst else items

    @property
    def to_do(self) -> frozenset[ItemKey]:
        return frozenset(key for key, (_, reason) in self._planned.items() if reason in TO_DO)

    @property
    def to_buy(self) -> frozenset[ItemKey]:
        return frozenset(key for key, (_, reason) in self._planned.items() if reason in TO_BUY)

    def price(self, key: ItemKey) -> int:
        """Minor units."""
        return self.prices[self._planned[key][0].stage]

    def digest(self) -> str:
        """SHA-256 of what would be made, why, and for which price each: an approval is bound to it."""
        scope = self.plan.scope
        items = sorted(
            [key, reason.value, self.prices[item.stage]]
            for key, (item, reason) in self._planned.items()
            if reason in TO_DO
        )
        content = ["v1", scope.environment, scope.catalog, self.edition, items]
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    def reach(self, most: int | None = None) -> Reach:
        """The first rows of the file, as far as `most` items go, each with its pattern; None: all rows.

        So no pattern is approved without a product on it. What was begun before is gone on with in any case.
        """
        planned = self._planned
        keys = {key for key, (_, reason) in planned.items() if reason is Reason.CONTINUED}
        bought: set[ItemKey] = set()
        for row in self.plan.to_do():
            new = {key for key in _keys(row) if planned[key][1] in TO_BUY} - bought
            if most is not None and len(bought) + len(new) > most:
                break
            bought |= new
        purchases = amount = 0
        for key in keys | bought:
            tries = self.attempts if key in bought else self.attempts - 1
            purchases += tries
            amount += tries * self.price(key)
        return Reach(len(bought), frozenset(keys | bought), purchases, amount)

    @cached_property
    def _planned(self) -> Mapping[ItemKey, tuple[Item, Reason]]:
        found: dict[ItemKey, tuple[Item, Reason]] = {}
        for key, pattern in self.plan.patterns.items():
            found[key] = pattern.item, pattern.reason
        for key, product in self.plan.products.items():
            found[key] = product.item, product.reason
        return found


def within(plan: Plan, allowed: Collection[ItemKey]) -> Plan:
    """The plan without the rows that need an item outside of `allowed`: those are left out."""
    waiting = dict.fromkeys(plan.patterns, 0)
    products = dict(plan.products)
    for row in plan.to_do():
        assert row.pattern is not None and row.product is not None, "a row to do has its items"
        if row.product in allowed and _is_free(plan, row.pattern, allowed):
            waiting[row.pattern] += 1
        else:
            products[row.product] = replace(products[row.product], reason=Reason.LEFT_OUT)
    patterns = {
        key: _waited_for(planned, waiting[key]) if planned.reason in TO_DO else planned
        for key, planned in plan.patterns.items()
    }
    return replace(plan, patterns=patterns, products=products)


def _waited_for(planned: PlannedPattern, rows: int) -> PlannedPattern:
    return replace(planned, rows=rows, reason=planned.reason if rows else Reason.LEFT_OUT)


def _is_free(plan: Plan, pattern: ItemKey, allowed: Collection[ItemKey]) -> bool:
    return pattern in allowed or plan.patterns[pattern].reason not in TO_DO


def _keys(row: PlannedRow) -> tuple[ItemKey, ...]:
    return tuple(key for key in (row.pattern, row.product) if key is not None)
