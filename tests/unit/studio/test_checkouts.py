"""Checkouts and orders: paid once, on their way by the clock, cancelled in time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from studio.errors import Refusal
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


def test_order_is_cancelled_before_production_only(shop: Shop) -> None:
    first, second = shop.checkout("c-1"), shop.checkout("c-2")
    order = shop.service.checkouts.pay(first)
    late = shop.service.checkouts.pay(second)
    assert shop.service.checkouts.cancel_order(order).cancelled_at == shop.clock.now
    shop.clock.pass_time(ORDER_STEPS[Pace.REALISTIC][0].total_seconds())

    with pytest.raises(Refusal) as refused:
        shop.service.checkouts.cancel_order(late)

    assert refused.value.code == "order_in_production"
    assert shop.states(first) == ["paid", "cancelled"]
    assert shop.states(second) == ["paid", "in_production"]


def test_cancelled_checkout_cannot_be_paid(shop: Shop) -> None:
    """And a paid one cannot be cancelled; both may be done again."""
    cancelled, paid = shop.checkout("c-1"), shop.checkout("c-2")
    shop.service.checkouts.cancel(cancelled)
    shop.service.checkouts.cancel(cancelled)
    order = shop.service.checkouts.pay(paid)

    with pytest.raises(Refusal) as refused:
        shop.service.checkouts.pay(cancelled)
    assert (refused.value.status, refused.value.code) == (409, "checkout_cancelled")
    with pytest.raises(Refusal) as refused:
        shop.service.checkouts.cancel(paid)
    assert (refused.value.status, refused.value.code) == (409, "checkout_paid")
    assert shop.service.checkouts.pay(paid) == order


def test_paid_by_many_at_once_is_one_order(shop: Shop) -> None:
    """From several connections to the file."""
    checkout = shop.checkout()

    def pay(_: int) -> str:
        store = Store(shop.path)
        try:
            return shop.open(store).checkouts.pay(checkout).order_id
        finally:
            store.close()

    with ThreadPoolExecutor(8) as payers:
        orders = set(payers.map(pay, range(24)))

    assert len(orders) == 1
    assert len(shop.store.checkouts.orders(DEFAULT_ACCOUNT, None, 9)) == 1


def test_prices_are_those_of_the_creation(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sold may become dearer; an open checkout does not."""
    checkout = shop.checkout()
    monkeypatch.setattr("studio.offer.Category.price", lambda self, selections: 1)

    assert shop.checkout().total == checkout.total == 2 * 1290
    assert shop.checkout("later").total == 2


def test_page_finds_its_checkout(shop: Shop) -> None:
    checkout = shop.checkout()

    assert shop.service.checkouts.of_page(checkout.page_id) == checkout
    assert shop.service.checkouts.of_page(checkout.checkout_id) is None
