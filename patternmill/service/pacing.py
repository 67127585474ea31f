"""Load on the service: the pace of each operation, the jobs at once, and the stop of all waits."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from patternmill.states import Stage

#: Seconds of a clock that never runs backward.
Clock = Callable[[], float]
NEVER = float("inf")


class Pace:
    """How fast one operation is sent: a token bucket whose rate is learned from what the service refuses.

    A refusal cuts the rate: by little after many requests that were accepted, by much after few, and then it grows with
    each request that waits for it. What each number holds is in decision 0029.
    """

    #: After n accepted requests a cut leaves (n + 1) / (n + 1 + CUT * (0.5 + pause)) of the rate; a quarter of them
    #: counts for the next cut too.
    CUT, CARRIED = 4.0, 0.25
    #: A rate by which over so many requests, and twice those accepted, could have gone was not made use of: it is cut
    #: to so many times what was.
    ENOUGH, USED = 12.0, 2.0
    #: Until the rate is again what it was: requests, or more where a refusal costs a pause; but no more than so many
    #: for each accepted one, and no fewer than go in so many seconds.
    REQUESTS, PAUSES, BY_EACH, SECONDS = 40.0, 30.0, 4.0, 2.0
    #: So many failures in a row are an outage: then so many requests a second go, and once one is accepted twice as
    #: many each second, up to what went well before.
    OUTAGE, PROBES = 10, 0.25
    #: Requests a second, at least.
    SLOWEST = 0.5
    #: Seconds between two looks at who may be sent: at a high rate several go together, as a wake-up costs more.
    LOOK = 0.02

    def __init__(
        self,
        rate: float,
        *,
        at_once: float = NEVER,
        jobs: JobLimit | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """`rate`: requests a second, at most and at first. `jobs`: the limit that it shares with other operations."""
        self._most, self.occupied = at_once, 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._clock, self._fastest = clock, rate
        self.jobs = jobs or JobLimit(clock)
        self.jobs.paces.append(self)
        #: Jobs that were accepted and are not known to have ended.
        self.running = 0
        #: The last refusals: when, and how many jobs ran, its own and all that share the limit.
        self.counts = deque[tuple[float, int, int]](maxlen=JobLimit.SIGNS)
        self._ramp, self._failures = NEVER, 0
        self._filled_at, self._paused_until = clock(), -NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for_rate = False
        self._forget()
        self._tokens = self._burst()

    def _forget(self) -> None:
        #: Requests a second, and what that is multiplied with for each request that waits for it.
        self._learned, self._growth = NEVER, 1.0
        #: Requests that were accepted since.
        self._cut_at, self._accepted = self._clock(), 0.0

    @property
    def rate(self) -> float:
        """Requests a second."""
        return min(max(self._learned, self.SLOWEST), self._ramp, self._fastest)

    @property
    def is_full(self) -> bool:
        return self.occupied >= self._most or self.jobs.is_full

    @property
    def place(self) -> int:
        """Of what goes next; lower goes first."""
        return self._waiting[0][0] if self._waiting else 1

    def limit(self, rate: float) -> None:
        """At most so many requests a second from now on."""
        self._fastest = rate

    async def acquire(self, stage: Stage = Stage.PATTERN, *, again: bool = False) -> None:
        """Wait for a turn: what finishes something first, what is sent `again` first in its stage, else in order.

        It occupies a slot until `release`; cancelled while waiting, none.
        """
        turn = asyncio.get_running_loop().create_future()
        place = -2 * list(Stage).index(stage) - again
        heapq.heappush(self._waiting, (place, next(self._numbers), turn))
        self.admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        self.occupied -= 1
        self.jobs.admit()

    def admit(self) -> None:
        """Let go whoever may go now."""
        while self._waiting and self._may_admit():
            turn = heapq.heappop(self._waiting)[-1]
            if not turn.done():
                self.occupied += 1
                turn.set_result(None)
                self._tokens -= 1
                self._learned *= self._growth if self._waits_for_rate else 1.0
                self._waits_for_rate = self._waits_for_rate and bool(self._waiting)

    def began(self) -> None:
        """A job occupies a slot until it ended."""
        self.running += 1
        self.occupied += 1

    def ended(self) -> None:
        self.running -= 1
        self.release()

    # -- what is answered

    def accepted(self, sent_at: float) -> None:
        self._failures = 0
        self._accepted += sent_at >= self._cut_at
        self.jobs.accepted()

    def refused(self, sent_at: float, pause: float = 0.0) -> None:
        """Answered 429: nothing is sent for `pause` seconds, and then less, or with fewer jobs running."""
        self._fill()
        self._paused_until = max(self._paused_until, self._clock() + pause)
        known = self.jobs if self.jobs.is_known else None
        if self.jobs.refused(self, sent_at, pause):
            if self.jobs is not known:  # what was learned of the rate was not about it
                self._forget()
        elif sent_at >= self._cut_at:
            self._cut(pause)

    def failed(self, sent_at: float, *, overloaded: bool = False) -> None:
        """Not answered well. `overloaded`: by 503 or not in time."""
        self._fill()
        self._failures += 1
        if self._failures >= self.OUTAGE:
            self._ramp = self.PROBES
            self._tokens = min(self._tokens, 0.0)
        elif overloaded and self._failures == 1 and sent_at >= self._cut_at:
            self._cut(0.0)

    def _cut(self, pause: float) -> None:
        top, n, seconds = self.rate, self._accepted, self._clock() - self._cut_at
        left = (n + 1) / (n + 1 + self.CUT * (0.5 + pause))
        self._learned = top * left
        if top * seconds > max(self.ENOUGH, 2 * n):  # so high a rate was not made use of
            self._learned = min(self._learned, self.USED * (n + 1) / max(seconds, 1.0))
        hold = min(max(self.REQUESTS, self.PAUSES * pause * top), self.BY_EACH * max(n, 1))
        self._growth = max(left, 0.5) ** (-1.0 / max(hold, self.SECONDS * self._learned))
        self._cut_at, self._accepted = max(self._clock(), self._paused_until), n * self.CARRIED
        self._tokens = min(self._tokens, 0.0)

    # -- who goes

    def _burst(self) -> float:
        return max(1.0, self.rate / 20)

    def _fill(self) -> None:
        """Add tokens for the time that passed, pauses excepted."""
        now = self._clock()
        seconds = now - max(self._filled_at, min(now, self._paused_until))
        self._filled_at = now
        if self._ramp < NEVER and not self._failures:
            self._ramp *= 2.0**seconds
            if self._ramp >= self._fastest:
                self._ramp = NEVER
        self._tokens = min(self._tokens + seconds * self.rate, self._burst())

    def _may_admit(self) -> bool:
        if self.is_full:
            return False
        self._fill()
        delay = max(self._paused_until - self._clock(), (1.0 - self._tokens) / self.rate)
        if delay <= 1e-6:
            return True
        self._waits_for_rate = True
        self._look_after(max(delay, self.LOOK))
        return False

    def _look_after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self.admit()


class JobLimit:
    """The most jobs at once of all operations that share it, once it is known that there is such a limit.

    It is known when nothing is accepted for a while, at any rate. A refusal lowers it to the jobs that run. Now and
    then one more job is tried, and more as long as they are accepted.
    """

    #: So many refusals in a row, so many seconds apart, mean the jobs, and so many tell whose they are.
    SIGNS, APART = 3, 1.0
    #: Once it is known, a refusal at such a share of the most is for the jobs, or at that less so many.
    NEAR, LESS = 0.8, 2
    #: Creates that are accepted with the most jobs running before one more is tried: so many, more where each refusal
    #: costs a pause, and at least this share of the most.
    TRIAL, SHARE = 20, 0.5
    #: A trial that came so far found a limit that rose. Else it met jobs that had ended before that was known.
    FAR = 1.2

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.paces: list[Pace] = []
        self._most = self._before_trial = NEVER
        self._accepted, self._trial = 0, 0.0
        self._lowered_at = self._refused_at = -NEVER
        self._refusals = 0

    @property
    def is_known(self) -> bool:
        return self._most < NEVER

    @property
    def is_full(self) -> bool:
        return self.is_known and sum(pace.occupied for pace in self.paces) >= self._most

    def admit(self) -> None:
        for pace in sorted(self.paces, key=lambda pace: pace.place):
            pace.admit()

    def accepted(self) -> None:
        self._refusals = 0
        if self.is_full:
            self._accepted += 1
            if self._accepted > self._trial:
                self._most += 1

    def refused(self, pace: Pace, sent_at: float, pause: float) -> bool:
        """Whether that is for the jobs that run."""
        now, running = self._clock(), sum(each.running for each in self.paces)
        if now >= self._refused_at + self.APART:
            self._refusals, self._refused_at = self._refusals + 1, now
        if not pace.counts or now >= pace.counts[-1][0] + self.APART:
            pace.counts.append((now, pace.running, running))
        is_near = self.is_known and running + self.LESS >= self.NEAR * self._most
        if running and self._is_of_one(pace, is_near):
            self.paces.remove(pace)
            pace.jobs = JobLimit(self._clock)
            pace.jobs.paces.append(pace)
            pace.jobs._lower(pace.running, pause)
            return True
        if not running or (self._refusals < self.SIGNS and not is_near):
            return False
        if sent_at > self._lowered_at:
            self._lower(running, pause)
        return True

    def _is_of_one(self, pace: Pace, is_near: bool) -> bool:
        """Whether it was refused with as many jobs of its own each time, though more of all ran, or few."""
        _, own, every = zip(*pace.counts, strict=True)
        is_steady = len(own) == self.SIGNS and max(own) - min(own) <= 1
        return is_steady and self.is_known and own[-1] > 0 and (every[-1] > every[0] + 1 or not is_near)

    def _lower(self, running: int, pause: float) -> None:
        rose = running > self.FAR * self._before_trial + self.LESS
        most = running if rose else min(self._before_trial + 1, running)
        self._most = self._before_trial = max(1.0, most)
        self._accepted, self._trial = 0, max(self.TRIAL * (1 + pause), self.SHARE * self._most)
        self._refusals, self._lowered_at = 0, self._clock()


class Interrupt:
    """Once begun, it ends every wait inside of a `guard`, then and later."""

    def __init__(self) -> None:
        #: In the order in which they were entered, and are ended.
        self._guards: dict[asyncio.Timeout, None] = {}
        self.begun = False

    def begin(self) -> None:
        self.begun = True
        for guard in self._guards:
            if not guard.expired():
                guard.reschedule(asyncio.get_running_loop().time())
        self._guards.clear()

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """What is awaited inside is cancelled, and TimeoutError raised, when the interrupt comes first."""
        async with asyncio.timeout(0 if self.begun else None) as guard:
            self._guards[guard] = None
            try:
                yield
            finally:
                self._guards.pop(guard, None)
