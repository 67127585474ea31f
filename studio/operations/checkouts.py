"""Checkouts: lines of products that a buyer pays at a hosted address; a paid one becomes one order."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from studio import offer
from studio.errors import Refusal, unknown
from studio.operations.context import Answer, Caller, Context, address, identifier, listing, timestamp
from studio.operations.products import Products
from studio.pace import ORDER_STEPS
from studio.requests import CheckoutLine, CreateCheckout, GetCheckout, Page
from studio.store.records import Checkout, Order

#: The states of an order that is not cancelled.
STEPS = ("paid", "in_production", "shipped", "delivered")


class Checkouts:
    """`checkouts/*`, and what the hosted page does with them."""

    def __init__(self, context: Context, products: Products) -> None:
        self._context = context
        self._store = context.store
        self._products = products

    def create(self, body: CreateCheckout, caller: Caller) -> Answer:
        earlier = self._context.earlier(body, caller)
        if earlier is not None:
            return checkout_body(self.find(earlier, caller), caller)
        checkout = Checkout(
            checkout_id=identifier("chk"),
            account=caller.account,
            page_id=address(),
            lines=[self._line(line, caller) for line in body.lines],
            created_at=self._context.clock(),
        )
        with self._store.transaction():
            self._store.checkouts.add(checkout)
            self._context.accept(body, caller, checkout.checkout_id)
        return checkout_body(checkout, caller)

    def get(self, body: GetCheckout, caller: Caller) -> Answer:
        return checkout_body(self.find(body.checkoutId, caller), caller)

    def find(self, checkout_id: str, caller: Caller) -> Checkout:
        """Return the caller's checkout. Raises Refusal (404)."""
        checkout = self._store.checkouts.one(checkout_id=checkout_id, account=caller.account)
        if checkout is None:
            raise unknown("checkout", checkout_id)
        return checkout

    def order(self, checkout: Checkout) -> Order | None:
        """Return the order that the checkout became."""
        return self._store.orders.one(checkout_id=checkout.checkout_id)

    def pay(self, checkout: Checkout) -> Order:
        """Pay a checkout; return the order that it becomes, or has become before. Raises Refusal (409) if cancelled."""
        now = self._context.clock()
        production, shipped, delivered = (now + step for step in ORDER_STEPS[self._context.pace])
        with self._store.transaction():
            if self._close(checkout, "paid_at"):
                order = Order(
                    order_id=identifier("ord"),
                    checkout_id=checkout.checkout_id,
                    account=checkout.account,
                    paid_at=now,
                    production_at=production,
                    shipped_at=shipped,
                    delivered_at=delivered,
                )
                self._store.orders.add(order)
                return order
        earlier = self.order(checkout)
        if earlier is None:
            raise Refusal(409, "checkout_cancelled", "The checkout was cancelled: it cannot be paid.")
        return earlier

    def cancel(self, checkout: Checkout) -> None:
        """Cancel a checkout, so that nobody can pay it any more. Raises Refusal (409) if it is paid."""
        self._close(checkout, "cancelled_at")
        if self.order(checkout) is not None:
            raise Refusal(409, "checkout_paid", "The checkout is paid: cancel its order.")

    def _close(self, checkout: Checkout, column: str) -> bool:
        """Close a checkout by the time in this column; return whether it was open."""
        is_open = {"checkout_id": checkout.checkout_id, "paid_at": None, "cancelled_at": None}
        return self._store.checkouts.update({column: self._context.clock()}, **is_open) == 1

    def _line(self, line: CheckoutLine, caller: Caller) -> Answer:
        article = self._products.find(line.productId, caller).article
        return {
            "productId": line.productId,
            "description": article.description,
            "quantity": line.quantity,
            "unitPrice": offer.money(article.price),
            "total": offer.money(article.price * line.quantity),
        }


class Orders:
    """`orders/*`, and what the hosted page does with them."""

    def __init__(self, context: Context, checkouts: Checkouts) -> None:
        self._context = context
        self._store = context.store
        self._checkouts = checkouts

    def get(self, body: GetCheckout, caller: Caller) -> Answer:
        """Answer with the order of a checkout. Raises Refusal (404), with another code while it is not paid."""
        checkout = self._checkouts.find(body.checkoutId, caller)
        order = self._checkouts.order(checkout)
        if order is not None:
            return self.answer(order)
        if checkout.cancelled_at is None:
            raise Refusal(404, "unknown_order", "The checkout is not paid: it has no order.")
        return {"checkoutId": checkout.checkout_id, "status": status_of(checkout)}

    def list(self, body: Page, caller: Caller) -> Answer:
        read = partial(self._store.orders.page, account=caller.account)
        return listing("orders", body, read, self.answer)

    def cancel(self, order: Order) -> None:
        """Cancel an order. Raises Refusal (409) once it is in production."""
        now = self._context.clock()
        if order.cancelled_at is None and order.production_at <= now:
            raise Refusal(409, "order_in_production", "The order is in production: it cannot be cancelled.")
        self._store.orders.update({"cancelled_at": now}, order_id=order.order_id, cancelled_at=None)

    def answer(self, order: Order) -> Answer:
        """Return the order as it stands now."""
        checkout = self._store.checkouts.one(checkout_id=order.checkout_id)
        assert checkout is not None, order.checkout_id
        now = self._context.clock()
        history = [{"status": status, "at": timestamp(at)} for status, at in _states(order) if at <= now]
        return {
            "orderId": order.order_id,
            "checkoutId": order.checkout_id,
            "status": history[-1]["status"],
            "lines": checkout.lines,
            "total": _total(checkout),
            "history": history,
            "createdAt": timestamp(order.paid_at),
            "paidAt": timestamp(order.paid_at),
        }


def status_of(checkout: Checkout) -> str:
    if checkout.paid_at is not None:
        return "paid"
    return "open" if checkout.cancelled_at is None else "cancelled"


def checkout_body(checkout: Checkout, caller: Caller) -> Answer:
    return {
        "checkoutId": checkout.checkout_id,
        "checkoutUrl": f"{caller.origin}/checkout/{checkout.page_id}",
        "status": status_of(checkout),
        "lines": checkout.lines,
        "total": _total(checkout),
        "createdAt": timestamp(checkout.created_at),
    }


def _states(order: Order) -> list[tuple[str, datetime]]:
    """Return every state that the order goes through, and when it does."""
    if order.cancelled_at is not None:
        return [("paid", order.paid_at), ("cancelled", order.cancelled_at)]
    times = (order.paid_at, order.production_at, order.shipped_at, order.delivered_at)
    return list(zip(STEPS, times, strict=True))


def _total(checkout: Checkout) -> Answer:
    return offer.money(sum(line["total"]["amount"] for line in checkout.lines))
