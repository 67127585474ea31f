"""What each checkout was opened for, and the order that became of it: both are JSON of its item."""

from __future__ import annotations

import json
from dataclasses import replace

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import OrderRecord, PickedLine

#: The kind of the event that an order was seen for the first time, in another status, or paid.
ORDERED = "ordered"


class CheckoutTables(Tables):
    """The lines of checkouts, and their orders."""

    def checkout(self, key: ItemKey) -> tuple[tuple[PickedLine, ...], OrderRecord | None]:
        """Its lines, and its order as it was last read."""
        found = self._row("SELECT picked, ordered FROM items WHERE key = :key", key=key)
        picked, ordered = found or (None, None)
        lines = tuple(PickedLine(**line) for line in json.loads(picked or "[]"))
        return lines, OrderRecord(**json.loads(ordered)) if ordered else None

    def record_order(self, run_id: RunId, key: ItemKey, order: OrderRecord) -> OrderRecord:
        """Write what the service shows of an order, and an event where that is new."""
        # Two commands may see it at once.
        self.database.lock(f"order {key}")
        _, before = self.checkout(key)
        now = self.now()
        paid = order.paid or (before is not None and before.paid)
        order = replace(order, paid=paid, since=before.since if before else now, read_at=now)
        self._update("items", {"key": key}, ordered=json.dumps(vars(order), ensure_ascii=False))
        if before is None or (before.status, before.paid) != (order.status, order.paid):
            request = self._row(
                "SELECT request_id FROM attempts WHERE item_key = :key ORDER BY attempt DESC LIMIT 1", key=key
            )
            detail = " ".join(filter(None, (order.order_id, order.status)))
            self.record_event(run_id, ORDERED, request[0] if request else None, detail=detail, at=now)
        return order
