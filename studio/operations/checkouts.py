"""Checkouts: lines of products that a buyer pays at a hosted address; a paid one becomes one order."""

from __future__ import annotations

from datetime import datetime, timedelta

from studio.answers import CheckoutAnswer, Money, OrderAnswer, OrderPage, OrderStatus, PricedLine
from studio.offer import money
from studio.operations.call import Call, address, identifier, part_of, place, timestamp
from studio.operations.products import find_product
from studio.records import Checkout, Order
from studio.requests import CheckoutLine, CreateCheckout, GetCheckout, Page
from studio.wire import Refusal, unknown

#: The states of an order that is not cancelled.
STEPS: tuple[OrderStatus, ...] = ("paid", "in_production", "shipped", "delivered")
#: The time from payment until an order reaches each of them, by pace.
STEP_TIMES = {
    "quick": [timedelta(seconds=seconds) for seconds in (0, 5, 10, 15)],
    "realistic": [timedelta(hours=hours) for hours in (0, 2, 48, 120)],
    "instant": [timedelta()] * 4,
}


def create(call: Call, body: CreateCheckout) -> CheckoutAnswer:
    """Open a checkout."""
    earlier = call.earlier(body)
    if earlier is not None:
        return answer(call, find_checkout(call, earlier))
    checkout = Checkout(
        checkout_id=identifier("chk"),
        page_id=address(),
        lines=[_line(call, line) for line in body.lines],
        created_at=call.now,
    )
    call.accept(body, checkout.checkout_id, checkout)
    return answer(call, checkout)


def get(call: Call, body: GetCheckout) -> CheckoutAnswer:
    """Return a checkout."""
    return answer(call, find_checkout(call, body.checkoutId))


def get_order(call: Call, body: GetCheckout) -> OrderAnswer:
    """Return the order of a paid checkout."""
    checkout = find_checkout(call, body.checkoutId)
    order = find_order(call, checkout)
    if order is not None:
        return order_answer(call, order)
    if checkout.status == "cancelled":
        return {"checkoutId": checkout.checkout_id, "status": "cancelled"}
    raise Refusal(404, "unknown_order", "The checkout is not paid: it has no order.")


def list_orders(call: Call, body: Page) -> OrderPage:
    """List all orders."""
    found, cursor = part_of(body, call.store.newest(Order, place(body)))
    return {"orders": [order_answer(call, order) for order in found], "nextCursor": cursor}


def find_checkout(call: Call, checkout_id: str) -> Checkout:
    """Return the checkout. Raises Refusal (404)."""
    checkout = call.store.find(Checkout, checkout_id=checkout_id)
    if checkout is None:
        raise unknown("checkout", checkout_id)
    return checkout


def find_order(call: Call, checkout: Checkout) -> Order | None:
    return call.store.find(Order, checkout_id=checkout.checkout_id)


def pay(call: Call, checkout: Checkout) -> None:
    """Pay a checkout, which makes its one order. Raises Refusal (409) if it is cancelled."""
    if checkout.status == "cancelled":
        raise Refusal(409, "checkout_cancelled", "The checkout was cancelled: it cannot be paid.")
    if checkout.status == "open":
        now = call.now
        times = [now + step for step in STEP_TIMES[call.studio.pace]]
        order = Order(order_id=identifier("ord"), checkout_id=checkout.checkout_id, times=times)
        call.store.change(checkout, order, paid_at=now)


def cancel(call: Call, checkout: Checkout) -> None:
    """Cancel a checkout, so that nobody can pay it any more. Raises Refusal (409) if it is paid."""
    if checkout.status == "paid":
        raise Refusal(409, "checkout_paid", "The checkout is paid: cancel its order.")
    if checkout.status == "open":
        call.store.change(checkout, cancelled_at=call.now)


def cancel_order(call: Call, checkout: Checkout) -> None:
    """Cancel the order of a checkout. Raises Refusal (409) once it is in production."""
    order = find_order(call, checkout)
    if order is None or order.cancelled_at is not None:
        return
    if order.times[1] <= call.now:
        raise Refusal(409, "order_in_production", "The order is in production: it cannot be cancelled.")
    call.store.change(order, cancelled_at=call.now)


def answer(call: Call, checkout: Checkout) -> CheckoutAnswer:
    return {
        "checkoutId": checkout.checkout_id,
        "checkoutUrl": f"{call.origin}/checkout/{checkout.page_id}",
        "status": checkout.status,
        "lines": checkout.lines,
        "total": _total(checkout),
        "createdAt": timestamp(checkout.created_at),
    }


def order_answer(call: Call, order: Order) -> OrderAnswer:
    """Return the order as it stands now."""
    checkout = find_checkout(call, order.checkout_id)
    reached = [(status, at) for status, at in _states(order) if at <= call.now]
    paid = timestamp(order.times[0])
    return {
        "orderId": order.order_id,
        "checkoutId": checkout.checkout_id,
        "status": reached[-1][0],
        "lines": checkout.lines,
        "total": _total(checkout),
        "history": [{"status": status, "at": timestamp(at)} for status, at in reached],
        "createdAt": paid,
        "paidAt": paid,
    }


def _states(order: Order) -> list[tuple[OrderStatus, datetime]]:
    """Return every state that the order goes through, and when it does."""
    if order.cancelled_at is not None:
        return [("paid", order.times[0]), ("cancelled", order.cancelled_at)]
    return list(zip(STEPS, order.times, strict=True))


def _line(call: Call, line: CheckoutLine) -> PricedLine:
    article = find_product(call, line.productId).article
    return {
        "productId": line.productId,
        "description": article.description,
        "quantity": line.quantity,
        "unitPrice": money(article.price),
        "total": money(article.price * line.quantity),
    }


def _total(checkout: Checkout) -> Money:
    return money(sum(line["total"]["amount"] for line in checkout.lines))
