"""The charge meter: what was bought, in money, and what looks as if it was bought twice.

A job costs its price when it is accepted, and nothing once it has failed; a paid checkout costs its total. Prices of
jobs are this studio's choice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from studio.offer import CURRENCY

#: In minor units of CURRENCY.
PATTERN_PRICE = 50
PRODUCT_PRICE = 10
ACCEPTED = """
SELECT record.account, record.operation, record.request_id, record.job_id, record.body,
    job.kind, job.started_at, job.ends_at, job.failure, checkout.lines, orders.paid_at, orders.cancelled_at
FROM record
LEFT JOIN job ON job.job_id = record.job_id
LEFT JOIN checkout ON checkout.checkout_id = record.job_id
LEFT JOIN orders ON orders.checkout_id = record.job_id
WHERE record.verdict = 'accepted' AND (job.job_id IS NOT NULL OR orders.order_id IS NOT NULL)
ORDER BY coalesce(job.started_at, orders.paid_at), record.seq
"""


@dataclass(frozen=True)
class Purchase:
    """Something that was paid for, from `at` on; `lost_at`: when it was known to have failed or was cancelled."""

    account: str
    operation: str
    request_id: str
    object_id: str
    what: str
    content: str
    amount: int
    at: float
    lost_at: float | None


def read_meter(path: Path, now: datetime) -> dict[str, Any]:
    """Read the meter of a studio's file, also of one that runs. `now`: by its clock; amounts are minor units."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        purchases = [_purchase(row) for row in connection.execute(ACCEPTED)]
    records = [_record(purchase, now.timestamp()) for purchase in purchases]
    return {
        "currency": CURRENCY,
        "total": sum(record["amount"] for record in records),
        "purchases": records,
        "suspectedDoublePurchases": double_purchases(purchases),
    }


def double_purchases(purchases: Iterable[Purchase]) -> list[dict[str, Any]]:
    """Each purchase whose content was bought before by one that was not lost by then."""
    held: dict[tuple[str, str, str], Purchase] = {}
    doubles = []
    for purchase in purchases:
        key = (purchase.account, purchase.operation, purchase.content)
        first = held.get(key)
        if first is None or (first.lost_at is not None and first.lost_at <= purchase.at):
            held[key] = purchase
        else:
            doubles.append(_double(first, purchase))
    return doubles


def _double(first: Purchase, second: Purchase) -> dict[str, Any]:
    return {
        "account": second.account,
        "operation": second.operation,
        "requestIds": (first.request_id, second.request_id),
        "objectIds": (first.object_id, second.object_id),
        "amount": second.amount,
    }


def _record(purchase: Purchase, now: float) -> dict[str, Any]:
    """A purchase as it is shown; what has failed by now costs nothing."""
    lost = purchase.lost_at is not None and purchase.lost_at <= now
    return {
        "account": purchase.account,
        "operation": purchase.operation,
        "requestId": purchase.request_id,
        "objectId": purchase.object_id,
        "what": purchase.what,
        "amount": 0 if lost else purchase.amount,
    }


def _purchase(row: tuple[object, ...]) -> Purchase:
    account, operation, request_id, object_id, body, kind, started_at, *rest = row
    ends_at, failure, lines, paid_at, cancelled_at = rest
    lost_at = cancelled_at if kind is None else ends_at if failure is not None else None
    prices = {"pattern": PATTERN_PRICE, "product": PRODUCT_PRICE}
    return Purchase(
        account=str(account),
        operation=str(operation),
        request_id=str(request_id),
        object_id=str(object_id),
        what="order" if kind is None else str(kind),
        content=_content(str(body)),
        amount=_total(str(lines)) if kind is None else prices[str(kind)],
        at=float(str(paid_at if kind is None else started_at)),
        lost_at=None if lost_at is None else float(str(lost_at)),
    )


def _content(body: str) -> str:
    """The same for the same body under whatever requestId."""
    fields = json.loads(body)
    del fields["requestId"]
    return json.dumps(fields, sort_keys=True)


def _total(lines: str) -> int:
    return sum(int(line["unit_price"]) * int(line["quantity"]) for line in json.loads(lines))
