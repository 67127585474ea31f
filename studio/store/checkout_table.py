"""Checkouts, and the one order that comes of each paid one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime

from studio.store.database import Account, Database, Row, instant, optional_instant, row_of
from studio.store.job_table import LAST

COLUMNS = "checkout_id, account, page_id, lines, created_at, paid_at, cancelled_at"
ORDER_COLUMNS = (
    "order_id, checkout_id, account, paid_at, production_at, shipped_at, delivered_at, cancelled_at"
)


@dataclass(frozen=True)
class Line:
    """A product, how often, and what it costs: `unit_price` in minor units, as it was at the creation."""

    product_id: str
    description: str
    quantity: int
    unit_price: int


@dataclass(frozen=True)
class Checkout:
    """What a buyer is asked to pay."""

    checkout_id: str
    account: Account
    page_id: str
    lines: tuple[Line, ...]
    created_at: datetime
    paid_at: datetime | None = None
    cancelled_at: datetime | None = None

    @property
    def total(self) -> int:
        """In minor units."""
        return sum(line.unit_price * line.quantity for line in self.lines)


@dataclass(frozen=True)
class Order:
    """A paid checkout on its way; the times of its states were settled when it was paid."""

    order_id: str
    checkout_id: str
    account: Account
    paid_at: datetime
    production_at: datetime
    shipped_at: datetime
    delivered_at: datetime
    cancelled_at: datetime | None = None


class CheckoutTable:
    """Reads and writes of the tables `checkout` and `orders`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, checkout: Checkout) -> None:
        self._database.insert("checkout", COLUMNS, row_of(checkout))

    def get(self, account: Account, checkout_id: str) -> Checkout | None:
        return self._one("checkout_id = ? AND account = ?", checkout_id, account)

    def of_page(self, page_id: str) -> Checkout | None:
        return self._one("page_id = ?", page_id)

    def pay(self, order: Order) -> bool:
        """Keep the order, unless its checkout was paid or cancelled before: then nothing is changed."""
        with self._database.transaction():
            if not self._close("paid_at", order.checkout_id, order.paid_at):
                return False
            self._database.insert("orders", ORDER_COLUMNS, row_of(order))
        return True

    def cancel(self, checkout_id: str, at: datetime) -> bool:
        """False, and nothing changed, when it was paid or cancelled before."""
        return self._close("cancelled_at", checkout_id, at)

    def order(self, account: Account, checkout_id: str) -> Order | None:
        row = self._database.one(
            f"SELECT {ORDER_COLUMNS} FROM orders WHERE checkout_id = ? AND account = ?",  # noqa: S608
            (checkout_id, account),
        )
        return None if row is None else _order(row)

    def orders(
        self, account: Account, before: int | None, limit: int
    ) -> list[tuple[int, tuple[Order, Checkout]]]:
        """The newest orders older than `before` with their checkouts, each with its place."""
        rows = self._database.all(
            f"SELECT seq, {ORDER_COLUMNS} FROM orders WHERE account = ? AND seq < ?"  # noqa: S608
            " ORDER BY seq DESC LIMIT ?",
            (account, LAST if before is None else before, limit),
        )
        found = ((row[0], _order(row[1:])) for row in rows)
        return [(place, (order, self._of(order))) for place, order in found]

    def cancel_order(self, order: Order, at: datetime) -> Order:
        self._database.execute(
            "UPDATE orders SET cancelled_at = ? WHERE order_id = ? AND cancelled_at IS NULL",
            (at.timestamp(), order.order_id),
        )
        return replace(order, cancelled_at=order.cancelled_at or at)

    def _of(self, order: Order) -> Checkout:
        checkout = self.get(order.account, order.checkout_id)
        assert checkout is not None
        return checkout

    def _close(self, column: str, checkout_id: str, at: datetime) -> bool:
        statement = (
            f"UPDATE checkout SET {column} = ?"  # noqa: S608
            " WHERE checkout_id = ? AND paid_at IS NULL AND cancelled_at IS NULL"
        )
        return self._database.execute(statement, (at.timestamp(), checkout_id)) == 1

    def _one(self, condition: str, *values: str) -> Checkout | None:
        row = self._database.one(f"SELECT {COLUMNS} FROM checkout WHERE {condition}", values)  # noqa: S608
        if row is None:
            return None
        checkout_id, account, page_id, lines, created_at, paid_at, cancelled_at = row
        return Checkout(
            checkout_id,
            account,
            page_id,
            tuple(Line(**line) for line in json.loads(lines)),
            instant(created_at),
            optional_instant(paid_at),
            optional_instant(cancelled_at),
        )


def _order(row: Row) -> Order:
    order_id, checkout_id, account, *steps, cancelled_at = row
    paid, production, shipped, delivered = map(instant, steps)
    cancelled = optional_instant(cancelled_at)
    return Order(order_id, checkout_id, account, paid, production, shipped, delivered, cancelled)
