"""A run that would replace products of its catalog beyond the limit: refused, until a person agrees."""

from __future__ import annotations

import asyncio

import pytest

from patternmill.errors import ApprovalNeeded
from patternmill.planning.offer import Category, Offer
from patternmill.planning.proposal import Proposal
from patternmill.runs import approval
from patternmill.settings import load_settings
from tests.hostile.in_process import OFFER, Service

from .shop import Cells, Shop
from .shop import shop as shop

UNREADABLE = Offer(None, "no categories", False)
RENUMBERED = Offer((Category("cat_bag", "Tote", None),), note=None)


def rows(count: int, prompt: str) -> dict[str, Cells]:
    return {f"s-{number}": {"prompt": f"{prompt} {number}"} for number in range(count)}


def refused(shop: Shop, source: dict[str, Cells]) -> ApprovalNeeded:
    """The refusal; nothing was requested."""
    before = len(shop.service.creates)
    with pytest.raises(ApprovalNeeded) as caught:
        shop.refresh(source)
    assert len(shop.service.creates) == before
    return caught.value


def proposal(shop: Shop) -> Proposal:
    async def main() -> Proposal:
        async with shop.refresh_work() as work:
            return (await work.preview()).proposal

    return asyncio.run(main())


def test_many_are_refused_until_they_are_confirmed(shop: Shop) -> None:
    """The refusal says what would be replaced and why it is asked, and names both ways to agree."""
    shop.refresh(rows(8, "herons"))
    said = refused(shop, rows(8, "owls"))
    assert said.lines[1:3] == (
        "It would replace 8 products that the catalog has: s-0, s-1, s-2 … and 5 more.",
        "More are replaced than --change-at-most allows.",
    )
    assert f"--approve {proposal(shop).digest[:12]}` (or `--confirm changes`)" in said.remedy
    shop.refresh(confirm="changes")
    assert shop.has()["s-0"] == "owls 0"
    refused(shop, rows(8, "foxes"))
    approval.approve(load_settings(), proposal(shop), "anna")
    shop.refresh()
    assert shop.has()["s-7"] == "foxes 7"


def test_confirmed_changes_are_no_approval_of_the_purchase(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above another limit, the confirmation is not named, as it would not be enough."""
    shop.refresh(rows(8, "herons"))
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "3")
    assert "--confirm" not in refused(shop, rows(8, "owls")).remedy
    with pytest.raises(ApprovalNeeded):
        shop.refresh(confirm="changes")


def test_another_id_of_the_same_category_always_asks(shop: Shop) -> None:
    shop.refresh(rows(1, "herons"))
    shop.offer(RENUMBERED)
    assert refused(shop, rows(1, "herons")).lines[1:3] == (
        "It would replace 1 product that the catalog has: s-0.",
        "The category has another ID under the same name: Tote (cat_tote -> cat_bag).",
    )


def test_offer_that_became_readable_always_asks(shop: Shop, service: Service) -> None:
    shop.offer(UNREADABLE)
    shop.refresh(rows(1, "herons"))
    shop.offer(OFFER)
    assert refused(shop, rows(1, "herons")).lines[1:3] == (
        "It would replace 1 product that the catalog has: s-0.",
        "Made while the offer could not be read, which is readable now: 1 product.",
    )
