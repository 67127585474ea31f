"""Reads what an environment offers: the list of categories, then the options of each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import orjson

from patternmill.catalog.offer import Offer
from patternmill.catalog.offer_shapes import assemble_offer, read_category_list
from patternmill.errors import ServiceStopped
from patternmill.service.answers import Answer, Happening, Trouble
from patternmill.service.pacing import RateLimiter, Sleeper
from patternmill.service.retry import (
    REDIRECTS,
    REMEDIES,
    STOPPING,
    Jitter,
    RetryPolicy,
    pause,
    read_retry_after,
    said,
)

Post = Callable[[str, bytes], Awaitable[Answer]]

TRIES = 6
#: Nobody answered: what is offered may still be known from before.
UNREACHABLE = "unreachable"
AT_ONCE = 8
LONGEST_WAIT = timedelta(minutes=1)
REFUSALS = frozenset({401, 402, 403, 407})
NO_WAY = frozenset({Trouble.TLS, Trouble.HANDSHAKE, Trouble.NAME_NOT_FOUND, Trouble.ADDRESS})


async def read_offer(post: Post, limiter: RateLimiter, sleep: Sleeper, jitter: Jitter) -> Offer:
    """The offer, as far as it can be read. Raises ServiceStopped when the key or the address is refused."""
    reader = _Reader(post, limiter, sleep, jitter)
    listing = await reader.read("categories/list", {})
    found = read_category_list(listing)
    categories = found.categories if found else ()
    details = await asyncio.gather(*(reader.detail(category.id) for category in categories))
    return assemble_offer(
        listing, {category.id: detail for category, detail in zip(categories, details, strict=True)}
    )


class _Reader:
    def __init__(self, post: Post, limiter: RateLimiter, sleep: Sleeper, jitter: Jitter) -> None:
        self._post, self._limiter, self._sleep, self._jitter = post, limiter, sleep, jitter
        self._free = asyncio.Semaphore(AT_ONCE)
        self._policy = RetryPolicy(longest_pause=timedelta(seconds=4))

    async def detail(self, category_id: str) -> Any:
        """The answer of `categories/get`, or None."""
        async with self._free:
            return await self.read("categories/get", {"categoryId": category_id})

    async def read(self, operation: str, question: dict[str, str]) -> Any:
        """The answer's JSON; None when there is none after some tries. Raises ServiceStopped when nobody answers."""
        for number in range(1, TRIES + 1):
            await self._limiter.acquire()
            answer = await self._post(operation, orjson.dumps(question))
            if answer.good:
                return answer.body
            _raise_if_stopped(answer)
            if not answer.service_failed and answer.status != 429:
                return None
            if number < TRIES:
                await self._sleep(self._pause_after(answer, number).total_seconds())
        if answer.happening is Happening.NOT_SENT:
            raise ServiceStopped(
                said(answer),
                code=UNREACHABLE,
                remedy="See that the service's address is right and that it is up.",
            )
        return None

    def _pause_after(self, answer: Answer, number: int) -> timedelta:
        told = read_retry_after(answer) or timedelta(0)
        return max(min(told, LONGEST_WAIT), pause(number, self._policy, self._jitter))


def _raise_if_stopped(answer: Answer) -> None:
    code = None
    if answer.status in REFUSALS:
        code = STOPPING[answer.status]
    elif answer.status in REDIRECTS:
        code = "redirected"
    elif answer.trouble in NO_WAY:
        code = answer.trouble.value
    if code is not None:
        raise ServiceStopped(said(answer), code=code, remedy=REMEDIES.get(code, ""))
