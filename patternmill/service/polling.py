"""One scheduler asks for all jobs: each when an answer is likely, all together within a rate."""

from __future__ import annotations

import asyncio
import heapq
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median

from patternmill.service.answers import Answer
from patternmill.service.durations import Durations
from patternmill.service.jobs import Job
from patternmill.service.outcomes import Failed, GaveUp, JobEnd, Succeeded, Unresolved
from patternmill.service.pacing import Clock, RateLimiter, Sleeper
from patternmill.service.resend import AskAgain, Polled, RetryPolicy, decide_poll, verdict_on
from patternmill.states import Stage
from patternmill.text import duration

log = logging.getLogger("patternmill.service")

#: Polls due within so many seconds go out together: waking up costs more than asking a little early.
TOGETHER = 0.01
#: Multiples of it, without the whole part, are spread evenly however many they are.
GOLDEN = 0.6180339887

Ask = Callable[[str], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """How eagerly jobs are asked for."""

    #: Polls a second that all jobs share while nothing is urgent. The limiter's rate is the hard bound.
    rate: float = 5.0
    #: Polls a job: at least, for long and for short jobs, and at most.
    fewest: float = 3.5
    fewest_short: float = 10.0
    most: float = 40.0
    #: Jobs asked eagerly while nothing is known of their kind; the others wait for what these tell.
    scouts: int = 6
    #: A scout's gaps grow by this share of its age, up to so many seconds.
    scout_growth: float = 0.3
    scout_gap: float = 8.0
    #: Until a job was seen to end, the others are not asked before this age.
    blind_until: float = 10.0
    shortest_gap: float = 0.05
    longest_gap: float = 60.0
    #: Polls out at once.
    at_once: int = 64
    #: A job taken over from an earlier run is waited for at least this long.
    grace: timedelta = timedelta(minutes=2)


@dataclass(slots=True, eq=False)
class Followed:
    """A job that somebody waits for. Times are of the poller's clock."""

    job_id: str
    stage: Stage
    accepted_at: float
    deadline: float
    end: asyncio.Future[JobEnd]
    scout: bool
    #: What its first gap is multiplied with: jobs of one age are asked at different ages, and tell of one another.
    phase: float = 1.0
    #: The age at which it was last known to run.
    ran_until: float = 0.0
    #: Polls in a row that told nothing, and when the first of them was asked.
    vain: int = 0
    vain_since: float = 0.0
    unknown_status: str | None = None
    due: float = 0.0
    #: Raised with each new due time, so that older entries of the heap are passed over.
    turn: int = 0


@dataclass(slots=True)
class PollStats:
    """Figures for the manifest and the benchmarks. Lags are estimates: half the gap before the end."""

    polls: int = 0
    ended: int = 0
    lags: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, float]:
        """As plain JSON."""
        return {
            "polls": self.polls,
            "jobs_ended": self.ended,
            "polls_a_job": round(self.polls / max(1, self.ended), 2),
            "median_lag": round(median(self.lags), 3) if self.lags else 0.0,
        }


