"""What each checkout was opened for, and the order that became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import OrderRecord, PickedLine

#: The kind of the event that an order was seen for the first time, in another status, or paid.
ORDERED = "ordered"


class CheckoutTables(Tables):
    """The lines of checkouts, and their orders."""

    def add_checkout_lines(self, key: ItemKey, lines: Sequence[PickedLine]) -> None:
        """Lines that are known stay as they are: they are what the item is named after."""
        self.database.execute_many(
            "INSERT INTO checkout_lines (item_key, position, sku, product_key, product_id, quantity, note) "
            "VALUES (:item_key, :position, :sku, :product_key, :product_id, :quantity, :note) "
            "ON CONFLICT (item_key, position) DO NOTHING",
            (vars(line) | {"item_key": key, "position": position} for position, line in enumerate(lines)),
        )

    def checkout_lines(self, key: ItemKey) -> tuple[PickedLine, ...]:
        rows = self.database.rows(
            "SELECT sku, product_key, product_id, quantity, note FROM checkout_lines "
            "WHERE item_key = :key ORDER BY position",
            {"key": key},
        )
        return tuple(PickedLine(*row) for row in rows)

    def order_of(self, key: ItemKey) -> OrderRecord | None:
        """The order of a checkout, as it was last read."""
        found = self._row(
            "SELECT order_id, status, paid, answer, since, read_at FROM orders WHERE item_key = :key", key=key
        )
        if found is None:
            return None
        order_id, status, paid, answer, since, read_at = found
        return OrderRecord(order_id, status, bool(paid), answer, since, read_at)

    def record_order(self, run_id: RunId, key: ItemKey, order: OrderRecord) -> OrderRecord:
        """Write what the service shows of an order, and an event where that is new."""
        before, now = self.order_of(key), self.now()
        order = replace(order, paid=order.paid or (before is not None and before.paid))
        # Two commands may see it at once.
        self.database.execute(
            "INSERT INTO orders (item_key, order_id, status, paid, answer, since, read_at) "
            "VALUES (:key, :order_id, :status, :paid, :answer, :now, :now) ON CONFLICT (item_key) DO UPDATE SET "
            "order_id = excluded.order_id, status = excluded.status, paid = excluded.paid, "
            "answer = excluded.answer, read_at = excluded.read_at",
            {
                "key": key,
                "order_id": order.order_id,
                "status": order.status,
                "paid": int(order.paid),
                "answer": order.answer,
                "now": now,
            },
        )
        if before is None or (before.status, before.paid) != (order.status, order.paid):
            request = self._row(
                "SELECT request_id FROM attempts WHERE item_key = :key ORDER BY attempt DESC LIMIT 1", key=key
            )
            detail = " ".join(filter(None, (order.order_id, order.status)))
            self.record_event(run_id, ORDERED, request[0] if request else None, detail=detail, at=now)
        since = before.since if before else now
        return replace(order, since=since, read_at=now)
