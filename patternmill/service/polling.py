"""Polling: each job is asked for when its end becomes likely, and then every few seconds, all under one rate."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from patternmill.service.jobs import SUCCEEDED
from patternmill.service.outcomes import GAVE_UP, Answer, Ended, JobEnd, No, failed_exchange
from patternmill.service.pacing import Clock, Interrupt, Pace
from patternmill.service.resend import RATE_LIMITED, UNKNOWN_STATUS, AskAgain, ResendPolicy, decide_poll
from patternmill.states import Stage

logger = logging.getLogger("patternmill.service")

POLL = "jobs/get"

#: The first poll is at this percentile of the last jobs of the stage, less a tenth: a job that is found ended at its
#: first poll may have ended long before, and so jobs that have become quicker are noticed.
PERCENTILE, EARLIER, REMEMBERED = 0.1, 0.9, 100
#: The age at the first poll while no job of the stage is known, in seconds.
UNKNOWN = 0.2
#: The gap between two polls: so many seconds (less while the job is younger than that), or this share of its age.
GAP, SHARE = 2.0, 0.05
#: A job of an earlier run is waited for at least so many seconds.
GRACE = 120.0

Ask = Callable[[str], Awaitable[Answer]]


def gap_at(age: float) -> float:
    """Return the seconds from a poll at this age to the next one."""
    return max(min(age, GAP), SHARE * age, UNKNOWN)


@dataclass(slots=True, eq=False)
class Followed:
    """A job that is waited for. Times are of the poller's clock."""

    job_id: str
    stage: Stage
    accepted_at: float
    deadline: float
    #: Polls in a row that showed nothing of the job, and since when.
    failures: int = 0
    failing_since: float = 0.0


class Poller:
    """Follows jobs to their end. Every wait ends: succeeded, failed, unresolved, or gave up."""

    def __init__(
        self,
        ask: Ask,
        limiter: Pace,
        *,
        resend: ResendPolicy | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._ask, self._limiter = ask, limiter
        self._resend = resend or ResendPolicy()
        self._clock = clock
        #: How long the last jobs of each stage took that succeeded, in seconds.
        self._took = {stage: deque[float](maxlen=REMEMBERED) for stage in Stage}
        self._abandoned = Interrupt()
        self._warned: set[str] = set()
        self._last_success = float("-inf")

    def remember(self, stage: Stage, seconds: float) -> None:
        """Take in how long a job took that succeeded, by when its end was seen."""
        self._took[stage].append(seconds)

    def first_poll(self, stage: Stage) -> float:
        """Return the age, in seconds, at which a job of this stage is first asked for."""
        took = sorted(self._took[stage])
        return max(EARLIER * took[int(PERCENTILE * len(took))], UNKNOWN) if took else UNKNOWN

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), once: bool = False
    ) -> JobEnd:
        """Ask until the job ended or was waited for long enough; `once`: ask a single time."""
        now, timeout = self._clock(), self._resend.job_timeout.total_seconds()
        seconds = age.total_seconds()
        patience = 0.0 if once else max(timeout - seconds, min(GRACE, timeout))
        job = Followed(job_id, stage, now - seconds, now + patience)
        try:
            async with self._abandoned.guard():
                return await self._until_ended(job, 0.0 if seconds > 1.0 else self.first_poll(stage))
        except TimeoutError:
            return GAVE_UP

    def abandon(self) -> None:
        """End every wait, now and later, without another poll."""
        self._abandoned.begin()

    async def _until_ended(self, job: Followed, wait: float) -> JobEnd:
        while True:
            await asyncio.sleep(max(0.0, min(wait, job.deadline - self._clock())))
            await self._limiter.acquire()
            asked_at = self._clock()
            answer = await self._ask(job.job_id)
            decision = self._decide(job, answer, asked_at)
            if not isinstance(decision, AskAgain):
                if isinstance(decision, Ended) and decision.job.status == SUCCEEDED:
                    self.remember(job.stage, self._clock() - job.accepted_at)
                return decision
            if self._clock() >= job.deadline:
                return decision.gave_up
            wait = self._wait(job, decision)

    def _decide(self, job: Followed, answer: Answer, asked_at: float) -> AskAgain | JobEnd:
        now = self._clock()
        if answer.usable:
            self._last_success = now
        well = job.failures > 0 and self._last_success >= job.failing_since
        tries, age = job.failures + 1, timedelta(seconds=now - job.accepted_at)
        decision = decide_poll(answer, self._resend, job.job_id, age=age, tries=tries, well=well)
        self._pace(answer, decision, asked_at)
        if isinstance(decision, No) or (isinstance(decision, Ended) and decision.job.status != SUCCEEDED):
            return replace(decision, exchange=failed_exchange(POLL, answer, now - asked_at))
        return decision

    def _pace(self, answer: Answer, decision: AskAgain | JobEnd, asked_at: float) -> None:
        if answer.status == RATE_LIMITED and isinstance(decision, AskAgain) and decision.delay:
            requested = decision.delay.total_seconds() if decision.server_requested else 0.0
            self._limiter.refused(asked_at, requested)
        elif answer.usable:
            self._limiter.accepted(asked_at)

    def _wait(self, job: Followed, decision: AskAgain) -> float:
        """Return the seconds until the next poll of a job that has not ended as far as is known."""
        self._log_unknown_status(decision.gave_up)
        now = self._clock()
        if decision.delay is None:
            job.failures = 0
            return gap_at(now - job.accepted_at)
        job.failing_since = job.failing_since if job.failures else now
        job.failures += 1
        return decision.delay.total_seconds()

    def _log_unknown_status(self, gave_up: No) -> None:
        what = gave_up.message
        if gave_up.code == UNKNOWN_STATUS and what not in self._warned and len(self._warned) < 20:
            self._warned.add(what)
            logger.warning("%s The interface does not name it; such jobs are polled on.", what)