class Poller:
    """Follows jobs to their end. Every wait ends: done, failed, kept for a person, or gave up waiting."""

    def __init__(
        self,
        ask: Ask,
        limiter: RateLimiter,
        *,
        retry: RetryPolicy | None = None,
        policy: PollPolicy | None = None,
        clock: Clock = time.monotonic,
        sleeper: Sleeper = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._ask, self._limiter = ask, limiter
        self._retry = retry or RetryPolicy()
        self._policy = policy or PollPolicy()
        self._clock, self._sleep, self._jitter = clock, sleeper, jitter
        self._heap: list[tuple[float, int, int, Followed]] = []
        self._count = 0
        #: In order of their coming.
        self._jobs: dict[Stage, dict[Followed, None]] = {stage: {} for stage in Stage}
        self._durations = {stage: Durations() for stage in Stage}
        self._free = asyncio.Semaphore(self._policy.at_once)
        self._woken = asyncio.Event()
        self._scheduler: asyncio.Task[None] | None = None
        self._polls: set[asyncio.Task[None]] = set()
        self._warned: set[str] = set()
        self._last_good = float("-inf")
        self._abandoned = False
        self.stats = PollStats()

    @property
    def following(self) -> int:
        return sum(map(len, self._jobs.values()))

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), known: Job | None = None
    ) -> JobEnd:
        """Ask until the job ended or was waited for long enough. `known`: what the create answered."""
        if known is not None and (verdict := verdict_on(known, stage, age)):
            return verdict
        if self._abandoned:
            return _cut_off(job_id)
        self._start()
        job = self._enter(job_id, stage, age.total_seconds())
        try:
            return await job.end
        finally:
            job.turn += 1
            self._jobs[stage].pop(job, None)

    def abandon(self) -> None:
        """Everybody who waits, and whoever comes later, is told that the wait was given up."""
        self._abandoned = True
        for job in [job for jobs in self._jobs.values() for job in jobs]:
            self._end(job, _cut_off(job.job_id))

    async def close(self) -> None:
        """Abandon what is left, and stop."""
        self.abandon()
        tasks = [*self._polls, *([self._scheduler] if self._scheduler else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # The schedule.

    def _start(self) -> None:
        if self._scheduler is None or self._scheduler.done():
            self._scheduler = asyncio.create_task(self._run())
            self._scheduler.add_done_callback(self._scheduler_ended)

    def _scheduler_ended(self, task: asyncio.Task[None]) -> None:
        """A fault of ours must not leave anybody waiting for ever."""
        error = None if task.cancelled() else task.exception()
        for job in [job for jobs in self._jobs.values() for job in jobs] if error else []:
            if error and not job.end.done():
                job.end.set_exception(error)

    def _enter(self, job_id: str, stage: Stage, age: float) -> Followed:
        now, jobs = self._clock(), self._jobs[stage]
        timeout = self._retry.job_timeout.total_seconds()
        wait = max(timeout - age, min(self._policy.grace.total_seconds(), timeout))
        job = Followed(
            job_id=job_id,
            stage=stage,
            accepted_at=now - age,
            deadline=now + wait,
            end=asyncio.get_running_loop().create_future(),
            scout=sum(other.scout for other in jobs) < self._policy.scouts if len(jobs) < 64 else False,
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
        policy, known, age = self._policy, self._durations[job.stage], job.ran_until
        if known.seen or not job.scout:
            next_age = known.next_age(age, self._step(known) * (1.0 if age else job.phase))
            longest = self._longest_gap(known) if age >= known.first_likely else policy.longest_gap
            next_age = max(min(next_age, age + longest), 0.0 if known.seen else policy.blind_until)
        else:
            next_age = self._scout_age(job, age)
        return max(job.accepted_at + max(next_age, age + policy.shortest_gap), now)

    def _scout_age(self, job: Followed, age: float) -> float:
        """When nothing is known, some ask at growing gaps from the start, and the others leave it to them."""
        policy = self._policy
        gap = min(0.1 + policy.scout_growth * age, 1.5 + 0.15 * self.following, policy.scout_gap)
        return age + gap * (1.0 if age else job.phase)

    def _step(self, known: Durations) -> float:
        """How much of the spread of durations lies between two polls: less, the fewer jobs share the rate."""
        policy = self._policy
        short = min(1.0, max(0.0, (30.0 - known.typical) / 20.0))
        fewest = policy.fewest + short * (policy.fewest_short - policy.fewest)
        polls = policy.rate * known.typical / max(1, self.following)
        return known.spread / min(max(polls, fewest), policy.most)

    def _longest_gap(self, known: Durations) -> float:
        """With few jobs left each is asked often, so that a run's end does not wait for a rare question."""
        fair = 2.0 * self.following / self._policy.rate
        return min(max(fair, 0.02 * known.typical, self._policy.shortest_gap), self._policy.longest_gap)

    async def _run(self) -> None:
        while True:
            job = await self._next()
            if not await self._limiter.acquire():
                return
            await self._free.acquire()
            if job.end.done():
                self._free.release()
                continue
            poll = asyncio.create_task(self._poll(job))
            self._polls.add(poll)
            poll.add_done_callback(self._poll_ended)

    async def _next(self) -> Followed:
        """The job that is due first, when it is due."""
        while True:
            while self._heap and self._heap[0][2] != self._heap[0][3].turn:
                heapq.heappop(self._heap)
            wait = self._heap[0][0] - self._clock() if self._heap else None
            if wait is not None and wait <= TOGETHER:
                job = heapq.heappop(self._heap)[3]
                # Asked from now on: what is learned while it is must not have it asked again.
                job.due = self._clock()
                return job
            await self._sleep_or_woken(wait)

    async def _sleep_or_woken(self, delay: float | None) -> None:
        self._woken.clear()
        woken = asyncio.ensure_future(self._woken.wait())
        timer = asyncio.ensure_future(self._sleep(delay)) if delay is not None else None
        waits = {woken, timer} if timer is not None else {woken}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _poll_ended(self, poll: asyncio.Task[None]) -> None:
        self._polls.discard(poll)
        self._free.release()

    # One poll.

    async def _poll(self, job: Followed) -> None:
        asked_at = self._clock()
        try:
            answer = await self._ask(job.job_id)
            self._hear(job, answer, asked_at)
        except Exception as error:
            if not job.end.done():
                job.end.set_exception(error)

    def _hear(self, job: Followed, answer: Answer, asked_at: float) -> None:
        self.stats.polls += 1
        now = self._clock()
        age = now - job.accepted_at
        if answer.good:
            self._last_good = now
        well = job.vain > 0 and self._last_good >= job.vain_since
        asked = Polled(job.job_id, job.stage, timedelta(seconds=age), job.vain + 1, well)
        decision = decide_poll(answer, asked, self._retry, self._jitter)
        if answer.status == 429 and isinstance(decision, AskAgain) and decision.delay:
            self._limiter.limited(asked_at, decision.delay.total_seconds() if decision.told else 0.0)
        elif answer.good:
            self._limiter.accepted()
        if isinstance(decision, AskAgain):
            self._ask_again(job, decision, now, asked_at - job.accepted_at)
        else:
            self._learn_end(job, decision, age)
            self._end(job, decision)

    def _ask_again(self, job: Followed, decision: AskAgain, now: float, asked_age: float) -> None:
        self._note_status(job, decision)
        if now >= job.deadline:
            self._end(job, self._given_up(job))
        elif decision.delay is not None:
            if not job.vain:
                job.vain_since = now
            job.vain += 1
            self._plan(job, now + decision.delay.total_seconds())
        else:
            job.vain = 0
            if asked_age > job.ran_until:
                self._durations[job.stage].ran(job.ran_until, asked_age)
                job.ran_until = asked_age
            self._plan(job)
            self._learn(job.stage)

    def _note_status(self, job: Followed, decision: AskAgain) -> None:
        word = job.unknown_status = decision.unknown_status
        if word is not None and word not in self._warned and len(self._warned) < 20:
            self._warned.add(word)
            log.warning(
                "The service reports a status that is not known: %.40r. Such jobs are asked on.", word
            )

    def _given_up(self, job: Followed) -> JobEnd:
        if job.unknown_status is not None:
            return Unresolved("unknown_status", f"Job {job.job_id} stands at {job.unknown_status[:40]!r}.")
        waited = duration(self._clock() - job.accepted_at)
        return GaveUp(job.job_id, f"Job {job.job_id} had not ended after {waited}.")

    def _end(self, job: Followed, end: JobEnd) -> None:
        if not job.end.done():
            job.end.set_result(end)

    def _learn_end(self, job: Followed, end: JobEnd, age: float) -> None:
        if not isinstance(end, Succeeded | Failed):
            return
        self.stats.ended += 1
        self.stats.lags.append(max(0.0, age - job.ran_until) / 2)
        known = self._durations[job.stage]
        known.ended(job.ran_until, age)
        self._learn(job.stage)

    def _learn(self, stage: Stage) -> None:
        if self._durations[stage].stale:
            self._durations[stage].refresh()
            self._plan_anew(stage)

    def _plan_anew(self, stage: Stage) -> None:
        """What was just learned may call for an earlier question, or a later one."""
        for job in self._jobs[stage]:
            if job.vain == 0 and not job.end.done() and job.turn and job.due > self._clock():
                self._plan(job)


def _cut_off(job_id: str) -> GaveUp:
    return GaveUp(job_id, f"The run ended before job {job_id} did.")
