"""Text from the service, made safe for errors, logs and files."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from patternmill.text import REMOVED, each_text

LONGEST = 500
#: The number of levels down to which a reason is looked for.
_DEPTH = 4
MASK = "[key removed]"
REASON_FIELDS = ("message", "error", "detail", "msg", "title", "errors", "reason", "description", "code")
SHORTEST_MASKED = 8

_CREDENTIAL = (
    r"authori[sz]ation|cookie|passw(?:or)?d|passphrase|pwd|secret|token|api[-_ ]?key|access[-_ ]?key"
    r"|private[-_ ]?key|credential|session[-_ ]?id|signature"
)
#: Names of fields with a credential, or with the address at which anyone can pay a checkout.
_CREDENTIAL_FIELD = re.compile(rf"{_CREDENTIAL}|checkout[-_ ]?url", re.IGNORECASE)
#: What is replaced in texts, in this order: user and query of an address, then everything that looks like a credential.
_SHAPES = tuple(
    (re.compile(shape, re.IGNORECASE), replacement)
    for shape, replacement in (
        (r"(://)[^\s/?#@]{1,300}@", r"\1"),
        (r"""(/[^\s"<>\\?#]{0,2000})[?#][^\s"<>\\]+""", rf"\1?{REMOVED}"),
        (r"\b(bearer|basic|digest)\s+[\w.~+/=:-]{4,}", rf"\1 {REMOVED}"),
        (
            rf"""((?:{_CREDENTIAL})[\w-]{{0,40}}\\?["']?\s*[:=]\s*)"""
            r"""(?:\\?"(?:[^"\\]|\\[^"])*\\?"|'[^']*'|[^\s,;&"'}]+)""",
            rf"\1{REMOVED}",
        ),
        (r"\b(?:sk|pk|rk|key|gh[pos]|xox[abp]|glpat)[-_][a-z0-9_-]{16,}|\bAKIA[A-Z0-9]{12,}", REMOVED),
        (r"(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*", REMOVED),
        (r"[\w.+%'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+", "[e-mail removed]"),
    )
)


def clean(text: str, *, secret: str = "", limit: int = LONGEST) -> str:
    """Return one printable line of at most `limit` characters, with the key masked wherever it is echoed."""
    text = without_key(text, secret)[: limit * 4]
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def scrubbed(value: Any, secrets: Collection[str] = ()) -> Any:
    """Return a JSON value without credentials, queries of addresses and e-mail addresses: fit to be sent on.

    `secrets` are masked wherever they are. None if it is nested too deeply for that.
    """
    longest_first = sorted(secrets, key=len, reverse=True)
    return each_text(value, lambda text: _scrub(text, longest_first), _CREDENTIAL_FIELD)


def reason_in(body: Any, depth: int = _DEPTH) -> str:
    """Return the reason in an error body of any plausible shape, with the field that it names; "" without one."""
    if isinstance(body, str):
        return body
    if isinstance(body, list) and depth:
        return "; ".join(filter(None, (reason_in(part, depth - 1) for part in body[:3])))
    if not isinstance(body, dict) or not depth:
        return ""
    reason = next((text for name in REASON_FIELDS if (text := reason_in(body.get(name), depth - 1))), "")
    place = body.get("loc")
    if reason and isinstance(place, list) and len(place) > 1:
        return f"{place[-1]}: {reason}"
    return reason or (_reasons_by_field(body, depth) if depth < _DEPTH else "")


def _reasons_by_field(body: dict[str, Any], depth: int) -> str:
    shown = [(name, part) for name, part in body.items() if not _CREDENTIAL_FIELD.search(name)][:3]
    reasons = ((name, reason_in(part, depth - 1)) for name, part in shown)
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)


def _scrub(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        text = without_key(text, secret)
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    # Half a surrogate pair cannot be sent.
    return text.encode("utf-8", "replace").decode()


def without_key(text: str, secret: str) -> str:
    """Return a text with the key masked, unless it is so short that it is as likely to be part of a word."""
    return text.replace(secret, MASK) if len(secret) >= SHORTEST_MASKED else text
