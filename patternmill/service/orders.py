"""What the service answers about checkouts and orders: read tolerantly, and kept without addresses and the buyer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from patternmill.addresses import is_web_address
from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer
from patternmill.service.redaction import clean
from patternmill.service.resend import PASSING, RATE_LIMITED, STOPPING, sentence

#: The key is wrong. Any other refusal may mean that the checkout is not paid: the interface does not show which does.
KEY_REFUSED = {status: STOPPING[status] for status in (401, 403, 407)}
#: Refusals that are about the moment, and not about the checkout.
_PASSING = PASSING | {RATE_LIMITED}
#: Words of a service that answers for an unpaid checkout as for an order.
_UNPAID = re.compile(
    r"(un|not[ _-]?)paid|(awaiting|pending|requires?)[ _-]?payment|payment[ _-]?(pending|required)"
)
#: What may be the status of a checkout without an order, or of a question that found none.
_NO_ORDER = re.compile(
    r"open|pending|draft|created|new|expired|cancel|fail|error|invalid|not[ _-]?found|none|missing"
)
#: Fields that an order has, and an answer about there being none has not.
_ORDERS_OWN = re.compile(r"order|^id$|^number$|reference|confirm|receipt|invoice|paid|placed", re.IGNORECASE)
#: Bounded, so that a long text takes no long time.
_ADDRESS = re.compile(r"[a-z0-9+.-]{1,30}://\S+", re.IGNORECASE)
REMOVED = "[removed]"
#: Fields of an order that are, or may be, about the buyer, or let somebody in.
_PRIVATE = re.compile(
    r"url$|uri$|link|token|secret|password|address|e-?mail|phone|name$|buyer|customer|recipient|shipping|billing|card|"
    r"payer|contact",
    re.IGNORECASE,
)
_MOST_KEPT = 100_000
_LONGEST = 200
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class ShownOrder:
    """An order as the service shows it. Its fields are not specified: those are read that are there."""

    order_id: str | None
    status: str | None
    #: JSON of the whole answer, scrubbed.
    answer: str


def checkout_address(answer: dict[str, Any]) -> str | None:
    """The `checkoutUrl` of a checkout, if a browser can open it."""
    url = answer.get("checkoutUrl")
    if not isinstance(url, str) or not url.isprintable() or " " in url or not is_web_address(url):
        return None
    return url


def read_order(answer: Answer, checkout_id: str) -> ShownOrder | None:
    """The order; None where there is none as yet. Raises ServiceStopped when the answer says neither."""
    status = answer.status
    if answer.usable:
        return _order(answer.body, checkout_id)
    if status in KEY_REFUSED:
        raise ServiceStopped(without_addresses(sentence(answer)), code=KEY_REFUSED[status])
    if status is not None and 400 <= status < 500 and status not in _PASSING:
        return None
    raise ServiceStopped(without_addresses(sentence(answer)), code="order_not_shown")


def _order(body: Any, checkout_id: str) -> ShownOrder | None:
    if not isinstance(body, dict) or not body:
        return None
    fields = body.get("order", body)
    if not isinstance(fields, dict) or not fields:
        return None
    other = _text(fields.get("checkoutId") or body.get("checkoutId"))
    if other not in (None, checkout_id):
        raise ServiceStopped(
            f"Asked for the order of checkout {checkout_id}, the service answered with that of another one.",
            code="other_order",
        )
    status = _text(fields.get("status"))
    if any(map(_denies_order, (body, fields))) or not _has_order(body, fields, checkout_id):
        return None
    return ShownOrder(_text(fields.get("orderId")), status, _kept(body))


def _denies_order(fields: dict[str, Any]) -> bool:
    status = (_text(fields.get("status")) or "").casefold()
    refused = any(fields.get(name) is False for name in ("ok", "success", "paid"))
    return bool(fields.get("error") or fields.get("errors")) or refused or _UNPAID.search(status) is not None


def _has_order(body: dict[str, Any], fields: dict[str, Any], checkout_id: str) -> bool:
    """Whether something in the answer can only be of an order: that a checkout is paid is not believed for less."""
    own = (value for one in (body, fields) for name, value in one.items() if _ORDERS_OWN.search(name))
    if any(value and value != checkout_id and isinstance(value, str | int | float | dict) for value in own):
        return True
    status = (_text(fields.get("status")) or "").casefold()
    if _NO_ORDER.search(status):
        return False
    has_lines = any(fields.get(name) and isinstance(fields[name], list) for name in ("lines", "items"))
    return bool(status) or (has_lines and "checkoutUrl" not in fields)


def without_addresses(text: str) -> str:
    """The text without anything that a browser could open: the address of a checkout lets its reader pay."""
    return _ADDRESS.sub(REMOVED, text)


def _text(value: Any) -> str | None:
    """As one printable line, if it is text."""
    return clean(without_addresses(value), limit=_LONGEST) or None if isinstance(value, str) else None


def _kept(body: dict[str, Any]) -> str:
    text = orjson.dumps(_scrubbed(body), option=orjson.OPT_SORT_KEYS)
    return text.decode() if len(text) <= _MOST_KEPT else "{}"


def _scrubbed(value: Any, depth: int = _DEEPEST) -> Any:
    if isinstance(value, str):
        return without_addresses(value)
    if not depth:
        return REMOVED
    if isinstance(value, list):
        return [_scrubbed(part, depth - 1) for part in value]
    if isinstance(value, dict):
        return {
            name: REMOVED if part and _PRIVATE.search(name) else _scrubbed(part, depth - 1)
            for name, part in value.items()
        }
    return value
