"""What the service answers about checkouts and orders: read tolerantly, and without addresses."""

from __future__ import annotations

import re
from typing import Any

from patternmill.addresses import is_web_address
from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer
from patternmill.service.redaction import REMOVED, clean
from patternmill.service.resend import PASSING, RATE_LIMITED, STOPPING, sentence

#: The key is wrong. Any other refusal may mean that the checkout is not paid: the interface does not show which does.
KEY_REFUSED = {status: STOPPING[status] for status in (401, 403, 407)}
#: Refusals that are about the moment, and not about the checkout.
_PASSING = PASSING | {RATE_LIMITED}
#: Bounded, so that a long text takes no long time.
_ADDRESS = re.compile(r"[a-z0-9+.-]{1,30}://\S+", re.IGNORECASE)
#: Statuses of what nobody can pay any more.
_CANCELLED = ("cancelled", "canceled")
_LONGEST = 200


#: An order as the service shows it, of whose fields those are read that are there: its ID, its status, and whether the
#: service says that it is paid, or that it is cancelled: nobody can pay it any more.
ShownOrder = tuple[str | None, str | None, bool, bool]


def checkout_address(answer: dict[str, Any]) -> str | None:
    """The `checkoutUrl` of a checkout, if a browser can open it."""
    url = answer.get("checkoutUrl")
    if not isinstance(url, str) or not url.isprintable() or " " in url or not is_web_address(url):
        return None
    return url


def read_order(answer: Answer, checkout_id: str) -> ShownOrder | None:
    """What the service shows of an order; None where it shows none. Raises ServiceStopped when that is not known."""
    status = answer.status
    if answer.usable:
        return _order(answer.body, checkout_id)
    if status in KEY_REFUSED:
        raise ServiceStopped(without_addresses(sentence(answer)), code=KEY_REFUSED[status])
    if status is not None and 400 <= status < 500 and status not in _PASSING:
        return None
    raise ServiceStopped(without_addresses(sentence(answer)), code="order_not_shown")


def _order(body: Any, checkout_id: str) -> ShownOrder | None:
    fields = body.get("order", body) if isinstance(body, dict) else None
    if not isinstance(fields, dict):
        return None
    other = _text(fields.get("checkoutId") or body.get("checkoutId"))
    if other not in (None, checkout_id):
        raise ServiceStopped(
            f"Asked for the order of checkout {checkout_id}, the service answered with that of another one.",
            code="other_order",
        )
    order_id, status = _identifier(fields.get("orderId")), _text(fields.get("status"))
    paid = _is_paid({**body, **fields})
    cancelled = status is not None and status.casefold() in _CANCELLED
    return (order_id, status, paid, cancelled) if order_id or status or paid else None


def _is_paid(fields: dict[str, Any]) -> bool:
    """Whether a field whose meaning is plain says so, and none says the opposite. An order alone is no payment."""
    said = [says for name, value in fields.items() if (says := _says_paid(name, value)) is not None]
    return bool(said) and all(said)


def _says_paid(name: str, value: Any) -> bool | None:
    match re.sub("[_-]", "", name).casefold():
        case "paid" | "ispaid":
            return value if isinstance(value, bool) else None
        case "paidat" | "paidon":
            return isinstance(value, str | int | float) and bool(value)
        case "paymentstatus":
            return isinstance(value, str) and value.casefold() == "paid"
        case "payment" if isinstance(value, dict) and "status" in value:
            return _says_paid("paymentStatus", value["status"])
        case "status" if isinstance(value, str) and value.casefold() in ("paid", "unpaid"):
            return value.casefold() == "paid"
    return None


def _identifier(value: Any) -> str | None:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def without_addresses(text: str) -> str:
    """The text without anything that a browser could open: the address of a checkout lets its reader pay."""
    return _ADDRESS.sub(REMOVED, text)


def _text(value: Any) -> str | None:
    """As one printable line, if it is text."""
    return clean(without_addresses(value), limit=_LONGEST) or None if isinstance(value, str) else None
