"""Asks the service slowly, one request after the other, and remembers how each exchange went."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

import orjson

from patternmill.conformance.check_results import Skipped, SkipReason
from patternmill.service.feedback_report import FEEDBACK
from patternmill.service.outcomes import SUCCESS, Answer, ExchangeResult, Trouble
from patternmill.service.resend import RATE_LIMITED, REDIRECTS, read_retry_after
from patternmill.text import duration

Sleep = Callable[[float], Awaitable[None]]

#: Requests a second.
RATE = 5.0
TRIES = 4
TRIES_WITHOUT_ANSWER = 2
PAUSE = 1.0
#: A Retry-After beyond this is not waited for.
LONGEST_WAIT = timedelta(minutes=2)
#: After so many requests in a row without an answer nothing more is asked.
PATIENCE = 3


class RawClient(Protocol):
    """What is needed of a StudioClient."""

    async def request(
        self, method: str, operation: str, body: bytes, headers: Mapping[str, str | None]
    ) -> Answer: ...


class Key(StrEnum):
    OWN = "own"
    NONE = "none"
    WRONG = "wrong"


@dataclass(frozen=True)
class Exchange:
    operation: str
    answer: Answer


class Probe:
    """All requests of one suite, with the key of the settings unless a check asks otherwise."""

    def __init__(
        self,
        client: RawClient,
        *,
        rate: float = RATE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client = client
        self._gap = 1 / rate
        self._clock, self._sleep = clock, sleep
        self._next = clock()
        self._wrong_key = f"wrong-key-{secrets.token_hex(8)}"
        self._unanswered = 0
        #: Every exchange with its last answer, in order.
        self.exchanges: list[Exchange] = []
        self.requests = 0

    async def ask(
        self,
        operation: str,
        body: object,
        *,
        key: Key = Key.OWN,
        method: str = "POST",
        content_type: str = "application/json",
        resend: bool = True,
    ) -> Answer:
        """A readable answer of any status; `body` is a JSON value, or bytes as they are.

        Without `resend` only what the service limited (429) is sent again, not what it may have executed.

        Raises Skipped when none comes: lost, redirected, a success without JSON, or limited for too long.
        """
        if self._unanswered >= PATIENCE:
            detail = f"not asked: {PATIENCE} requests in a row had no answer"
            raise Skipped(SkipReason.NO_ANSWER, detail)
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {**self._authorization(key), "Content-Type": content_type}
        answer = await self._persist(method, operation, content, headers, resend)
        self.exchanges.append(Exchange(operation, answer))
        self._unanswered = 0 if answer.exchange is ExchangeResult.ANSWERED else self._unanswered + 1
        _require_readable(answer)
        return answer

    async def ask_at_once(self, operation: str, body: object, count: int) -> list[Answer]:
        """The same request `count` times side by side: the one thing that the rate does not hold for."""
        content = orjson.dumps(body)
        self.requests += count
        sent = [self._client.request("POST", operation, content, {}) for _ in range(count)]
        answers = await asyncio.gather(*sent)
        self.exchanges.extend(Exchange(operation, answer) for answer in answers)
        return answers

    async def pause(self, seconds: float) -> None:
        await self._sleep(seconds)

    def _authorization(self, key: Key) -> Mapping[str, str | None]:
        if key is Key.OWN:
            return {}
        return {"Authorization": None if key is Key.NONE else f"Bearer {self._wrong_key}"}

    async def _persist(
        self, method: str, operation: str, content: bytes, headers: Mapping[str, str | None], resend: bool
    ) -> Answer:
        number = 1
        while True:
            await self._turn()
            self.requests += 1
            answer = await self._client.request(method, operation, content, headers)
            wait = _wait_when_limited(answer, number)
            if wait is None and resend and operation != FEEDBACK:
                wait = _wait_after_failure(answer, number)
            if wait is None:
                return answer
            await self._sleep(wait)
            number += 1

    async def _turn(self) -> None:
        now = self._clock()
        begin = max(now, self._next)
        self._next = begin + self._gap
        if begin > now:
            await self._sleep(begin - now)


def _wait_when_limited(answer: Answer, number: int) -> float | None:
    """Seconds until the same request is worth another try; None: it is not."""
    requested = read_retry_after(answer) or timedelta(0)
    if answer.status != RATE_LIMITED or number >= TRIES or requested > LONGEST_WAIT:
        return None
    return max(requested.total_seconds(), PAUSE * number)


def _wait_after_failure(answer: Answer, number: int) -> float | None:
    """The same, for a request that may be executed twice."""
    failed = answer.exchange is not ExchangeResult.ANSWERED or (answer.status or 0) >= 500
    if not failed or number >= TRIES_WITHOUT_ANSWER:
        return None
    requested = read_retry_after(answer) or timedelta(0)
    return max(min(requested, LONGEST_WAIT).total_seconds(), PAUSE)


def _require_readable(answer: Answer) -> None:
    if answer.exchange is not ExchangeResult.ANSWERED or answer.status is None:
        raise Skipped(SkipReason.NO_ANSWER, f"no answer: {answer.detail}")
    if answer.status in REDIRECTS:
        raise Skipped(SkipReason.NO_ANSWER, f"answered with a redirect ({answer.status})")
    if answer.status == RATE_LIMITED:
        requested = read_retry_after(answer)
        asked = f", and asks to wait {duration(requested)}" if requested else ""
        raise Skipped(SkipReason.RATE_LIMITED, f"the service limits requests (429){asked}")
    if is_unreadable_success(answer):
        raise Skipped(SkipReason.NO_ANSWER, f"answered {answer.status} with {content_name(answer)}")


def is_unreadable_success(answer: Answer) -> bool:
    return answer.status in SUCCESS and answer.trouble is not Trouble.NONE


def content_name(answer: Answer) -> str:
    return "HTML instead of JSON" if answer.trouble is Trouble.HTML else "a body that is no JSON"
