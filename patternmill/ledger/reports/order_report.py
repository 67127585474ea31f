"""Checkouts and their orders, for people and for the next order."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, OrderRecord, PickedLine
from patternmill.states import AttemptState


@dataclass(frozen=True)
class CheckoutRecord:
    """A checkout with its last attempt, its lines, and what the service shows of its order."""

    key: ItemKey
    environment: str
    #: The name of its scope: see `planning.items.catalog_of`.
    scope: str
    #: The name of the order that it is a part of.
    order_name: str
    lines: tuple[PickedLine, ...]
    attempt: Attempt | None = None
    order: OrderRecord | None = None

    @property
    def checkout_id(self) -> str | None:
        """None as long as it is not known to be open."""
        if self.attempt is None or self.attempt.state is not AttemptState.SUCCEEDED:
            return None
        return self.attempt.result_id

    @property
    def is_paid(self) -> bool:
        return self.order is not None and self.order.paid

    @property
    def is_cancelled(self) -> bool:
        """Closed: the service said so, and nobody paid it before."""
        return self.order is not None and self.order.cancelled and not self.order.paid

    @property
    def is_unpaid(self) -> bool:
        """Open, and not known to be paid."""
        return self.checkout_id is not None and not self.is_paid and not self.is_cancelled

    @property
    def is_ordered(self) -> bool:
        """Whether the service has an order of it, paid or not."""
        if self.order is None or self.is_cancelled:
            return False
        return self.order.paid or self.order.order_id is not None


def checkouts(
    ledger: Ledger, *, environment: str | None = None, scope: str | None = None
) -> list[CheckoutRecord]:
    """The oldest first."""
    wanted = {"environment": environment, "catalog": scope}
    named = {name: value for name, value in wanted.items() if value is not None}
    return _records(ledger, "".join(f"AND i.{name} = :{name} " for name in named), named)


def checkout_called(ledger: Ledger, checkout_id: str) -> CheckoutRecord | None:
    where = "AND i.key IN (SELECT item_key FROM attempts WHERE result_id = :checkout_id)"
    return next(iter(_records(ledger, where, {"checkout_id": checkout_id})), None)


def checkouts_of_products(
    ledger: Ledger, products: Collection[ItemKey]
) -> Mapping[ItemKey, list[CheckoutRecord]]:
    """By product: the checkouts that have it, the oldest first."""
    found: dict[ItemKey, list[CheckoutRecord]] = {}
    for record in checkouts(ledger):
        for product in {line.product_key for line in record.lines} & set(products):
            found.setdefault(product, []).append(record)
    return found


def checkouts_of_run(ledger: Ledger, run_id: RunId) -> list[CheckoutRecord]:
    """The checkouts that have a product of a run's rows, the oldest first."""
    rows = ledger.database.rows("SELECT product_key FROM run_rows WHERE run_id = :run_id", {"run_id": run_id})
    products = {key for (key,) in rows}
    return [
        record for record in checkouts(ledger) if any(line.product_key in products for line in record.lines)
    ]


def _records(ledger: Ledger, where: str, params: Mapping[str, str]) -> list[CheckoutRecord]:
    records = []
    for key, environment, scope, content in ledger.database.rows(
        "SELECT i.key, i.environment, i.catalog, i.content FROM items i "  # noqa: S608
        f"WHERE i.stage = 'checkout' {where} ORDER BY i.created_at, i.key",
        params,
    ):
        lines, order = ledger.purchases.checkout(key)
        last = next(reversed(ledger.purchases.attempts_of(key)), None)
        records.append(
            CheckoutRecord(key, environment, scope, json.loads(content)["order"], lines, last, order)
        )
    return records
