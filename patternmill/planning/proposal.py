"""The plan that a person decides about: its digest, and the most that it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from patternmill.identifiers import ItemKey
from patternmill.planning.items import canonical_json
from patternmill.planning.plan import TO_BUY, TO_DO, Cost, Plan, Reason, cost_of
from patternmill.states import Stage
from patternmill.text import plural

Prices = Mapping[Stage, int]

_CHUNK = 1000


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
        scope, planned = self.plan.scope, self.plan.items
        keys = sorted(key for key, one in planned.items() if one.reason in TO_DO)
        # The bytes of one JSON text, of which a part at a time is in memory.
        text = sha256(
            canonical_json(["v1", scope.environment, scope.catalog, self.edition, []])[:-2].encode()
        )
        for first in range(0, len(keys), _CHUNK):
            items = [
                [key, one.reason.value, self.prices[one.item.stage], *([one.after] if one.after else [])]
                for key in keys[first : first + _CHUNK]
                for one in (planned[key],)
            ]
            text.update(f"{',' if first else ''}{canonical_json(items)[1:-1]}".encode())
        text.update(b"]]")
        return text.hexdigest()
