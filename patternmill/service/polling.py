"""One scheduler polls all jobs: each when its end is likely, all together within a rate."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from patternmill.service.jobs import Job
from patternmill.service.outcomes import GAVE_UP, Answer, JobEnd, No, failed_exchange
from patternmill.service.pacing import Clock, Pace
from patternmill.service.resend import UNKNOWN_STATUS, AskAgain, ResendPolicy, decide_poll, end_of_job
from patternmill.states import AttemptState, Stage

logger = logging.getLogger("patternmill.service")

POLL = "jobs/get"
#: Polls due within so many seconds go out together: waking up costs more than asking a little early.
TOGETHER = 0.01
#: Multiples of it, without the whole part, are spread evenly however many they are.
GOLDEN = 0.6180339887

Ask = Callable[[str], Awaitable[Answer]]


#: Polls a second that all jobs share while nothing is urgent. The limiter's rate is the hard bound.
RATE = 5.0
#: Polls over the range of durations: at least, though fewer where the limiter has no room for them, and at most.
FEWEST, MOST = 10.0, 40.0
#: The share of the limiter's rate that they may use: beyond it polls would wait.
ROOM = 0.8
#: Jobs polled eagerly while no durations of their stage are known; the others wait for these.
SCOUTS = 6
SHORTEST_GAP, LONGEST_GAP = 0.05, 60.0
#: Once jobs begin to end, no gap is longer than this share of what is typical: it bounds a run's last wait.
CAP = 0.15
#: A job of an earlier run is waited for at least so many seconds.
GRACE = 120.0


class Durations:
    """How long jobs of one kind took of late, in seconds, and when one that still runs is likely to have ended."""

    MEMORY = 300

    def __init__(self) -> None:
        self._recent = deque[float]()
        self._sorted: list[float] = []
        #: Jobs seen to end.
        self.seen = 0
        self._noted_at = 0

    def ended(self, since: float, until: float) -> None:
        """A job ended between these ages."""
        self.seen += 1
        self._recent.append((since + until) / 2)
        insort(self._sorted, self._recent[-1])
        if len(self._recent) > self.MEMORY:
            del self._sorted[bisect_right(self._sorted, self._recent.popleft()) - 1]

    def is_news(self) -> bool:
        """Whether so many were seen since this was last asked for that it makes a difference."""
        if self.seen < 1.2 * self._noted_at + (self._noted_at < self.MEMORY):
            return False
        self._noted_at = self.seen
        return True

    @property
    def typical(self) -> float:
        return self._percentile(0.5)

    @property
    def first_likely(self) -> float:
        """The age before which few jobs end."""
        return self._percentile(0.05)

    def next_age(self, age: float, share: float) -> float:
        """The age by which this share of all jobs ends after `age`, but at most a third of those that still run then.

        Beyond the longest known duration the gaps grow with the distance from the shortest.
        """
        known, ended = len(self._sorted), bisect_right(self._sorted, age)
        if ended < known:
            return self._sorted[int(ended + min(share * known, (known - ended) / 3))]
        return age + 0.3 * share * (age - self._sorted[0]) + 0.01 * age

    def _percentile(self, share: float) -> float:
        return self._sorted[int(share * len(self._sorted))]


@dataclass(slots=True, eq=False)
class Followed:
    """A job that is waited for. Times are of the poller's clock."""

    job_id: str
    stage: Stage
    accepted_at: float
    deadline: float
    end: asyncio.Future[JobEnd]
    scout: bool
    #: What its first gap is multiplied with: jobs that begin together are polled at different ages.
    phase: float = 1.0
    #: The age at which it was last known to run.
    ran_until: float = 0.0
    #: Polls in a row that showed nothing of the job, and since when.
    failures: int = 0
    failing_since: float = 0.0
    #: How it ends at its deadline, by the last answer.
    gave_up: No = GAVE_UP
    due: float = 0.0
    #: Raised with each new due time, so that older entries of the heap are passed over.
    turn: int = 0


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
        self._heap: list[tuple[float, int, int, Followed]] = []
        self._count = 0
        #: In the order in which they were added.
        self._jobs: dict[Stage, dict[Followed, None]] = {stage: {} for stage in Stage}
        self._durations = {stage: Durations() for stage in Stage}
        self._woken = asyncio.Event()
        self._scheduler: asyncio.Task[None] | None = None
        self._polls: set[asyncio.Task[None]] = set()
        self._warned: set[str] = set()
        self._last_success = float("-inf")
        self._abandoned = False

    @property
    def following(self) -> int:
        return sum(map(len, self._jobs.values()))

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), known: Job | None = None
    ) -> JobEnd:
        """Ask until the job ended or was waited for long enough. `known`: what the create answered."""
        if known is not None and (end := end_of_job(known, stage)):
            return end
        if self._abandoned:
            return GAVE_UP
        self._start()
        job = self._enter(job_id, stage, age.total_seconds())
        try:
            return await job.end
        finally:
            job.turn += 1
            self._jobs[stage].pop(job, None)

    def abandon(self) -> None:
        """End every wait, now and later, without another poll."""
        self._abandoned = True
        for job in self._every():
            self._end(job, GAVE_UP)

    def _every(self) -> list[Followed]:
        return [job for jobs in self._jobs.values() for job in jobs]

    async def close(self) -> None:
        """Abandon what is left, and stop."""
        self.abandon()
        tasks = [*self._polls, *([self._scheduler] if self._scheduler else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- the schedule

    def _start(self) -> None:
        if self._scheduler is None or self._scheduler.done():
            self._scheduler = asyncio.create_task(self._run())
            self._scheduler.add_done_callback(self._scheduler_ended)

    def _scheduler_ended(self, task: asyncio.Task[None]) -> None:
        """A fault of the scheduler ends every wait."""
        if not task.cancelled() and (error := task.exception()):
            for job in self._every():
                if not job.end.done():
                    job.end.set_exception(error)

    def _enter(self, job_id: str, stage: Stage, age: float) -> Followed:
        now, jobs = self._clock(), self._jobs[stage]
        timeout = self._resend.job_timeout.total_seconds()
        wait = max(timeout - age, min(GRACE, timeout))
        job = Followed(
            job_id=job_id,
            stage=stage,
            accepted_at=now - age,
            deadline=now + wait,
            end=asyncio.get_running_loop().create_future(),
            scout=sum(other.scout for other in jobs) < SCOUTS if len(jobs) < 64 else False,
            ran_until=age,
            phase=0.5 + self._count * GOLDEN % 1.0,
        )
        jobs[job] = None
        self._plan(job, now if age > 1.0 else None)
        return job

    def _plan(self, job: Followed, due: float | None = None) -> None:
        """Set the time of the next poll: `due`, or when an answer is likely; by the deadline."""
        now = self._clock()
        job.due = min(self._likely(job, now) if due is None else due, max(job.deadline, now))
        job.turn += 1
        self._count += 1
        heapq.heappush(self._heap, (job.due, self._count, job.turn, job))
        if self._heap[0][3] is job:
            self._woken.set()

    def _likely(self, job: Followed, now: float) -> float:
        """Counted from the last poll, so that planning anew does not put the next one off."""
        known, age = self._durations[job.stage], job.ran_until
        phase = 1.0 if age else job.phase
        if known.seen:
            gap = known.next_age(age, phase / self._polls_a_job(known)) - age
            gap = min(gap, self._longest_gap(known) if age >= known.first_likely else LONGEST_GAP)
        elif job.scout:  # at growing gaps from the start
            gap = phase * min(0.1 + 0.3 * age, 1.5 + 0.15 * self.following, 8.0)
        else:
            gap = LONGEST_GAP
        return max(job.accepted_at + age + max(gap, SHORTEST_GAP), now)

    def _polls_a_job(self, known: Durations) -> float:
        """Over the range of durations: more, the fewer jobs share the rate."""
        each = known.typical / max(1, self.following)
        fewest = max(3.0, min(FEWEST, ROOM * self._limiter.rate * each))
        return min(max(RATE * each, fewest), MOST)

    def _longest_gap(self, known: Durations) -> float:
        """With few jobs left each is polled often, so that a run's end does not wait for a rare poll."""
        fair = 2.0 * self.following / RATE
        return min(max(fair, 0.02 * known.typical, SHORTEST_GAP), CAP * known.typical, LONGEST_GAP)

    async def _run(self) -> None:
        while True:
            job = await self._next()
            await self._limiter.acquire()
            if job.end.done():
                self._limiter.release()
                continue
            poll = asyncio.create_task(self._poll(job))
            self._polls.add(poll)
            poll.add_done_callback(self._poll_ended)

    async def _next(self) -> Followed:
        while True:
            while self._heap and self._heap[0][2] != self._heap[0][3].turn:
                heapq.heappop(self._heap)
            wait = self._heap[0][0] - self._clock() if self._heap else None
            if wait is not None and wait <= TOGETHER:
                job = heapq.heappop(self._heap)[3]
                # Being polled from now on: what is learned meanwhile must not schedule it again.
                job.due = self._clock()
                return job
            self._woken.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._woken.wait()

    def _poll_ended(self, poll: asyncio.Task[None]) -> None:
        self._polls.discard(poll)
        self._limiter.release()

    # -- one poll

    async def _poll(self, job: Followed) -> None:
        asked_at = self._clock()
        try:
            answer = await self._ask(job.job_id)
            self._process(job, answer, asked_at)
        except Exception as error:
            if not job.end.done():
                job.end.set_exception(error)

    def _process(self, job: Followed, answer: Answer, asked_at: float) -> None:
        now = self._clock()
        age = now - job.accepted_at
        if answer.usable:
            self._last_success = now
        well = job.failures > 0 and self._last_success >= job.failing_since
        tries, aged = job.failures + 1, timedelta(seconds=age)
        decision = decide_poll(answer, self._resend, job.job_id, job.stage, age=aged, tries=tries, well=well)
        if answer.status == 429 and isinstance(decision, AskAgain) and decision.delay:
            requested = decision.delay.total_seconds() if decision.server_requested else 0.0
            self._limiter.refused(asked_at, requested)
        elif answer.usable:
            self._limiter.accepted(asked_at)
        if isinstance(decision, AskAgain):
            self._ask_again(job, decision, now, asked_at - job.accepted_at)
        else:
            if isinstance(decision, No):
                decision = replace(decision, exchange=failed_exchange(POLL, answer, now - asked_at))
            self._learn_end(job, decision, age)
            self._end(job, decision)

    def _ask_again(self, job: Followed, decision: AskAgain, now: float, asked_age: float) -> None:
        self._log_unknown_status(decision.gave_up)
        job.gave_up = decision.gave_up
        if now >= job.deadline:
            self._end(job, job.gave_up)
        elif decision.delay is not None:
            if not job.failures:
                job.failing_since = now
            job.failures += 1
            self._plan(job, now + decision.delay.total_seconds())
        else:
            job.failures = 0
            if asked_age > job.ran_until:
                job.ran_until = asked_age
            self._plan(job)

    def _log_unknown_status(self, gave_up: No) -> None:
        what = gave_up.message
        if gave_up.code == UNKNOWN_STATUS and what not in self._warned and len(self._warned) < 20:
            self._warned.add(what)
            logger.warning("%s The interface does not name it; such jobs are polled on.", what)

    def _end(self, job: Followed, end: JobEnd) -> None:
        if not job.end.done():
            job.end.set_result(end)

    def _learn_end(self, job: Followed, end: JobEnd, age: float) -> None:
        if isinstance(end, No) and end.state is not AttemptState.FAILED:
            return
        known = self._durations[job.stage]
        known.ended(job.ran_until, age)
        # What was just learned may call for an earlier poll, or a later one.
        for other in self._jobs[job.stage] if known.is_news() else ():
            if other.failures == 0 and not other.end.done() and other.turn and other.due > self._clock():
                self._plan(other)
