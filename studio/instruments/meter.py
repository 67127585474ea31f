"""The charge meter: what was bought, in money, and what looks as if it was bought twice.

A job costs its price when it is accepted, and nothing once it has failed; a paid checkout costs its total. Prices of
jobs are this studio's choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from studio.offer import CURRENCY
from studio.store.database import Database, Row

#: Prices in minor units of CURRENCY.
PATTERN_PRICE = 50
PRODUCT_PRICE = 10
#: Instants are seconds; `lost_at` is when a purchase was known to have failed, or was cancelled.
PURCHASES = """
SELECT record.account, record.operation, record.request_id, record.job_id,
    coalesce(job.kind, 'order'),
    CASE job.kind WHEN 'pattern' THEN ? WHEN 'product' THEN ?
        ELSE (SELECT sum(line.value ->> '$.total.amount') FROM json_each(checkout.lines) AS line) END,
    record.body,
    coalesce(job.started_at, orders.paid_at) AS bought_at,
    CASE WHEN job.job_id IS NULL THEN orders.cancelled_at WHEN job.failure IS NOT NULL THEN job.ends_at END
FROM record
LEFT JOIN job ON job.job_id = record.job_id
LEFT JOIN checkout ON checkout.checkout_id = record.job_id
LEFT JOIN orders ON orders.checkout_id = record.job_id
WHERE record.verdict = 'accepted' AND (job.job_id IS NOT NULL OR orders.order_id IS NOT NULL)
ORDER BY bought_at, record.seq
"""


#: The titles of the first columns.
SHOWN = ("account", "operation", "requestId", "objectId", "what", "amount")


@dataclass(frozen=True)
class Purchase:
    """Something that was paid for; `content` is the same for the same body under any requestId."""

    shown: dict[str, Any]
    content: str
    bought_at: float
    lost_at: float | None

    def was_lost(self, now: float) -> bool:
        return self.lost_at is not None and self.lost_at <= now


def read_meter(path: Path, now: datetime) -> dict[str, Any]:
    """Read the meter of a studio's file, also of one that runs. `now`: by its clock; amounts are minor units."""
    with closing(Database(path, read_only=True)) as database:
        purchases = [_purchase(row) for row in database.all(PURCHASES, (PATTERN_PRICE, PRODUCT_PRICE))]
    shown = [one.shown | {"amount": 0} if one.was_lost(now.timestamp()) else one.shown for one in purchases]
    return {
        "currency": CURRENCY,
        "total": sum(one["amount"] for one in shown),
        "purchases": shown,
        "suspectedDoublePurchases": double_purchases(purchases),
    }


def double_purchases(purchases: Iterable[Purchase]) -> list[dict[str, Any]]:
    """Return each purchase whose content was bought before by one that was not lost by then."""
    held: dict[str, Purchase] = {}
    doubles = []
    for purchase in purchases:
        first = held.get(purchase.content)
        if first is None or first.was_lost(purchase.bought_at):
            held[purchase.content] = purchase
        else:
            doubles.append(_double(first.shown, purchase.shown))
    return doubles


def _double(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    both = {f"{name}s": (first[name], second[name]) for name in ("requestId", "objectId")}
    return {name: second[name] for name in ("account", "operation", "amount")} | both


def _purchase(row: Row) -> Purchase:
    *columns, body, bought_at, lost_at = row
    shown = dict(zip(SHOWN, columns, strict=True))
    fields = {name: value for name, value in json.loads(body).items() if name != "requestId"}
    content = json.dumps([shown["account"], shown["operation"], fields], sort_keys=True)
    return Purchase(shown, content, bought_at, lost_at)
