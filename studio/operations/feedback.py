"""Feedback: reports about the interface itself, without query strings, API keys and credential fields."""

from __future__ import annotations

import re
from typing import Any

from studio.answers import FeedbackAnswer
from studio.operations.call import Call
from studio.records import Feedback
from studio.requests import CreateFeedback

REMOVED = "[removed]"
CREDENTIAL = (
    r"authori[sz]ation|cookie|passw(?:or)?d|passphrase|pwd|secret|token|api[-_ ]?key|access[-_ ]?key"
    r"|private[-_ ]?key|credential|session[-_ ]?id|signature"
)
FIELD = re.compile(CREDENTIAL, re.IGNORECASE)
#: The characters of an address: up to white space, a quotation mark or a bracket.
WORD = re.compile(r"""[^\s"'<>`\\]+""")
QUERY = re.compile(r"[?#]")
USER = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://)[^\s/?#@]{0,300}@", re.IGNORECASE)
SCHEME = re.compile(r"\b(bearer|basic|digest)\s+[\w.~+/=:-]{4,}", re.IGNORECASE)
#: Keys as services hand them out, and JSON web tokens.
KEY = re.compile(
    r"\b(?:studio|key|sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|AKIA)[-_]?[A-Za-z0-9_-]{16,}"
    r"|(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*"
)
#: `password=x`, `"api_key": "x"`, also inside a text that is JSON itself.
ASSIGNED = re.compile(
    rf"""((?:{CREDENTIAL})[\w-]{{0,40}}\\?["']?\s*[:=]\s*)"""
    r"""(?:\\?"(?:[^"\\]|\\[^"])*\\?"|'[^']*'|[^\s,;&"']+)""",
    re.IGNORECASE,
)


def create(call: Call, body: CreateFeedback) -> FeedbackAnswer:
    """Report an issue."""
    # Each delivery is kept: the requestId names a report, and makes nothing safe to repeat.
    call.store.add(Feedback(received_at=call.now, report=redact(body.as_sent())))
    return {"requestId": body.requestId}


def redact(value: Any) -> Any:
    """Return the JSON value without query strings, API keys and credential fields, at any depth."""
    if isinstance(value, dict):
        return {redact_text(key): redact(one) for key, one in value.items() if not FIELD.search(key)}
    if isinstance(value, list):
        return [redact(one) for one in value]
    return redact_text(value) if isinstance(value, str) else value


def redact_text(text: str) -> str:
    text = USER.sub(r"\1", text)
    text = WORD.sub(_without_query, text)
    text = SCHEME.sub(rf"\1 {REMOVED}", text)
    text = ASSIGNED.sub(rf"\1{REMOVED}", text)
    return KEY.sub(REMOVED, text)


def _without_query(word: re.Match[str]) -> str:
    """Return the word without the query and fragment of an address in it, which may hold a token."""
    parts = QUERY.split(word[0], maxsplit=1)
    return parts[0] if "/" in parts[0] else word[0]
