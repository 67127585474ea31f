"""Questions that change nothing at the service, asked again while an answer is a passing failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

import orjson

from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer, Trouble
from patternmill.service.pacing import Pace
from patternmill.service.resend import (
    RATE_LIMITED,
    REDIRECTS,
    REMEDIES,
    STOPPING,
    ResendPolicy,
    read_retry_after,
    sentence,
)

Post = Callable[[str, bytes], Awaitable[Answer]]

TRIES = 6
#: The code when no answer came: what was learned earlier may be known.
UNREACHABLE = "unreachable"
LONGEST_WAIT = timedelta(minutes=1)
#: Statuses of an operation that is not there, and of one that this key may not use.
_ABSENT, _FORBIDDEN = frozenset({404, 405, 410, 501}), 403
UNREACHABLE_TROUBLES = frozenset({Trouble.TLS, Trouble.HANDSHAKE, Trouble.NAME_NOT_FOUND, Trouble.ADDRESS})


class Questions:
    def __init__(self, post: Post, limiter: Pace, policy: ResendPolicy) -> None:
        self._post, self._limiter = post, limiter
        self._policy = replace(policy, longest_pause=timedelta(seconds=4))

    async def ask(self, operation: str, question: Mapping[str, object], tries: int = TRIES) -> Answer:
        """The first answer that is not a passing failure, or the last one."""
        number = 1
        while True:
            await self._limiter.acquire()
            answer = await self._post(operation, orjson.dumps(question))
            passing = answer.status != 501 and (answer.service_failed or answer.status == RATE_LIMITED)
            if not passing or answer.trouble in UNREACHABLE_TROUBLES or number == tries:
                return answer
            requested = min(read_retry_after(answer) or timedelta(0), LONGEST_WAIT)
            await asyncio.sleep(max(requested, self._policy.pause(number)).total_seconds())
            number += 1

    async def missing(self, operations: Iterable[str]) -> dict[str, str]:
        """Those that the service does not have, each with how that is known.

        The request is `{}`: without an ID of what is to be changed and a request ID no service can make anything of it.
        Raises ServiceStopped when the key is refused, or when the service gives no clear answer: what is not known to
        be there must not be found out with a purchase.
        """
        missing = {}
        for operation in operations:
            answer = await self.ask(operation, {})
            if answer.status == _FORBIDDEN:
                missing[operation] = f"the key may not use {operation} (the service answers 403)"
            elif answer.status in _ABSENT:
                missing[operation] = f"the service has no {operation} (it answers {answer.status})"
            else:
                refuse_unclear(answer)
        return missing


def stopped(code: str, answer: Answer) -> ServiceStopped:
    return ServiceStopped(sentence(answer), code=code, remedy=REMEDIES.get(code, ""))


def unreachable(answer: Answer) -> ServiceStopped:
    remedy = "See that the service's address is right and that it is up."
    return ServiceStopped(sentence(answer), code=UNREACHABLE, remedy=remedy)


def refuse_unclear(answer: Answer) -> None:
    """Raise ServiceStopped when the key or the address is refused, or when the service gives no clear answer."""
    if answer.status in STOPPING:
        raise stopped(STOPPING[answer.status], answer)
    if answer.status in REDIRECTS:
        raise stopped("redirected", answer)
    if answer.trouble in UNREACHABLE_TROUBLES:
        raise stopped(answer.trouble.value, answer)
    if answer.status not in _ABSENT and (answer.service_failed or answer.status == RATE_LIMITED):
        raise unreachable(answer)
