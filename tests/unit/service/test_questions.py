"""Whether an operation is there, by what services answer to an empty body."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from patternmill.service.pacing import Pace
from patternmill.service.questions import Questions
from patternmill.service.resend import ResendPolicy

RECOLOR = "refine/recolor"


class Answers:
    """By operation a status and a body; `None` is for any other."""

    def __init__(self, answers: dict[str | None, tuple[int, Any]]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Any]] = []

    async def __call__(self, operation: str, body: bytes) -> Answer:
        self.asked.append((operation, orjson.loads(body)))
        status, answer = self.answers.get(operation, self.answers[None])
        return Answer(ExchangeResult.ANSWERED, status=status, body=answer)

    def missing(self) -> dict[str, str]:
        return asyncio.run(Questions(self, Pace(1e6), ResendPolicy()).missing([RECOLOR]))


@pytest.mark.parametrize("status", [404, 501])
def test_absent_operation_is_named(status: int) -> None:
    service = Answers({None: (status, {"error": "no"}), "jobs/get": (422, {"error": "jobId"})})
    assert RECOLOR in service.missing()[RECOLOR]
    assert str(status) in service.missing()[RECOLOR]


@pytest.mark.parametrize("status", [422, 200])
def test_any_other_answer_means_that_it_is_there(status: int) -> None:
    service = Answers({None: (status, {"error": "invalid"})})
    assert not service.missing()
    assert service.asked == [(RECOLOR, {})]


def test_not_found_alike_is_taken_for_missing() -> None:
    """Ignorance buys nothing."""
    service = Answers({None: (404, {"error": "not found", "trace": "4f1c2d3e-1"})})
    assert RECOLOR in service.missing()


def test_forbidden_operation_is_missing_for_this_key() -> None:
    assert "403" in Answers({None: (403, {})}).missing()[RECOLOR]


@pytest.mark.parametrize("status", [401, 302])
def test_refused_key_or_address_stops(status: int) -> None:
    with pytest.raises(ServiceStopped):
        Answers({None: (status, {})}).missing()


def test_no_clear_answer_stops() -> None:
    async def unreachable(operation: str, body: bytes) -> Answer:
        return Answer(ExchangeResult.NOT_SENT, Trouble.NAME_NOT_FOUND)

    with pytest.raises(ServiceStopped):
        asyncio.run(Questions(unreachable, Pace(1e6), ResendPolicy()).missing([RECOLOR]))
