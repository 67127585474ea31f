"""Checkouts and their orders, for people and for the next order."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, OrderRecord, PickedLine
from patternmill.states import AttemptState


class CheckoutStatus(StrEnum):
    """The state of a checkout, as far as it is known."""

    #: It was never requested, was refused, or was given up; an order requests it.
    NEW = "new"
    #: Its request was sent and not answered: the same request is sent again.
    IN_DOUBT = "in doubt"
    #: A person has to decide.
    HELD = "held"
    #: It can be paid.
    OPEN = "open"
    PAID = "paid"
    #: The service has closed it, and nobody paid it before.
    CANCELLED = "cancelled"


_STATUSES = {
    AttemptState.SUCCEEDED: CheckoutStatus.OPEN,
    AttemptState.INTENDED: CheckoutStatus.IN_DOUBT,
    AttemptState.ACCEPTED: CheckoutStatus.HELD,
    AttemptState.HELD: CheckoutStatus.HELD,
}


_CHECKOUTS = """
SELECT key, environment, catalog, content FROM items
WHERE stage = 'checkout' AND coalesce(:environment, environment) = environment AND coalesce(:scope, catalog) = catalog
ORDER BY created_at, key
"""


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
    def status(self) -> CheckoutStatus:
        """Return the status that follows from its order and its last attempt."""
        if self.order is not None and self.order.paid:
            return CheckoutStatus.PAID
        if self.order is not None and self.order.cancelled:
            return CheckoutStatus.CANCELLED
        return _STATUSES.get(self.attempt.state, CheckoutStatus.NEW) if self.attempt else CheckoutStatus.NEW

    @property
    def checkout_id(self) -> str | None:
        """Return its ID; None until it is known to be open."""
        is_open = self.attempt is not None and self.attempt.state is AttemptState.SUCCEEDED
        return self.attempt.result_id if self.attempt is not None and is_open else None

    @property
    def is_ordered(self) -> bool:
        """Return whether the service has an order of it, paid or not."""
        has_order = self.order is not None and self.order.order_id is not None
        return self.status is CheckoutStatus.PAID or (
            has_order and self.status is not CheckoutStatus.CANCELLED
        )


def checkouts(
    ledger: Ledger, *, environment: str | None = None, scope: str | None = None
) -> list[CheckoutRecord]:
    """Return the checkouts of an environment and a scope, or of any if None, the oldest first."""
    records = []
    rows = ledger.database.rows(_CHECKOUTS, environment=environment, scope=scope)
    for key, of_environment, of_scope, content in rows:
        lines, order = ledger.purchases.checkout(key)
        # Its body is read too, as it is sent again to learn the checkout's address.
        last = next(reversed(ledger.purchases.attempts_of(key)), None)
        name = json.loads(content)["order"]
        records.append(CheckoutRecord(key, of_environment, of_scope, name, lines, last, order))
    return records


def checkout_called(ledger: Ledger, checkout_id: str) -> CheckoutRecord | None:
    """Return the checkout with this ID; None where the ledger has none."""
    records = checkouts(ledger)
    return next((each for each in records if each.attempt and each.attempt.result_id == checkout_id), None)


def checkouts_with(ledger: Ledger, products: Collection[ItemKey]) -> list[CheckoutRecord]:
    """Return the checkouts that have one of these products, the oldest first."""
    wanted = set(products)
    records = checkouts(ledger)
    return [record for record in records if not wanted.isdisjoint(line.product_key for line in record.lines)]


def checkouts_of_run(ledger: Ledger, run_id: RunId) -> list[CheckoutRecord]:
    """Return the checkouts that have a product of a run's rows, the oldest first."""
    rows = ledger.database.rows("SELECT product_key FROM run_rows WHERE run_id = :run_id", run_id=run_id)
    return checkouts_with(ledger, [key for (key,) in rows])
