"""Limits of jobs at once that the service does not state: how many it runs is learned from its 429 answers."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from patternmill.service.pacing import Clock
from patternmill.states import Stage


@dataclass(slots=True)
class JobLimit:
    """The most jobs at once, once it is known that there is such a limit.

    A 429 lowers it to the jobs that ran when the create was sent. Now and then one more job than that is tried; when
    that goes well for a while, as many as are accepted, one by one.
    """

    #: A trial comes after so many creates that found all slots but theirs occupied, or after so many seconds; where
    #: that is sooner, after twice as many seconds each time, up to so many, as one 429 of few creates is a large part.
    EACH, SECONDS, LONGEST = 90, 30.0, 240.0
    #: It goes well after so many creates, or so many seconds.
    WELL, WELL_SECONDS = 10, 10.0
    #: A trial that came so far found a limit that rose; the next one is a little below. Else it met jobs that had ended
    #: before that was known: then the limit is one more at most.
    FAR, NEARLY = 1.2, 1.05
    #: A 429 at so much less than the limit is not of this limit.
    NEAR = 0.75

    clock: Clock
    #: Infinite: there is no such limit.
    most: float = float("inf")
    #: Before the trial.
    _base: float = float("inf")
    _used: int = 0
    _changed_at: float = 0.0
    _patience: float = SECONDS

    @property
    def known(self) -> bool:
        return self.most != float("inf")

    def find(self, running: int) -> None:
        """Nothing is accepted, at any rate, while so many jobs run."""
        self._set(max(1, running))
        self._patience = self.SECONDS

    def accepted(self, running: int) -> None:
        """A create was accepted while so many other jobs ran."""
        if not self.known or running + 1 < self.most:
            return
        self._used += 1
        if self._tries:
            if self._after(self.WELL, self.WELL_SECONDS):
                self._patience = self.SECONDS
                self.most += 1
        elif self._after(self.EACH, self._patience):
            if self._used < self.EACH:
                self._patience = min(2 * self._patience, self.LONGEST)
            self._set(self.most + 1, self.most)

    def refused(self, sent_at: float, running: int) -> bool:
        """A create was answered 429 while so many other jobs ran. False when it cannot be for this limit."""
        if not running or running + 1 < self.NEAR * self.most:
            return False
        if sent_at <= self._changed_at and not self._tries:
            return True  # of the same round
        if self._tries:
            far = running > self.FAR * self._base + 2
            self._set(running / self.NEARLY if far else self._base + (running > self._base))
        else:
            self._set(max(1, min(running, self.most - 1)))
        return True

    @property
    def _tries(self) -> bool:
        return self.most > self._base

    def _after(self, creates: int, seconds: float) -> bool:
        return self._used >= creates or self.clock() - self._changed_at >= seconds

    def _set(self, most: float, base: float | None = None) -> None:
        self.most = float(int(most))
        self._base = self.most if base is None else base
        self._used, self._changed_at = 0, self.clock()


class Refusals:
    """Whether creates are refused just when so many jobs run.

    A limit of jobs refuses always at the same number of them, and hardly accepts any at that number. A limit of the
    rate accepts many times as many at the number of jobs at which it refuses one.
    """

    #: So many refusals are looked at, so many seconds apart at least; among so many answers.
    COUNT, APART, AMONG = 8, 1.0, 1000
    #: The most that is accepted at the number of jobs at which one is refused.
    ACCEPTED = 1.5

    def __init__(self) -> None:
        #: Jobs that ran, and whether it was refused. In a burst of refusals the first counts.
        self._answers: deque[tuple[int, bool]] = deque(maxlen=self.AMONG)
        self._refused_at = -float("inf")

    def accepted(self, running: int) -> None:
        self._answers.append((running, False))

    def refused(self, sent_at: float, running: int) -> int | None:
        """The number of jobs, if it is clear that that is what is limited."""
        if sent_at < self._refused_at + self.APART:
            return None
        self._refused_at = sent_at
        self._answers.append((running, True))
        return self._number()

    def _number(self) -> int | None:
        refusals = [place for place, (_, refused) in enumerate(self._answers) if refused][-self.COUNT :]
        if len(refusals) < self.COUNT:
            return None
        since = list(self._answers)[refusals[0] :]
        at = sorted(running for running, refused in since if refused)
        number = at[(self.COUNT - 1) // 2]
        accepted = sum(running >= number for running, refused in since if not refused)
        few = accepted <= self.ACCEPTED * sum(running >= number for running in at)
        return number if few and _is_steady(at) else None


@dataclass(slots=True)
class _Operation:
    """The jobs and creates of one operation."""

    limit: JobLimit
    #: Shares one limit with the other operations that do.
    shares: bool = True
    #: Jobs that were accepted and are not known to have ended; creates that may be sent; those that are out.
    running: int = 0
    claimed: int = 0
    out: int = 0
    #: First what comes first.
    waiting: list[tuple[int, bool, int, asyncio.Future[bool]]] = field(default_factory=list)
    #: While no limit is known.
    refusals: Refusals = field(default_factory=Refusals)
    #: At the last refusals that came after something was accepted: its own jobs, and all that share a limit.
    counts: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=4))
    has_accepted: bool = False

    @property
    def carried(self) -> int:
        return self.running + self.out

    def was_refused(self, own: int, shared: int) -> None:
        if self.has_accepted:
            self.has_accepted = False
            self.counts.append((own, shared))

    def steady(self) -> tuple[bool, bool]:
        """Whether its own jobs were as many at each of the last refusals, and whether all were."""
        own, shared = zip(*self.counts, strict=True)
        return _is_steady(own), _is_steady(shared)


@dataclass(slots=True)
class Claim:
    """The right to send one create, until it was answered or will not be sent."""

    operation: _Operation
    #: It goes though the limit is reached.
    is_overdue: bool = False
    sent_at: float | None = None
    #: The jobs that ran when it was sent: of its own operation, and of all that share a limit.
    own: int = 0
    shared: int = 0

    @property
    def running(self) -> int:
        return self.shared if self.operation.shares else self.own


class JobLimits:
    """Limits of jobs at once: of all operations together, or of one by itself.

    A limit belongs to what is as many at each refusal: all jobs, or those of the operation.
    """

    #: So many refusals tell whose limit it is.
    ENOUGH = 3
    #: After so many seconds in which no create went one goes all the same: jobs may hang, and limits be wrong.
    LONGEST = 240.0

    def __init__(self, *, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._admitted_at = clock()
        self._look: asyncio.TimerHandle | None = None
        self._shared, self._refusals = JobLimit(clock), Refusals()
        self._operations = defaultdict[str, _Operation](lambda: _Operation(JobLimit(clock)))
        #: By their IDs, what runs.
        self._jobs: dict[str, _Operation] = {}
        self._numbers = itertools.count()

    async def claim(self, operation: str, stage: Stage, *, again: bool = False) -> Claim:
        """Wait until one more job may run. What finishes something goes first; then what is sent `again`."""
        claim = Claim(self._operations[operation])
        turn = asyncio.get_running_loop().create_future()
        place = -list(Stage).index(stage), not again, next(self._numbers), turn
        heapq.heappush(claim.operation.waiting, place)
        self._admit()
        try:
            claim.is_overdue = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(claim)
            raise
        return claim

    @property
    def sent(self) -> int:
        """Creates that were sent and not answered yet."""
        return sum(operation.out for operation in self._operations.values())

    def release(self, claim: Claim) -> None:
        """It was answered, or will not be sent."""
        claim.operation.claimed -= 1
        claim.operation.out -= claim.sent_at is not None
        self._admit()

    def may_send(self, claim: Claim) -> bool:
        """False when a limit was learned since it was claimed, and is reached."""
        carried = sum(one.carried for one in self._sharing(claim.operation))
        return claim.is_overdue or carried < self._limit(claim.operation).most

    def send(self, claim: Claim) -> None:
        operation = claim.operation
        claim.sent_at, claim.own = self._clock(), operation.carried
        claim.shared = sum(one.carried for one in self._operations.values() if one.shares or one is operation)
        operation.out += 1

    def accepted(self, claim: Claim, job_id: str | None) -> None:
        """`job_id`: of the job that runs now, if any."""
        operation = claim.operation
        operation.has_accepted = True
        self._refusals.accepted(claim.shared)
        operation.refusals.accepted(claim.own)
        self._limit(operation).accepted(claim.running)
        if job_id is not None:
            self._follow(job_id, operation)

    def refused(self, claim: Claim) -> bool:
        """Answered 429. False when that cannot be for the jobs that run, as far as is known."""
        assert claim.sent_at is not None
        operation = claim.operation
        operation.was_refused(claim.own, claim.shared)
        if not self._limit(operation).known:
            return self._suspect(claim, claim.sent_at)
        self._choose(operation)
        return self._limit(operation).refused(claim.sent_at, claim.running)

    def find(self, claim: Claim) -> bool:
        """A lower rate did not help at all: there are too many jobs, if there are any."""
        running = sum(one.running for one in self._sharing(claim.operation))
        if running:
            self._limit(claim.operation).find(running)
        return running > 0

    def follow(self, job_id: str, operation: str) -> None:
        """The job runs, whoever began it."""
        self._follow(job_id, self._operations[operation])

    def ended(self, job_id: str) -> None:
        if operation := self._jobs.pop(job_id, None):
            operation.running -= 1
            self._admit()

    def _follow(self, job_id: str, operation: _Operation) -> None:
        if job_id not in self._jobs:
            self._jobs[job_id] = operation
            operation.running += 1

    def _suspect(self, claim: Claim, sent_at: float) -> bool:
        """Whether the last refusals were for the jobs that run."""
        operation = claim.operation
        number = self._refusals.refused(sent_at, claim.shared)
        own = operation.refusals.refused(sent_at, claim.own)
        if number is None and own is not None and not operation.steady()[1]:
            number, operation.shares = own, False
        if number is not None:
            self._limit(operation).find(number)
        return number is not None

    def _choose(self, operation: _Operation) -> None:
        """Whose limit it is: of the operation, or of all."""
        if len(operation.counts) < self.ENOUGH:
            return
        own, shared = operation.steady()
        if own != shared and operation.shares is own:
            operation.shares = shared
            self._limit(operation).find(min(counts[shared] for counts in operation.counts))

    def _sharing(self, operation: _Operation) -> list[_Operation]:
        return [one for one in self._operations.values() if one.shares] if operation.shares else [operation]

    def _limit(self, operation: _Operation) -> JobLimit:
        return self._shared if operation.shares else operation.limit

    def _is_free(self, operation: _Operation) -> bool:
        sharing = self._sharing(operation)
        return sum(one.running + one.claimed for one in sharing) < self._limit(operation).most

    def _admit(self) -> None:
        """All go that may, in their order."""
        while waiting := [one for one in self._operations.values() if one.waiting]:
            is_overdue = self._clock() - self._admitted_at >= self.LONGEST
            free = waiting if is_overdue else [one for one in waiting if self._is_free(one)]
            if not free:
                self._look_again_later()
                return
            operation = min(free, key=lambda one: one.waiting[0][:3])
            *_, turn = heapq.heappop(operation.waiting)
            if not turn.done():
                operation.claimed += 1
                self._admitted_at = self._clock()
                turn.set_result(is_overdue)

    def _look_again_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(self.LONGEST / 8, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        self._admit()


def _is_steady(counts: Sequence[int]) -> bool:
    return max(counts) - min(counts) <= max(1.0, 0.1 * max(counts))
