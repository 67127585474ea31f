"""Asks for each job when its end becomes likely, and then every few seconds, all under one rate."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

import orjson

from patternmill.service.client import StudioClient
from patternmill.service.jobs import POLL, SUCCEEDED
from patternmill.service.outcomes import GAVE_UP, Answer, Ended, JobEnd, failed_exchange
from patternmill.service.pacing import Clock, Interrupt, Pace
from patternmill.service.questions import Questions
from patternmill.service.resend import RATE_LIMITED, UNKNOWN_STATUS, AskAgain, ResendPolicy, decide_poll
from patternmill.states import Stage

logger = logging.getLogger("patternmill.service")

#: The first poll comes at this percentile of the stage's last jobs, less a tenth. A job that has ended by its first
#: poll may have ended long before: without the tenth, jobs that have become quicker would go unnoticed.
PERCENTILE, EARLIER, REMEMBERED = 0.1, 0.9, 100
#: The age at the first poll, in seconds, while no job of the stage is known.
UNKNOWN = 0.2
#: The gap between two polls: so many seconds (fewer while the job is younger than that), or this share of its age.
GAP, SHARE = 2.0, 0.05
#: The fewest seconds for which a job of an earlier run is waited for.
GRACE = 120.0


def gap_at(age: float) -> float:
    """Return the seconds from a poll at this age to the next one."""
    return max(min(age, GAP), SHARE * age, UNKNOWN)


@dataclass(slots=True, eq=False)
class FollowedJob:
    """A job that is waited for. Times are of the poller's clock."""

    job_id: str
    stage: Stage
    accepted_at: float
    deadline: float
    #: The number of polls in a row that showed nothing of the job, and since when.
    failures: int = 0
    failing_since: float = 0.0


class Poller(Questions):
    """Follows jobs to their end. Every wait ends: succeeded, failed, unresolved, or gave up."""

    def __init__(self, client: StudioClient, pace: Pace, policy: ResendPolicy, clock: Clock) -> None:
        super().__init__(client, pace, policy, clock)
        #: The seconds that the last successful jobs of each stage took.
        self._took = {stage: deque[float](maxlen=REMEMBERED) for stage in Stage}
        self._abandoned = Interrupt()
        self._warned: set[str] = set()
        self._last_success = float("-inf")

    def remember(self, took: Iterable[tuple[Stage, float]]) -> None:
        """Learn how many seconds successful jobs took until their end was seen, the latest last."""
        for stage, seconds in took:
            self._took[stage].append(seconds)

    def first_poll(self, stage: Stage) -> float:
        """Return the age, in seconds, at which a job of this stage is first asked for."""
        took = sorted(self._took[stage])
        return max(EARLIER * took[int(PERCENTILE * len(took))], UNKNOWN) if took else UNKNOWN

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), once: bool = False
    ) -> JobEnd:
        """Ask until the job has ended or was waited for long enough; `once`: ask a single time.

        `age`: how long ago it was accepted.
        """
        now, timeout = self._clock(), self._policy.job_timeout.total_seconds()
        seconds = age.total_seconds()
        patience = 0.0 if once else max(timeout - seconds, min(GRACE, timeout))
        job = FollowedJob(job_id, stage, now - seconds, now + patience)
        try:
            async with self._abandoned.guard():
                return await self._until_ended(job, 0.0 if seconds > 1.0 else self.first_poll(stage))
        except TimeoutError:
            return GAVE_UP

    async def _until_ended(self, job: FollowedJob, wait: float) -> JobEnd:
        while True:
            await asyncio.sleep(max(0.0, min(wait, job.deadline - self._clock())))
            await self._pace.acquire()
            asked_at = self._clock()
            answer = await self._post(POLL, orjson.dumps({"jobId": job.job_id}))
            decision = self._decide(job, answer, asked_at)
            if not isinstance(decision, AskAgain):
                return self._end(job, answer, decision, asked_at)
            if self._clock() >= job.deadline:
                return decision.gave_up
            wait = self._wait(job, decision)

    def _decide(self, job: FollowedJob, answer: Answer, asked_at: float) -> AskAgain | JobEnd:
        """Return what an answer means, and pace all polls by it."""
        now = self._clock()
        if answer.usable:
            self._last_success = now
            self._pace.accepted(asked_at)
        well = job.failures > 0 and self._last_success >= job.failing_since
        tries, age = job.failures + 1, timedelta(seconds=now - job.accepted_at)
        decision = decide_poll(answer, self._policy, job.job_id, age=age, tries=tries, well=well)
        if answer.status == RATE_LIMITED and isinstance(decision, AskAgain) and decision.delay:
            requested = decision.delay.total_seconds() if decision.server_requested else 0.0
            self._pace.refused(asked_at, requested)
        return decision

    def _end(self, job: FollowedJob, answer: Answer, end: JobEnd, asked_at: float) -> JobEnd:
        """Return an end, with the exchange that showed it unless the job succeeded."""
        now = self._clock()
        if isinstance(end, Ended) and end.job.status == SUCCEEDED:
            self.remember([(job.stage, now - job.accepted_at)])
            return end
        return replace(end, exchange=failed_exchange(POLL, answer, now - asked_at))

    def _wait(self, job: FollowedJob, decision: AskAgain) -> float:
        """Return the seconds until the next poll of a job that has not ended as far as we know."""
        message = decision.gave_up.message
        if decision.gave_up.code == UNKNOWN_STATUS and message not in self._warned and len(self._warned) < 20:
            self._warned.add(message)
            logger.warning("%s The interface does not name it; such jobs are polled on.", message)
        now = self._clock()
        if decision.delay is None:
            job.failures = 0
            return gap_at(now - job.accepted_at)
        job.failing_since = job.failing_since if job.failures else now
        job.failures += 1
        return decision.delay.total_seconds()
