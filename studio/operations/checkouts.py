"""Checkouts: lines of products that a buyer pays at a hosted address; a paid one becomes one order."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from studio import offer
from studio.errors import Refusal, unknown
from studio.operations.context import (
    Answer,
    Caller,
    Context,
    Creation,
    address,
    identifier,
    listing,
    timestamp,
)
from studio.operations.products import Products, article_of
from studio.pace import ORDER_STEPS
from studio.requests import CheckoutLine, CreateCheckout, GetCheckout, GetOrder, Page
from studio.store import Checkout, Line, Order


class Checkouts:
    """`checkouts/*` and `orders/*`, and what the hosted page does."""

    def __init__(self, context: Context, products: Products) -> None:
        self._context = context
        self._table = context.store.checkouts
        self._products = products

    def create(self, body: CreateCheckout, caller: Caller) -> Answer:
        creation = Creation(self._context, "checkouts/create", body, caller)
        earlier = creation.earlier()
        if earlier is not None:
            return checkout_body(self.find(earlier, caller), caller)
        lines = tuple(self._line(line, caller) for line in body.lines)
        checkout = Checkout(identifier("chk"), caller.account, address(), lines, self._context.clock())
        with self._context.store.transaction():
            self._table.add(checkout)
            creation.accept(checkout.checkout_id)
        return checkout_body(checkout, caller)

    def get(self, body: GetCheckout, caller: Caller) -> Answer:
        return checkout_body(self.find(body.checkoutId, caller), caller)

    def get_order(self, body: GetOrder, caller: Caller) -> Answer:
        """Raises Refusal (404), with another code while the checkout is not paid."""
        checkout = self.find(body.checkoutId, caller)
        order = self._table.order(caller.account, checkout.checkout_id)
        if order is not None:
            return order_body(order, checkout, self._context.clock())
        if checkout.cancelled_at is None:
            raise Refusal(404, "unknown_order", "The checkout is not paid: it has no order.")
        return {"checkoutId": checkout.checkout_id, "status": status_of(checkout)}

    def list_orders(self, body: Page, caller: Caller) -> Answer:
        read = partial(self._table.orders, caller.account)
        return listing("orders", body, read, lambda pair: order_body(*pair, self._context.clock()))

    def find(self, checkout_id: str, caller: Caller) -> Checkout:
        """Raises Refusal (404)."""
        checkout = self._table.get(caller.account, checkout_id)
        if checkout is None:
            raise unknown("checkout", checkout_id)
        return checkout

    def pay(self, checkout: Checkout) -> Order:
        """The checkout's order: the one that it becomes now, or became before. Raises Refusal (409) if cancelled."""
        now = self._context.clock()
        steps = (now + step for step in ORDER_STEPS[self._context.pace])
        self._table.pay(Order(identifier("ord"), checkout.checkout_id, checkout.account, now, *steps))
        order = self._table.order(checkout.account, checkout.checkout_id)
        if order is None:
            raise Refusal(409, "checkout_cancelled", "The checkout was cancelled: it cannot be paid.")
        return order

    def cancel(self, checkout: Checkout) -> None:
        """Nobody can pay it any more. Raises Refusal (409) if it is paid."""
        self._table.cancel(checkout.checkout_id, self._context.clock())
        if self._table.order(checkout.account, checkout.checkout_id) is not None:
            raise Refusal(409, "checkout_paid", "The checkout is paid: cancel its order.")

    def cancel_order(self, order: Order) -> Order:
        """Raises Refusal (409) once it is in production."""
        now = self._context.clock()
        if order.cancelled_at is None and order.production_at <= now:
            raise Refusal(409, "order_in_production", "The order is in production: it cannot be cancelled.")
        return self._table.cancel_order(order, now)

    def _line(self, line: CheckoutLine, caller: Caller) -> Line:
        article = article_of(self._products.find(line.productId, caller))
        return Line(line.productId, article.description, line.quantity, article.price)


def status_of(checkout: Checkout) -> str:
    if checkout.paid_at is not None:
        return "paid"
    return "open" if checkout.cancelled_at is None else "cancelled"


def checkout_body(checkout: Checkout, caller: Caller) -> Answer:
    return {
        "checkoutId": checkout.checkout_id,
        "checkoutUrl": f"{caller.origin}/checkout/{checkout.page_id}",
        "status": status_of(checkout),
        "lines": _lines(checkout),
        "total": offer.money(checkout.total),
        "createdAt": timestamp(checkout.created_at),
    }


def order_body(order: Order, checkout: Checkout, now: datetime) -> Answer:
    history = [(status, at) for status, at in _states(order) if at <= now]
    return {
        "orderId": order.order_id,
        "checkoutId": order.checkout_id,
        "status": history[-1][0],
        "lines": _lines(checkout),
        "total": offer.money(checkout.total),
        "history": [{"status": status, "at": timestamp(at)} for status, at in history],
        "createdAt": timestamp(order.paid_at),
        "paidAt": timestamp(order.paid_at),
    }


def _states(order: Order) -> list[tuple[str, datetime]]:
    """Every state that the order goes through, and when it does."""
    if order.cancelled_at is not None:
        return [("paid", order.paid_at), ("cancelled", order.cancelled_at)]
    return [
        ("paid", order.paid_at),
        ("in_production", order.production_at),
        ("shipped", order.shipped_at),
        ("delivered", order.delivered_at),
    ]


def _lines(checkout: Checkout) -> list[Answer]:
    return [
        {
            "productId": line.product_id,
            "description": line.description,
            "quantity": line.quantity,
            "unitPrice": offer.money(line.unit_price),
            "total": offer.money(line.unit_price * line.quantity),
        }
        for line in checkout.lines
    ]
