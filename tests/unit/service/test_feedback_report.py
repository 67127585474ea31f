"""A report of feedback: its bounds, what is sent of it, and what an answer to it means."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from patternmill.service.feedback_report import (
    CUT,
    DeliveryState,
    delivery_of,
    feedback_report,
)
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble

LEAST = {"requestId": "f", "text": "t"}


def made(**fields: Any) -> dict[str, Any]:
    return feedback_report({**LEAST, **fields}, ())


def with_text(field: str, text: str) -> str:
    found = made(**{field: text})[field]
    assert isinstance(found, str)
    return found


def units(text: str) -> int:
    """As JavaScript counts them."""
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(("field", "most", "letter"), [("text", 4000, "x"), ("procedure", 200, "🦢")])
def test_texts_are_cut_at_their_bounds(field: str, most: int, letter: str) -> None:
    """One that fits is as it was; a longer one ends with a mark, and fits however it is counted."""
    exact = letter * (most // units(letter))
    assert with_text(field, exact) == exact
    for longer in (exact + letter, exact * 3):
        found = with_text(field, longer)
        assert found.endswith(CUT)
        assert most - 2 < units(found) <= most
        assert found.removesuffix(CUT) == letter * len(found.removesuffix(CUT))


def test_only_what_is_known_is_sent() -> None:
    """A null that was received is known."""
    assert made() == LEAST
    more = {
        "procedure": "patterns/create",
        "request": {"body": {"prompt": None, "tags": []}, "userAgent": ""},
        "response": {"status": 0, "body": [None, {"a": None}], "durationMs": 0},
        "agent": "a",
        "reportedAt": "2026-01-31T12:30:00Z",
    }
    assert made(**more) == LEAST | more


def test_secrets_are_removed_before_texts_are_cut() -> None:
    """So that no part of one is left at the end."""
    secret = "sk_live_0123456789abcdefghij"
    report = feedback_report({**LEAST, "text": "x" * 3975 + " " + secret, "agent": secret}, {secret})
    assert "sk_live" not in orjson.dumps(report).decode()


def answered(status: int, body: Any = None, **more: Any) -> Answer:
    return Answer(ExchangeResult.ANSWERED, status=status, body=body, **more)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (answered(200, {"requestId": "r-1"}), DeliveryState.SENT),
        (answered(200, {"requestId": "r-2"}), DeliveryState.IN_DOUBT),
        (answered(200, None, trouble=Trouble.HTML), DeliveryState.IN_DOUBT),
        (answered(303), DeliveryState.IN_DOUBT),
        (answered(408), DeliveryState.IN_DOUBT),
        (answered(500), DeliveryState.IN_DOUBT),
        (answered(503), DeliveryState.NOT_SENT),
        (answered(404), DeliveryState.NOT_SENT),
        (answered(429), DeliveryState.NOT_SENT),
        (Answer(ExchangeResult.NOT_SENT, Trouble.CONNECT), DeliveryState.NOT_SENT),
        (Answer(ExchangeResult.LOST, Trouble.TIMEOUT), DeliveryState.IN_DOUBT),
    ],
)
def test_meaning_of_each_answer(answer: Answer, state: DeliveryState) -> None:
    found, message = delivery_of(answer, "r-1")
    assert found is state
    assert message.endswith((".", ")."))
