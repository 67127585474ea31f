"""Answers about checkouts and orders, of the shapes that services may give them."""

from __future__ import annotations

from typing import Any

import pytest

from patternmill.errors import ServiceStopped
from patternmill.service.orders import ShownOrder, checkout_address, read_order
from patternmill.service.outcomes import Answer, Trouble
from tests.unit.service.answers import answered, lost


@pytest.mark.parametrize(
    ("body", "order_id", "status"),
    [
        ({"orderId": "ord_1", "status": "paid"}, "ord_1", "paid"),
        ({"order": {"orderId": "ord_1", "status": "Shipped"}}, "ord_1", "Shipped"),
        ({"orderId": 7, "status": ["paid"]}, "7", None),
        ({"checkoutId": "chk_1", "status": "processing"}, None, "processing"),
        ({"checkoutId": "chk_1", "paid": True, "total": 12}, None, None),
        ({"orderId": "ord_1", "status": "unpaid"}, "ord_1", "unpaid"),
    ],
)
def test_order_bare_or_wrapped(body: dict[str, Any], order_id: str | None, status: str | None) -> None:
    """Its fields are not specified: those that are there are read."""
    order = read_order(answered(200, body), "chk_1")
    assert order is not None
    assert (order.order_id, order.status) == (order_id, status)


@pytest.mark.parametrize(
    "said",
    [
        {"paid": True},
        {"status": "Paid"},
        {"paymentStatus": "paid"},
        {"payment": {"status": "PAID"}},
        {"paid_at": "2027-01-15T08:00:00Z"},
        {"paidAt": 1_800_000_000},
        {"order": {"orderId": "ord_1", "paidAt": "2027-01-15"}},
    ],
)
def test_paid_is_what_the_service_says_is_paid(said: dict[str, Any]) -> None:
    order = read_order(answered(200, said), "chk_1")
    assert order is not None and order.paid


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"status": "confirmed"},
        {"number": 7, "receipt": "r-1", "invoice": {"total": 12}},
        {"paid": False, "status": "paid"},
        {"paid": "yes"},
        {"paymentStatus": "pending", "paid": True},
        {"payment": {"status": "authorized"}},
        {"refunded": {"paid": True}},
    ],
)
def test_an_order_alone_is_no_payment(said: dict[str, Any]) -> None:
    """What it says otherwise is shown, and not guessed at."""
    order = read_order(answered(200, {"orderId": "ord_1"} | said), "chk_1")
    assert order is not None and not order.paid and order.order_id == "ord_1"


@pytest.mark.parametrize(
    "answer",
    [
        *(answered(status) for status in (402, 404, 410)),
        *(
            answered(200, body)
            for body in (
                [],
                {"order": {}},
                {"error": {"message": "not paid yet"}},
                {"order": {"error": {"code": 404}}},
                {"items": [], "total": 0},
                {"checkoutId": "chk_1", "lines": [{"productId": "p", "quantity": 1}]},
            )
        ),
    ],
)
def test_no_order_as_yet(answer: Answer) -> None:
    assert read_order(answer, "chk_1") is None


@pytest.mark.parametrize(
    ("answer", "cancelled"),
    [
        (answered(200, {"status": "Cancelled"}), True),
        (answered(200, {"order": {"orderId": "ord_1", "status": "canceled"}}), True),
        (answered(200, {"status": "cancelling"}), False),
        (answered(200, {"status": "open", "history": ["cancelled"]}), False),
    ],
)
def test_cancelled_is_what_the_service_says_is_cancelled(answer: Answer, cancelled: bool) -> None:
    order = read_order(answer, "chk_1")
    assert order is not None and order.cancelled is cancelled and not order.paid


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (answered(401), "unauthorized"),
        (answered(403), "forbidden"),
        (answered(503), "order_not_shown"),
        (answered(200, trouble=Trouble.HTML), "order_not_shown"),
        (lost(), "order_not_shown"),
        (answered(200, {"orderId": "o", "checkoutId": "chk_2"}), "other_order"),
    ],
)
def test_answer_that_says_neither(answer: Answer, code: str) -> None:
    with pytest.raises(ServiceStopped) as stopped:
        read_order(answer, "chk_1")
    assert stopped.value.code == code


def test_addresses_are_not_kept() -> None:
    order = read_order(
        answered(200, {"orderId": "ord_1", "status": "see https://pay.example/secret"}), "chk_1"
    )
    assert order == ShownOrder("ord_1", "see [removed]")


@pytest.mark.parametrize(
    "url",
    [None, "javascript:alert(1)", "https://", "http://[", "https://a/\nb"],
)
def test_address_that_no_browser_can_open(url: Any) -> None:
    assert checkout_address({"checkoutUrl": url}) is None
