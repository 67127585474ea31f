"""One job looked up for a person, in a few quick tries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from patternmill.errors import ServiceStopped
from patternmill.service.jobs import Job, read_job
from patternmill.service.outcomes import Answer
from patternmill.service.resend import STOPPING, ResendPolicy, sentence

TRIES = 4
#: Possible answers for an unknown job: the interface does not specify one.
UNKNOWN = frozenset({400, 404, 410, 422})


async def look_up(ask: Callable[[str], Awaitable[Answer]], job_id: str, policy: ResendPolicy) -> Job | None:
    """The job as of now; None when the service has none. Raises ServiceStopped without a readable answer."""
    policy = replace(policy, longest_pause=timedelta(seconds=2))
    for number in range(1, TRIES + 1):
        answer = await ask(job_id)
        job = read_job(answer.body) if answer.usable else None
        if job is not None or answer.status in UNKNOWN:
            return job
        if answer.status in STOPPING or number == TRIES:
            break
        await asyncio.sleep(policy.pause(number).total_seconds())
    unreadable = " No job can be read from that." if answer.usable else ""
    raise ServiceStopped(f"{sentence(answer)}{unreadable}", code="job_not_shown")
