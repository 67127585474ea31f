"""How the suite asks: slowly, as the service requests, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from patternmill.conformance.check_results import Skipped, SkipReason
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from tests.unit.conformance.whole_service import Asked, VirtualTime, WholeService, answered, probe_of

LOST = Answer(ExchangeResult.LOST, Trouble.RESET, "the connection closed before the answer")


def service_with(*answers: Answer) -> WholeService:
    """It gives these answers, the last one again and again."""
    left = list(answers)

    def next_one(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    return WholeService(next_one)


def ask(
    service: WholeService, time: VirtualTime, *, operation: str = "jobs/get", resend: bool = True
) -> Answer:
    return asyncio.run(probe_of(service, time).ask(operation, {}, resend=resend))


def test_requests_keep_the_rate() -> None:
    time = VirtualTime()
    probe = probe_of(service_with(answered(200, {})), time)

    async def eleven() -> None:
        for _ in range(11):
            await probe.ask("categories/list", {})

    asyncio.run(eleven())
    assert time.now == pytest.approx(2.0)


def test_retry_after_is_obeyed() -> None:
    time = VirtualTime()
    service = service_with(answered(429, {}, retry_after="30"), answered(200, {}))
    assert ask(service, time, resend=False).status == 200
    assert time.slept == [30.0]


@pytest.mark.parametrize(("retry_after", "requests"), [("3600", 1), ("1", 4), (None, 4)])
def test_limit_that_does_not_pass_skips_the_check(retry_after: str | None, requests: int) -> None:
    service = service_with(answered(429, {}, retry_after=retry_after))
    with pytest.raises(Skipped) as skipped:
        ask(service, VirtualTime())
    assert skipped.value.reason is SkipReason.RATE_LIMITED
    assert len(service.asked) == requests


def test_lost_answer_is_asked_for_once_more() -> None:
    assert ask(service_with(LOST, answered(200, {})), VirtualTime()).status == 200


@pytest.mark.parametrize("failure", [LOST, answered(500, {})])
def test_request_that_may_buy_is_not_sent_again(failure: Answer) -> None:
    service = service_with(failure, answered(200, {}))
    try:
        ask(service, VirtualTime(), operation="patterns/create", resend=False)
    except Skipped as skipped:
        assert skipped.reason is SkipReason.NO_ANSWER
    assert len(service.asked) == 1


def test_report_is_not_sent_again() -> None:
    """It would reach the operators twice."""
    service = service_with(LOST)
    with pytest.raises(Skipped):
        ask(service, VirtualTime(), operation="feedback/create")
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (answered(307, None), "redirect (307)"),
        (Answer(ExchangeResult.ANSWERED, Trouble.HTML, "", 200), "HTML instead of JSON"),
        (Answer(ExchangeResult.ANSWERED, Trouble.NOT_JSON, "", 204), "no JSON"),
        (LOST, "the connection closed before the answer"),
    ],
)
def test_unreadable_answer_skips_the_check(answer: Answer, text: str) -> None:
    with pytest.raises(Skipped, match=text.replace("(", r"\(").replace(")", r"\)")):
        ask(service_with(answer), VirtualTime())
