"""Reads checkouts and orders from answers, tolerantly, and without addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from patternmill.addresses import is_web_address
from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer
from patternmill.service.redaction import clean
from patternmill.service.resend import RATE_LIMITED, STOPPING, sentence
from patternmill.text import REMOVED

#: Statuses that refuse the key, with their codes. Any other refusal may mean that the checkout is not paid.
KEY_REFUSED = {401: STOPPING[401], 403: STOPPING[403], 407: STOPPING[407]}
#: An address; bounded, so that a long text does not take long.
_ADDRESS = re.compile(r"[a-z0-9+.-]{1,30}://\S+", re.IGNORECASE)
_CANCELLED = ("cancelled", "canceled")
_LONGEST = 200


@dataclass(frozen=True)
class ShownOrder:
    """An order as the service shows it; None for a field that it does not show."""

    order_id: str | None
    status: str | None
    #: Whether some field says so plainly, and none says the opposite. An order alone is no payment.
    paid: bool = False
    #: Whether its status says so: nobody can pay it any longer.
    cancelled: bool = False


def checkout_address(answer: dict[str, Any]) -> str | None:
    """Return the `checkoutUrl` of a checkout, if a browser can open it."""
    url = answer.get("checkoutUrl")
    is_address = isinstance(url, str) and url.isprintable() and " " not in url and is_web_address(url)
    return str(url) if is_address else None


def read_order(answer: Answer, checkout_id: str) -> ShownOrder | None:
    """Return the order that an answer shows; None where it shows none.

    Raises ServiceStopped when the answer does not tell.
    """
    if answer.usable:
        return _order(answer.body, checkout_id)
    if answer.refused and answer.status not in {RATE_LIMITED, *KEY_REFUSED}:
        return None
    code = KEY_REFUSED.get(answer.status or 0, "order_not_shown")
    raise ServiceStopped(without_addresses(sentence(answer)), code=code)


def _order(body: Any, checkout_id: str) -> ShownOrder | None:
    fields = body.get("order", body) if isinstance(body, dict) else None
    if not isinstance(fields, dict):
        return None
    if _text(fields.get("checkoutId") or body.get("checkoutId")) not in (None, checkout_id):
        raise ServiceStopped(
            f"Asked for the order of checkout {checkout_id}, the service answered with that of another one.",
            code="other_order",
        )
    number, status = fields.get("orderId"), _text(fields.get("status"))
    order_id = str(number) if type(number) is int else _text(number)
    claims = [_claim(name, value) for name, value in {**body, **fields}.items()]
    is_paid = True in claims and False not in claims
    is_cancelled = status is not None and status.casefold() in _CANCELLED
    return ShownOrder(order_id, status, is_paid, is_cancelled) if order_id or status or is_paid else None


def _claim(name: str, value: Any) -> bool | None:
    """Return whether a field says that the order is paid; None where it says nothing about it."""
    match re.sub("[_-]", "", name).casefold():
        case "paid" | "ispaid":
            return value if isinstance(value, bool) else None
        case "paidat" | "paidon":
            return isinstance(value, str | int | float) and bool(value)
        case "paymentstatus":
            return isinstance(value, str) and value.casefold() == "paid"
        case "payment" if isinstance(value, dict) and "status" in value:
            return _claim("paymentStatus", value["status"])
        case "status" if isinstance(value, str) and value.casefold() in ("paid", "unpaid"):
            return value.casefold() == "paid"
    return None


def without_addresses(text: str) -> str:
    """Remove everything that a browser could open: a checkout's address lets whoever reads it pay."""
    return _ADDRESS.sub(REMOVED, text)


def _text(value: Any) -> str | None:
    """Return one printable line, if it is text."""
    return clean(without_addresses(value), limit=_LONGEST) or None if isinstance(value, str) else None
