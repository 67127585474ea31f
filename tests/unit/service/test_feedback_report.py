"""A report of feedback: its bounds, what is sent of it, and what an answer to it means."""

from __future__ import annotations

import orjson
import pytest

from patternmill.service.feedback_report import (
    CUT,
    DeliveryState,
    delivery_of,
    feedback_report,
)
from patternmill.service.outcomes import Answer, Trouble
from tests.unit.service.answers import answered, lost, not_sent


def units(text: str) -> int:
    """As JavaScript counts them."""
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(("field", "most", "letter"), [("text", 4000, "x"), ("procedure", 200, "🦢")])
def test_texts_are_cut_at_their_bounds(field: str, most: int, letter: str) -> None:
    """One that fits is as it was; a longer one ends with a mark, and fits however it is counted."""
    exact = letter * (most // units(letter))
    assert feedback_report({field: exact}, ())[field] == exact
    for longer in (exact + letter, exact * 3):
        text = feedback_report({field: longer}, ())[field]
        assert text.endswith(CUT)
        assert most - 2 < units(text) <= most
        assert text.removesuffix(CUT) == letter * len(text.removesuffix(CUT))


def test_secrets_are_removed_before_texts_are_cut() -> None:
    """So that no part of one is left at the end."""
    secret = "sk_live_0123456789abcdefghij"
    report = feedback_report({"text": "x" * 3975 + " " + secret, "agent": secret}, {secret})
    assert "sk_live" not in orjson.dumps(report).decode()


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
        (not_sent(), DeliveryState.NOT_SENT),
        (lost(), DeliveryState.IN_DOUBT),
    ],
)
def test_meaning_of_each_answer(answer: Answer, state: DeliveryState) -> None:
    assert delivery_of(answer, "r-1")[0] is state
