"""Text from the service, made safe for errors, logs and files."""

from __future__ import annotations

from typing import Any

LONGEST = 500
MASK = "[key removed]"
REASON_FIELDS = ("message", "error", "detail", "msg", "title", "errors", "reason", "description")
#: A shorter key is as likely to be part of ordinary text.
SHORTEST_MASKED = 8


def clean(text: str, *, secret: str = "", limit: int = LONGEST) -> str:
    """One printable line of at most `limit` characters, with the key masked wherever it is echoed."""
    text = _masked(text[: limit * 4 + len(secret)], secret)
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def mask_deeply(value: Any, secret: str) -> Any:
    """The same JSON value with the key masked in every string; None if it is nested too deeply for that."""
    try:
        return _mask_all(value, secret)
    except RecursionError:
        return None


def reason_in(body: Any, depth: int = 4) -> str:
    """The reason in an error answer of any plausible shape; "" when there is none."""
    if isinstance(body, str):
        return body
    if isinstance(body, list) and depth:
        return "; ".join(filter(None, (reason_in(part, depth - 1) for part in body[:3])))
    if isinstance(body, dict) and depth:
        return next((found for name in REASON_FIELDS if (found := reason_in(body.get(name), depth - 1))), "")
    return ""


def _mask_all(value: Any, secret: str) -> Any:
    if isinstance(value, str):
        return _masked(value, secret)
    if isinstance(value, list):
        return [_mask_all(part, secret) for part in value]
    if isinstance(value, dict):
        return {_masked(name, secret): _mask_all(part, secret) for name, part in value.items()}
    return value


def _masked(text: str, secret: str) -> str:
    return text.replace(secret, MASK) if len(secret) >= SHORTEST_MASKED else text
