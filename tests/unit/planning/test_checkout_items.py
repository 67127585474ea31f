"""The request IDs of checkouts are a public promise, like all others: these values never change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from patternmill.identifiers import ItemKey
from patternmill.planning.items import Item, Scope, catalog_of, checkout_item
from patternmill.planning.proposal import order_proposal

SCOPE = Scope("staging", "spring").of_orders
LINES = (("prd_1", 2), ("prd_2", 1))


def item(order: str = "samples", lines: Sequence[tuple[str, int]] = LINES, scope: Scope = SCOPE) -> Item:
    return checkout_item(scope, order, lines)


ITEM = item()


def test_golden_ids_and_body() -> None:
    assert ITEM.key == "f6f813e7-a46d-56f2-ac1e-bc7d10ed1c2d"
    assert ITEM.request_id(1) == "e0e9eb18-f930-5289-b504-80a52458d344"
    assert ITEM.request_id(2) == "5e500cdd-ca1b-56ce-82ec-5dd9a4eb1dcb"
    assert ITEM.body(ITEM.request_id(1)) == (
        b'{"lines":[{"productId":"prd_1","quantity":2},{"productId":"prd_2","quantity":1}],'
        b'"requestId":"e0e9eb18-f930-5289-b504-80a52458d344"}'
    )


@pytest.mark.parametrize(
    "other",
    [
        item("samples-2"),
        item(lines=(("prd_1", 2), ("prd_2", 2))),
        item(lines=LINES[::-1]),
        item(scope=Scope("production", "spring").of_orders),
        item(scope=Scope("staging", "autumn").of_orders),
    ],
)
def test_whatever_is_ordered_otherwise_is_another_checkout(other: Item) -> None:
    assert other.key != ITEM.key


def test_scope_of_orders_is_no_catalogs() -> None:
    assert SCOPE.catalog == "spring/orders"
    assert catalog_of(SCOPE.catalog) == catalog_of("spring") == "spring"


def test_approval_counts_pieces() -> None:
    more = item(lines=[("prd_3", 4)])
    proposal = order_proposal(SCOPE, "samples", [ITEM, more])
    assert (proposal.items, str(proposal)) == (7, "7 pieces in 2 checkouts")
    assert not proposal.exceeds(7, None) and proposal.exceeds(6, None)
    assert proposal.exceeds(None, 10**9), "what it costs is not known"
    assert proposal.most_purchases == 2


def test_digest_is_of_what_is_left_to_do() -> None:
    """So a request in doubt is in it, and counts no pieces."""
    doubt = order_proposal(SCOPE, "samples", [], [ITEM])
    assert doubt.items == 0 and doubt.to_do == {ItemKey(ITEM.key)} and not doubt.to_buy
    assert doubt.digest == order_proposal(SCOPE, "samples", [ITEM]).digest
    assert doubt.digest != order_proposal(SCOPE, "samples-2", [ITEM]).digest
