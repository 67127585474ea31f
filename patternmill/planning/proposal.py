"""Proposals: the work of a plan or an order that a person decides about, with its digest and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from patternmill.identifiers import ItemKey
from patternmill.planning.items import Item, Scope, canonical_json, canonical_texts
from patternmill.planning.plan import TO_BUY, TO_DO, Cost, Plan, Reason, cost_of
from patternmill.states import Stage
from patternmill.text import plural

Prices = Mapping[Stage, int]


@dataclass(frozen=True)
class Proposal:
    """The items of a plan or an order, as a person approves them."""

    scope: Scope
    #: SHA-256 of what would be made; an approval is bound to it.
    digest: str
    to_do: frozenset[ItemKey]
    #: The items that would be bought, each with its price in minor units.
    to_buy: Mapping[ItemKey, int]
    #: The number that counts against a limit of items: items to buy, or pieces to order.
    items: int
    #: The cost; None where nobody knows it before a person pays, which is above every limit.
    cost: Cost | None
    #: The number of requests if every attempt at every item is used.
    most_purchases: int
    #: The products of the catalog that it would replace, and why a person is asked about that, in at most three lines.
    replaced: tuple[str, ...] = ()
    #: The text that people read instead of the number of items.
    named: str | None = None

    def __str__(self) -> str:
        """Return `20 items for at least €5.00, at most €10.00 if jobs fail`; without prices, costs are not counted."""
        items = self.named or plural(self.items, "item")
        return f"{items} for {self.cost}" if self.cost is not None and self.cost.worst else items

    def exceeds(self, items: int | None, cost: int | None) -> bool:
        """Return whether it is above a limit of items, or of what it costs at worst (minor units)."""
        if items is not None and self.items > items:
            return True
        return cost is not None and (self.cost is None or self.cost.worst > cost)


def proposal_of(
    plan: Plan, prices: Prices, attempts: int, currency: str | None = None, replaced: tuple[str, ...] = ()
) -> Proposal:
    """Return the proposal of a plan, with prices in minor units and the most attempts at an item.

    `replaced`: what it replaces that a person is asked about.
    """
    to_buy = {
        key: prices[planned.item.stage] for key, planned in plan.items.items() if planned.reason in TO_BUY
    }
    # The first request for an item begun earlier has already been sent.
    begun = plan.counts({Reason.CONTINUED}).total()
    return Proposal(
        plan.scope,
        digest=_digest(plan, prices, currency),
        to_do=frozenset(key for key, planned in plan.items.items() if planned.reason in TO_DO),
        to_buy=to_buy,
        items=len(to_buy),
        cost=cost_of(plan, prices, attempts, currency),
        most_purchases=len(to_buy) * attempts + begun * (attempts - 1),
        replaced=replaced,
    )


def _digest(plan: Plan, prices: Prices, currency: str | None) -> str:
    """Return the digest of what would be made, why, at which price, and after which attempt.

    So a plan in which an item has failed once more has another digest.
    """
    to_do = [
        [key, planned.reason.value, prices[planned.item.stage], *filter(None, [planned.after])]
        for key, planned in sorted(plan.items.items())
        if planned.reason in TO_DO
    ]
    scope = ["v1", plan.scope.environment, plan.scope.catalog, *filter(None, [currency])]
    return sha256(canonical_texts([*scope, to_do])).hexdigest()


def order_proposal(scope: Scope, order: str, new: Sequence[Item], in_doubt: Sequence[Item] = ()) -> Proposal:
    """Return the proposal of an order's checkouts, counted in pieces: only their pages show what they cost.

    `new`: checkouts that are not open yet; `in_doubt`: those whose requests were sent and have no answers.
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
