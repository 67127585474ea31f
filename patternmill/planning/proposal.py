"""What a person decides about before it is bought: the work of a plan or an order, its digest, the most it may cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from patternmill.identifiers import ItemKey
from patternmill.planning.items import Item, Scope, canonical_json
from patternmill.planning.plan import TO_BUY, TO_DO, Cost, Plan, Reason, cost_of
from patternmill.states import Stage
from patternmill.text import plural

Prices = Mapping[Stage, int]


@dataclass(frozen=True)
class Proposal:
    """Items to be made, as a person approves them."""

    scope: Scope
    #: SHA-256 of what would be made; an approval is bound to it.
    digest: str
    to_do: frozenset[ItemKey]
    #: The items that would be bought, each with its price in minor units.
    to_buy: Mapping[ItemKey, int]
    #: What is counted against a limit of items: the items to buy, or pieces to order.
    items: int
    #: None: nobody knows it before a person pays, so that it is above every limit.
    cost: Cost | None
    #: Requests, with every attempt at every item.
    most_purchases: int
    #: For people, instead of the number of items.
    named: str | None = None

    def __str__(self) -> str:
        """`20 items for at least €5.00, at most €10.00 if jobs fail`; without prices, costs are not counted."""
        items = self.named or plural(self.items, "item")
        return f"{items} for {self.cost}" if self.cost is not None and self.cost.worst else items

    def exceeds(self, items: int | None, cost: int | None) -> bool:
        """Whether it is above a limit of items, or of what it costs at worst (minor units)."""
        if items is not None and self.items > items:
            return True
        return cost is not None and (self.cost is None or self.cost.worst > cost)


def proposal_of(plan: Plan, prices: Prices, attempts: int, currency: str | None = None) -> Proposal:
    """A plan with the prices (minor units) and attempts that it would be carried out with."""
    to_buy = {
        key: prices[planned.item.stage] for key, planned in plan.items.items() if planned.reason in TO_BUY
    }
    # Of items begun earlier, the first request is sent already.
    begun = plan.counts({Reason.CONTINUED}).total()
    return Proposal(
        plan.scope,
        digest=_digest(plan, prices, currency),
        to_do=frozenset(key for key, planned in plan.items.items() if planned.reason in TO_DO),
        to_buy=to_buy,
        items=len(to_buy),
        cost=cost_of(plan, prices, attempts, currency),
        most_purchases=len(to_buy) * attempts + begun * (attempts - 1),
    )


def _digest(plan: Plan, prices: Prices, currency: str | None) -> str:
    """Of what would be made, why, for which price each, and after which attempt: what failed again is another plan."""
    keys = sorted(key for key, planned in plan.items.items() if planned.reason in TO_DO)
    # The bytes of one JSON text, of which an item at a time is in memory.
    scope = ["v1", plan.scope.environment, plan.scope.catalog, *filter(None, [currency])]
    text = sha256(canonical_json([*scope, []])[:-2].encode())
    for number, key in enumerate(keys):
        one = plan.items[key]
        item = [key, one.reason.value, prices[one.item.stage], *([one.after] if one.after else [])]
        text.update(f"{',' if number else ''}{canonical_json(item)}".encode())
    text.update(b"]]")
    return text.hexdigest()


def order_proposal(scope: Scope, order: str, new: Sequence[Item], in_doubt: Sequence[Item] = ()) -> Proposal:
    """The checkouts of one order, counted in pieces: what they cost is seen on their pages alone.

    `new`: not opened yet; `in_doubt`: their requests were sent, and the answers are missing.
    """
    to_do = frozenset(item.key for item in (*new, *in_doubt))
    content = ["v1", scope.environment, scope.catalog, order, sorted(to_do)]
    pieces = sum(item.pieces for item in new)
    return Proposal(
        scope,
        digest=sha256(canonical_json(content).encode()).hexdigest(),
        to_do=to_do,
        to_buy=dict.fromkeys((item.key for item in new), 0),
        items=pieces,
        cost=None,
        most_purchases=len(to_do),
        named=f"{plural(pieces, 'piece')} in {plural(len(new), 'checkout')}",
    )
