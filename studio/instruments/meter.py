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

from typing_extensions import TypedDict

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


class PurchaseRecord(TypedDict):
    """`what`: pattern, product or order; `amount` in minor units, 0 for a job that has failed."""

    account: str
    operation: str
    requestId: str
    objectId: str
    what: str
    amount: int


class DoublePurchase(TypedDict):
    """The same content was bought under another requestId while nothing was wrong with the first purchase."""

    account: str
    operation: str
    requestIds: tuple[str, str]
    objectIds: tuple[str, str]
    #: Of the second one, in minor units.
    amount: int


class MeterReading(TypedDict):
    """Amounts are minor units; `accounts` has the amount by account and by what was bought."""

    currency: str
    total: int
    accounts: dict[str, dict[str, int]]
    purchases: list[PurchaseRecord]
    suspectedDoublePurchases: list[DoublePurchase]


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


def read_meter(path: Path, now: datetime) -> MeterReading:
    """Read the meter of a studio's file, also of one that runs. `now` is by the studio's clock."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        purchases = [_purchase(row) for row in connection.execute(ACCEPTED)]
    return reading(purchases, now.timestamp())


def reading(purchases: list[Purchase], now: float) -> MeterReading:
    """`purchases` in the order in which they were made."""
    records = [_record(one, now) for one in purchases]
    accounts: dict[str, dict[str, int]] = {}
    for one in records:
        amounts = accounts.setdefault(one["account"], {"pattern": 0, "product": 0, "order": 0})
        amounts[one["what"]] += one["amount"]
    return MeterReading(
        currency=CURRENCY,
        total=sum(one["amount"] for one in records),
        accounts=accounts,
        purchases=records,
        suspectedDoublePurchases=double_purchases(purchases),
    )


def double_purchases(purchases: Iterable[Purchase]) -> list[DoublePurchase]:
    """Each purchase whose content was bought before by one that was not lost by then."""
    held: dict[tuple[str, str, str], Purchase] = {}
    found = []
    for one in purchases:
        key = (one.account, one.operation, one.content)
        first = held.get(key)
        if first is None or (first.lost_at is not None and first.lost_at <= one.at):
            held[key] = one
            continue
        found.append(_double(first, one))
    return found


def _double(first: Purchase, second: Purchase) -> DoublePurchase:
    return DoublePurchase(
        account=second.account,
        operation=second.operation,
        requestIds=(first.request_id, second.request_id),
        objectIds=(first.object_id, second.object_id),
        amount=second.amount,
    )


def _record(one: Purchase, now: float) -> PurchaseRecord:
    lost = one.lost_at is not None and one.lost_at <= now
    return PurchaseRecord(
        account=one.account,
        operation=one.operation,
        requestId=one.request_id,
        objectId=one.object_id,
        what=one.what,
        amount=0 if lost else one.amount,
    )


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
