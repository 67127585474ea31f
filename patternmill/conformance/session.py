"""One pass of the checks over a service: how it is asked, and what may be bought for that."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson

from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.service.outcomes import SUCCESS, Answer, ExchangeResult, Trouble
from patternmill.service.resend import RATE_LIMITED, REDIRECTS, read_retry_after
from patternmill.text import duration

Headers = Mapping[str, str]
Request = Callable[[str, bytes, Headers | None], Awaitable[Answer]]

#: An identifier that no service has.
UNKNOWN_ID = "conformance-unknown-id"
#: Headers of a request without a key, and with one that no service issued.
NO_KEY: Headers = {}
WRONG_KEY: Headers = {"Authorization": f"Bearer wrong-key-{secrets.token_hex(8)}"}
_TRIES = 4
#: A Retry-After beyond this is not waited for.
_LONGEST_WAIT = timedelta(minutes=2)
#: After so many requests in a row without an answer nothing more is asked.
_PATIENCE = 3


class Skipped(Exception):
    """A check cannot be made; its text says why."""


@dataclass
class Session:
    """Asks one request after the other, and remembers how each was answered."""

    #: As `StudioClient.request`: operation, body, and what replaces the header with the key.
    request: Request
    #: The most patterns and products to buy, together; each request that might make one is reserved before it is sent.
    spend: int = 0
    job_timeout: timedelta = timedelta(minutes=30)
    unstated: Unstated = UNSTATED
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    #: What was bought, or may have been: a request whose answer was lost counts.
    bought: int = 0
    exchanges: list[tuple[str, Answer]] = field(default_factory=list)
    _token: str = field(default_factory=lambda: secrets.token_hex(8))
    _known: dict[str, Any] = field(default_factory=dict)
    _unanswered: int = 0

    def request_id(self, name: str) -> str:
        """New in each pass, and the same within it."""
        return f"conformance-{self._token}-{name}"

    async def once(self, name: str, find: Callable[[], Awaitable[Any]]) -> Any:
        """What `find` finds, looked for by the first check that needs it; its Skipped is kept too."""
        if name not in self._known:
            try:
                self._known[name] = await find()
            except Skipped as skipped:
                self._known[name] = skipped
        found = self._known[name]
        if isinstance(found, Skipped):
            raise found
        return found

    async def ask(self, operation: str, body: object, headers: Headers | None = None) -> Answer:
        """A readable answer of any status; only what the service limited (429) is sent again. Raises Skipped."""
        if self._unanswered >= _PATIENCE:
            raise Skipped(f"not asked: {_PATIENCE} requests in a row had no answer")
        for number in range(1, _TRIES + 1):
            answer = await self.request(operation, orjson.dumps(body), headers)
            requested = read_retry_after(answer) or timedelta(0)
            if answer.status != RATE_LIMITED or number == _TRIES or requested > _LONGEST_WAIT:
                break
            await self.sleep(max(requested.total_seconds(), number))
        self.exchanges.append((operation, answer))
        self._unanswered = 0 if answer.exchange is ExchangeResult.ANSWERED else self._unanswered + 1
        if fault_of(answer):
            raise Skipped(f"{operation} {fault_of(answer)}")
        if answer.status == RATE_LIMITED:
            raise Skipped(f"the service limits requests (429), for {duration(requested)} or more")
        return answer

    async def create(self, operation: str, body: object) -> Answer:
        """Send a request that may buy one thing, within the limit. Raises Skipped."""
        self.reserve(1)
        answer = await self.ask(operation, body)
        if is_refusal(answer):
            self.bought -= 1
        return answer

    async def create_at_once(self, operation: str, body: object, count: int) -> list[Answer]:
        """The same create `count` times side by side, all of which might buy. Raises Skipped."""
        self.reserve(count)
        content = orjson.dumps(body)
        sent = [self.request(operation, content, None) for _ in range(count)]
        answers = await asyncio.gather(*sent)
        self.exchanges.extend((operation, answer) for answer in answers)
        return answers

    def reserve(self, count: int) -> None:
        """Raises Skipped when the limit does not cover it."""
        if self.bought + count > self.spend:
            left = f"and {self.spend - self.bought} of --spend {self.spend} are left"
            raise Skipped(f"could buy {count}, {left if self.spend else 'which --spend N allows'}")
        self.bought += count


def is_refusal(answer: Answer) -> bool:
    """Nothing was executed; after a 5xx that is unknown."""
    return answer.status is not None and 400 <= answer.status < 500


def fault_of(answer: Answer) -> str:
    """Why an answer cannot be read: it was lost, redirected, or a success without JSON; empty when it can."""
    if answer.exchange is not ExchangeResult.ANSWERED or answer.status is None:
        return f"had no whole answer: {answer.detail}"
    if answer.status in REDIRECTS:
        return f"answers with a redirect ({answer.status})"
    if answer.status in SUCCESS and answer.trouble is not Trouble.NONE:
        return f"answers {answer.status} without JSON"
    return ""
