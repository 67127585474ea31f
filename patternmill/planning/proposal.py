"""The plan that a person decides about: its digest, and the most that it may cost."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from patternmill.identifiers import ItemKey
from patternmill.planning.items import canonical_json
from patternmill.planning.plan import TO_BUY, TO_DO, Cost, Plan, Reason, cost_of
from patternmill.states import Stage
from patternmill.text import plural

Prices = Mapping[Stage, int]


@dataclass(frozen=True)
class Proposal:
    """A plan with the prices (minor units) and attempts that it would be carried out with."""

    plan: Plan
    prices: Prices
    attempts: int
    edition: str | None = None
    #: How people read the prices.
    currency: str | None = None

    @property
    def items(self) -> int:
        """To buy."""
        return self.plan.purchases().total()

    @property
    def cost(self) -> Cost:
        return cost_of(self.plan, self.prices, self.attempts, self.currency)

    def __str__(self) -> str:
        """`20 items for at least €5.00, at most €10.00 if jobs fail`; without prices, costs are not counted."""
        items = plural(self.items, "item")
        return f"{items} for {self.cost}" if self.cost.worst else items

    @property
    def most_purchases(self) -> int:
        """Requests, with every attempt at every item. Of items begun earlier, the first one is sent already."""
        begun = self.plan.counts({Reason.CONTINUED}).total()
        return self.items * self.attempts + begun * (self.attempts - 1)

    @property
    def to_do(self) -> frozenset[ItemKey]:
        return frozenset(key for key, planned in self.plan.items.items() if planned.reason in TO_DO)

    @property
    def to_buy(self) -> frozenset[ItemKey]:
        return frozenset(key for key, planned in self.plan.items.items() if planned.reason in TO_BUY)

    def price(self, key: ItemKey) -> int:
        """Minor units."""
        return self.prices[self.plan.items[key].item.stage]

    def exceeds(self, items: int | None, cost: int | None) -> bool:
        """Whether it is above a limit of items, or of what it costs at worst (minor units)."""
        return (items is not None and self.items > items) or (cost is not None and self.cost.worst > cost)

    def digest(self) -> str:
        """SHA-256 of what would be made, why, and for which price each: an approval is bound to it.

        After which attempt, too: what was approved and failed again is another plan.
        """
        scope = self.plan.scope
        planned = ((key, self.plan.items[key]) for key in self.to_do)
        items = sorted(
            [key, it.reason.value, self.price(key), *([it.after] if it.after else [])] for key, it in planned
        )
        content = ["v1", scope.environment, scope.catalog, self.edition, items]
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()
