"""Checkout items: which products a person orders together, how many of each, under names that follow from them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.items import NOTHING_MADE, Made, Scope, canonical_json, item_key, request_id
from patternmill.planning.plan import Cost
from patternmill.states import Stage
from patternmill.text import plural

#: No catalog has it in its name, so that the orders of a catalog have a lease and approvals of their own.
_ORDERS = "/orders"


def order_scope(environment: str, catalog: str) -> Scope:
    """The scope of a catalog's checkouts: whoever orders keeps no import waiting, nor is kept waiting by one."""
    return Scope(environment, f"{catalog}{_ORDERS}")


def catalog_of(scope: str) -> str:
    """The catalog that the name of a scope stands for, be it the catalog's own or that of its orders."""
    return scope.removesuffix(_ORDERS)


@dataclass(frozen=True)
class CheckoutItem:
    """One checkout to be opened, which a person pays."""

    scope: Scope
    #: The name of the order that it is a part of.
    order: str
    #: Product ID and quantity; in another order it would be another checkout.
    lines: tuple[tuple[str, int], ...]
    stage: ClassVar[Stage] = Stage.CHECKOUT
    is_repeatable: ClassVar[bool] = True

    @property
    def content(self) -> Mapping[str, Any]:
        return {"order": self.order, "lines": self._wire_lines}

    @property
    def pieces(self) -> int:
        return sum(quantity for _, quantity in self.lines)

    @cached_property
    def key(self) -> ItemKey:
        return item_key(self.scope.environment, self.scope.catalog, self.stage, self.content)

    def request_id(self, attempt: int) -> RequestId:
        return request_id(self.scope.environment, self.scope.catalog, self.stage, self.content, attempt)

    def body(self, request_id: RequestId, made: Made = NOTHING_MADE) -> bytes:
        """The JSON of this attempt, the same bytes in every resend."""
        return canonical_json({"requestId": request_id, "lines": self._wire_lines}).encode()

    def describe(self) -> str:
        """The name of its task run and of its log lines."""
        return f"checkout · {plural(len(self.lines), 'line')}, {plural(self.pieces, 'piece')}"

    @property
    def _wire_lines(self) -> list[dict[str, Any]]:
        return [{"productId": product_id, "quantity": quantity} for product_id, quantity in self.lines]


@dataclass(frozen=True)
class OrderProposal:
    """The checkouts of one order, as a person approves them: counted in pieces, for nobody knows what they cost."""

    scope: Scope
    order: str
    #: That are not opened yet.
    new: Sequence[CheckoutItem]
    #: Requests that were sent, and whose answers are missing.
    in_doubt: Sequence[CheckoutItem] = ()
    edition: ClassVar[None] = None

    @property
    def items(self) -> int:
        return sum(item.pieces for item in self.new)

    @property
    def cost(self) -> Cost:
        return Cost(0, 0, None)

    @property
    def most_purchases(self) -> int:
        """Requests: one a checkout."""
        return len(self.to_do)

    def __str__(self) -> str:
        checkouts = plural(len(self.new), "checkout")
        return f"{plural(self.items, 'piece')} in {checkouts}"

    @property
    def to_do(self) -> frozenset[ItemKey]:
        return frozenset(item.key for item in (*self.new, *self.in_doubt))

    @property
    def to_buy(self) -> frozenset[ItemKey]:
        return frozenset(item.key for item in self.new)

    def price(self, key: ItemKey) -> int:
        return 0

    def exceeds(self, items: int | None, cost: int | None) -> bool:
        """Where a limit of cost is set, every order does: what it costs is seen on the page of its checkout alone."""
        return cost is not None or (items is not None and self.items > items)

    def digest(self) -> str:
        """SHA-256 of what would be ordered: an approval is bound to it."""
        content = ["v1", self.scope.environment, self.scope.catalog, self.order, sorted(self.to_do)]
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()
