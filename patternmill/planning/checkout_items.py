"""Checkout items: which products a person orders together, how many of each, under names that follow from them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.items import NOTHING_MADE, Made, Scope, canonical_json, item_key, request_id
from patternmill.planning.proposal import Proposal
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


def order_proposal(
    scope: Scope, order: str, new: Sequence[CheckoutItem], in_doubt: Sequence[CheckoutItem] = ()
) -> Proposal:
    """The checkouts of one order, counted in pieces: what they cost is seen on their pages alone.

    `new`: not opened yet; `in_doubt`: their requests were sent, and the answers are missing.
    """
    to_do = frozenset(item.key for item in (*new, *in_doubt))
    content = ["v1", scope.environment, scope.catalog, order, sorted(to_do)]
    pieces = sum(item.pieces for item in new)
    return Proposal(
        scope,
        digest=hashlib.sha256(canonical_json(content).encode()).hexdigest(),
        to_do=to_do,
        to_buy=dict.fromkeys((item.key for item in new), 0),
        items=pieces,
        cost=None,
        most_purchases=len(to_do),
        named=f"{plural(pieces, 'piece')} in {plural(len(new), 'checkout')}",
    )
