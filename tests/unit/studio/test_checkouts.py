"""Checkouts and orders: paid once, on their way by the clock, cancelled in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.operations.context import Caller
from studio.pace import ORDER_STEPS, Pace
from studio.requests import CheckoutLine, CreateCheckout, CreatePattern, CreateProduct, GetJob, GetOrder
from studio.service import Service
from studio.store import DEFAULT_ACCOUNT, Checkout, Store

from .test_service import Clock

CALLER = Caller(DEFAULT_ACCOUNT, "http://studio.test")


class Shop:
    """A service with one product, and a clock that is set by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = Clock()
        self.store = Store(path)
        self.service = self.open(self.store)
        self.product_id = self._product()

    def open(self, store: Store) -> Service:
        return Service(store, pace=Pace.REALISTIC, clock=self.clock)

    def checkout(self, request_id: str = "c") -> Checkout:
        line = CheckoutLine(productId=self.product_id, quantity=2)
        answer = self.service.checkouts.create(CreateCheckout(requestId=request_id, lines=[line]), CALLER)
        return self.service.checkouts.find(str(answer["checkoutId"]), CALLER)

    def states(self, checkout: Checkout) -> list[str]:
        body = GetOrder(checkoutId=checkout.checkout_id)
        order = self.service.checkouts.get_order(body, CALLER)
        history = order["history"]
        assert isinstance(history, list)
        assert order["status"] == history[-1]["status"]
        return [event["status"] for event in history]

    def _product(self) -> str:
        job = self.service.patterns.create(CreatePattern(requestId="p", prompt="ferns"), CALLER)
        body = CreateProduct(
            requestId="q",
            patternId=self._ended(job, "patternId"),
            categoryId="cat_stg_mug",
            selections={"size": "11oz", "finish": "glossy"},
        )
        return self._ended(self.service.products.create(body, CALLER), "productId")

    def _ended(self, job: dict[str, object], name: str) -> str:
        self.clock.pass_time(120)
        result = self.service.jobs.get(GetJob(jobId=str(job["jobId"])), CALLER)["result"]
        assert isinstance(result, dict)
        return str(result[name])


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "studio.db")
    yield made
    made.store.close()


def test_order_goes_through_its_states_by_the_clock(shop: Shop) -> None:
    """No timer: what is answered follows from the time of payment."""
    checkout = shop.checkout()
    shop.service.checkouts.pay(checkout)
    passed = 0.0
    expected = ["paid"]
    assert shop.states(checkout) == expected
    for state, after in zip(
        ("in_production", "shipped", "delivered"), ORDER_STEPS[Pace.REALISTIC], strict=True
    ):
        shop.clock.pass_time(after.total_seconds() - passed - 1)
        assert shop.states(checkout) == expected
        shop.clock.pass_time(1)
        passed = after.total_seconds()
        expected.append(state)
        assert shop.states(checkout) == expected
