"""The charge meter: what is charged, and what counts as bought twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from studio.instruments.meter import PATTERN_PRICE, PRODUCT_PRICE, read_meter
from studio.operations.context import Caller
from studio.pace import Pace
from studio.requests import CheckoutLine, CreateCheckout, CreatePattern, CreateProduct
from studio.service import Service
from studio.store import DEFAULT_ACCOUNT, Account, Store

CALLER = Caller(DEFAULT_ACCOUNT, "http://studio.test")
OTHER = Caller(Account("other"), CALLER.origin)


class Shop:
    """A studio whose clock is a field."""

    def __init__(self, home: Path) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.path = home / "studio.db"
        self.store = Store(self.path)
        self.service = Service(self.store, home=home, pace=Pace.REALISTIC, clock=lambda: self.now)

    def pattern(self, request_id: str, prompt: str = "ferns", caller: Caller = CALLER) -> str:
        """The ID of the pattern, which is there two minutes later."""
        self.service.patterns.create(CreatePattern(requestId=request_id, prompt=prompt), caller)
        self.now += timedelta(seconds=120)
        return self.store.jobs.page(caller.account, None, 1)[0][1].result_id

    def order(self, request_id: str, product_id: str) -> None:
        lines = [CheckoutLine(productId=product_id, quantity=2)]
        body = CreateCheckout(requestId=request_id, lines=lines)
        page = str(self.service.checkouts.create(body, CALLER)["checkoutUrl"]).rsplit("/", 1)[-1]
        checkout = self.service.store.checkouts.of_page(page)
        assert checkout is not None
        self.service.checkouts.pay(checkout)

    def double(self) -> list[tuple[str, str]]:
        return [one["requestIds"] for one in read_meter(self.path, self.now)["suspectedDoublePurchases"]]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.store.close()


def test_everything_bought_has_its_price(shop: Shop) -> None:
    """A checkout costs nothing until it is paid."""
    pattern = shop.pattern("1")
    shop.pattern("1", caller=OTHER)
    selections = {"size": "11oz", "finish": "matte"}
    body = CreateProduct(requestId="2", patternId=pattern, categoryId="cat_stg_mug", selections=selections)
    shop.service.products.create(body, CALLER)
    shop.now += timedelta(seconds=20)
    product = shop.store.jobs.page(DEFAULT_ACCOUNT, None, 1)[0][1].result_id
    lines = [CheckoutLine(productId=product, quantity=1)]
    shop.service.checkouts.create(CreateCheckout(requestId="3", lines=lines), CALLER)
    shop.order("4", product)

    reading = read_meter(shop.path, shop.now)
    amounts = [one["amount"] for one in reading["purchases"]]
    assert amounts[:3] == [PATTERN_PRICE, PATTERN_PRICE, PRODUCT_PRICE]
    assert amounts[3] > 2000 and amounts[3] % 2 == 0
    assert reading["total"] == sum(amounts)
    bought = [(one["account"], one["requestId"], one["what"]) for one in reading["purchases"]]
    assert bought == [
        ("default", "1", "pattern"),
        ("other", "1", "pattern"),
        ("default", "2", "product"),
        ("default", "4", "order"),
    ]
    assert shop.double() == []


def test_same_content_under_another_request_id_is_suspected(shop: Shop) -> None:
    """Each further one; a repeated request is none, nor is another account's or another prompt's."""
    for request_id in ("1", "1", "2", "3"):
        shop.pattern(request_id)
    shop.pattern("4", "moons")
    shop.pattern("5", caller=OTHER)

    assert shop.double() == [("1", "2"), ("1", "3")]
