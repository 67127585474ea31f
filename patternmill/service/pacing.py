"""Load on the service: a window of jobs, the pace of each operation, a circuit breaker, and the stop of all waits."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum

from patternmill.states import Stage

#: Seconds of a clock that never runs backward.
Clock = Callable[[], float]
NEVER = float("inf")


class Window:
    """The most jobs in flight at once. What finishes something goes first; otherwise first come, first served.

    A slot is occupied from before a create until its job ended.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self.occupied = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    @property
    def is_full(self) -> bool:
        return self.occupied >= self._most

    async def acquire(self, stage: Stage = Stage.PATTERN, *, again: bool = False) -> None:
        """Wait for a slot; what is sent `again` goes first in its stage. Cancelled while waiting, it occupies none."""
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
        self.admit()

    def admit(self) -> None:
        while self._waiting and self._may_admit():
            turn = heapq.heappop(self._waiting)[-1]
            if not turn.done():
                self.occupied += 1
                turn.set_result(None)
                self._admitted()

    def _may_admit(self) -> bool:
        return not self.is_full

    def _admitted(self) -> None:
        """One more has a slot."""


class Pace(Window):
    """How fast one operation is sent: AIMD, learned from what the service refuses.

    A refusal lowers the rate to what is accepted, and requests that had to wait for their turn raise it again. While
    jobs at once are too many, what is refused is learned by their `JobLimit` instead.
    """

    #: After a cut: this much of what is accepted. Fewer answers since the last cut mean no other.
    CUT, ANSWERS = 0.97, 4
    #: A rate by which so many requests could have gone, and less than half of them were accepted, was not made use of.
    ENOUGH = 12
    #: From a cut until the rate grows: requests, seconds, pauses (a refusal costs one); but fewer after few answers.
    REQUESTS, SECONDS, PAUSES, BY_EACH = 40, 2.0, 20.0, 4
    #: How much faster it grows after as many requests again, and at most: for one request, and in one second.
    GROWTH, MOST, MOST_A_SECOND = 0.01, 0.03, 0.7
    #: Failures are too many at such a moving average of the last answers.
    FAILING, MEMORY = 0.08, 0.97
    #: Requests a second: at least, and after an outage.
    SLOWEST, FIRST = 0.5, 1.0
    #: Seconds between two looks at who may be sent: at a high rate several go together, as a wake-up costs more.
    LOOK = 0.02
    #: After so many seconds without a create one goes all the same: jobs may hang.
    PATIENCE = 240.0

    def __init__(
        self,
        rate: float,
        *,
        at_once: float = NEVER,
        jobs: JobLimit | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """`rate`: requests a second, at most and at first. `jobs`: the limit that it shares with other operations."""
        super().__init__(at_once)
        self._clock = clock
        self.rate = self._fastest = rate
        #: The last rate that went well: up to it the rate doubles each second.
        self._good = rate
        self.jobs = jobs or JobLimit(clock)
        self.jobs.paces.append(self)
        #: Jobs that were accepted and are not known to have ended.
        self.running = 0
        self._tokens, self._filled_at, self._admitted_at = self._burst(), clock(), clock()
        self._paused_until = -NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for_rate = False
        self._failing = 0.0
        #: Of the requests since the last cut: answers, and those that waited for their turn, up to `hold` at no growth.
        self._cut_at = clock()
        self._accepted = self._refused = self._waited = 0
        self._hold: float = self.REQUESTS

    @property
    def is_full(self) -> bool:
        return super().is_full or self.jobs.is_full

    @property
    def place(self) -> int:
        """Of what goes next; lower goes first."""
        return self._waiting[0][0] if self._waiting else 1

    def limit(self, rate: float) -> None:
        """At most so many requests a second from now on."""
        is_learned = self.rate < self._fastest
        self._fastest = rate
        self.rate = min(self.rate, rate) if is_learned else rate
        self._good = min(self._good, rate) if is_learned else rate

    def release(self) -> None:
        self.occupied -= 1
        self.jobs.admit()

    def began(self) -> None:
        """A job occupies a slot until it ended."""
        self.running += 1
        self.occupied += 1

    def ended(self) -> None:
        self.running -= 1
        self.release()

    # -- what is answered

    def accepted(self, sent_at: float) -> None:
        self._failing *= self.MEMORY
        self._accepted += sent_at >= self._cut_at
        self.jobs.accepted()

    def refused(self, sent_at: float, pause: float = 0.0) -> None:
        """Answered 429: nothing is sent for `pause` seconds, and then less, or with fewer jobs running."""
        cut_at, was_known = self._cut_at, self.jobs.is_known
        self._fill()
        self._paused_until = max(self._paused_until, self._clock() + pause)
        if self.jobs.refused(self, sent_at, pause):
            if not was_known:  # what was learned of the rate was not about it
                self._good = self._fastest
                self._cut_to(self._fastest, pause)
        elif sent_at >= cut_at:
            self._refused += 1
            self._slow_down(pause)

    def failed(self, sent_at: float) -> None:
        """Answered 503, or not at all. One such answer among many is an accident."""
        self._failing = self._failing * self.MEMORY + 1 - self.MEMORY
        if sent_at < self._cut_at:
            return
        self._refused += 1
        if not self._accepted:
            self._cut_to(min(self.rate, self.FIRST), 0.0)
        elif self._failing >= self.FAILING:
            self._cut_to_share(0.0)

    def _slow_down(self, pause: float) -> None:
        seconds = self._clock() - self._cut_at
        possible = self.rate * seconds
        if possible >= self.ENOUGH and 0 < 2 * self._accepted < possible:
            self._good = min(self._good, self.rate / 2)
            self._cut_to(2 * self._accepted / max(seconds, 1.0), pause)
        elif self._accepted + self._refused >= self.ANSWERS:
            if self._accepted:
                self._cut_to_share(pause)
            else:
                self._cut_to(self.rate / 2, pause)

    def _cut_to_share(self, pause: float) -> None:
        """The share that was accepted; few answers mean little."""
        share = 1.0 - self._refused / (self._accepted + self._refused + self.ANSWERS)
        self._good = self.CUT * share * self.rate
        self._cut_to(self._good, pause)

    def _cut_to(self, rate: float, pause: float) -> None:
        self.rate = max(rate, min(self.SLOWEST, self._fastest))
        hold = max(self.REQUESTS, self.PAUSES * pause * self.rate)
        self._hold = max(min(hold, self.BY_EACH * max(self._accepted, 3)), self.SECONDS * self.rate)
        self._tokens = min(self._tokens, 0.0)
        self._cut_at = max(self._clock(), self._paused_until)
        self._accepted = self._refused = self._waited = 0

    # -- who goes

    def _burst(self) -> float:
        return max(1.0, self.rate / 20)

    def _fill(self) -> None:
        """Add tokens for the time that passed, pauses excepted."""
        now = self._clock()
        seconds = now - max(self._filled_at, min(now, self._paused_until))
        self._filled_at = now
        if self._accepted and self.rate < self._good:
            self.rate = min(self.rate * 2.0**seconds, self._good)
        self._tokens = min(self._tokens + seconds * self.rate, self._burst())

    def _may_admit(self) -> bool:
        self._fill()
        now = self._clock()
        slow = max(self._paused_until - now, (1.0 - self._tokens) / self.rate)
        full = self._admitted_at + self.PATIENCE - now if self.is_full else 0.0
        self._waits_for_rate = self._waits_for_rate or slow > full
        delay = max(slow, full)
        if delay > 1e-6:
            self._look_after(max(delay, self.LOOK))
        return delay <= 1e-6

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

    def _admitted(self) -> None:
        self._tokens -= 1
        self._admitted_at = self._clock()
        if self._waits_for_rate:
            self._waited += 1
            if self._waited > self._hold and self.rate >= self._good:
                growth = self.GROWTH * (self._waited / self._hold - 1.0)
                faster = 1.0 + min(growth, self.MOST, self.MOST_A_SECOND / self.rate)
                self.rate = self._good = min(faster * self.rate, self._fastest)
        self._waits_for_rate = self._waits_for_rate and bool(self._waiting)


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
        #: Of each operation the last refusals: when, and how many jobs ran, its own and all.
        self._counts = defaultdict[Pace, deque[tuple[float, int, int]]](lambda: deque(maxlen=self.SIGNS))

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
        counts = self._counts[pace]
        if not counts or now >= counts[-1][0] + self.APART:
            counts.append((now, pace.running, running))
        if not running or (self._refusals < self.SIGNS and running + self.LESS < self.NEAR * self._most):
            return False
        if self._is_of_one(pace):
            self.paces.remove(pace)
            pace.jobs = JobLimit(self._clock)
            pace.jobs.paces.append(pace)
            pace.jobs._lower(pace.running, pause)
        elif sent_at > self._lowered_at:
            self._lower(running, pause)
        return True

    def _is_of_one(self, pace: Pace) -> bool:
        """Whether it was refused with as many jobs of its own each time, though more of all ran."""
        _, own, every = zip(*self._counts[pace], strict=True)
        return len(own) == self.SIGNS and max(own) - min(own) <= 1 and every[-1] > every[0] + 1

    def _lower(self, running: int, pause: float) -> None:
        rose = running > self.FAR * self._before_trial + self.LESS
        most = running if rose else min(self._before_trial + 1, running)
        self._most = self._before_trial = max(1.0, most)
        self._accepted, self._trial = 0, max(self.TRIAL * (1 + pause), self.SHARE * self._most)
        self._refusals, self._lowered_at = 0, self._clock()


class BreakerState(StrEnum):
    CLOSED = "closed"
    #: No create goes out.
    OPEN = "open"
    #: One create is out, as a probe.
    PROBING = "probing"


class Breaker:
    """Stops creates while the service fails again and again, and sends a probe now and then.

    Any success, of a poll too, closes it. After `patience` seconds without one it is `hopeless`.
    """

    def __init__(
        self,
        *,
        failures: int = 10,
        patience: float = 600.0,
        first_pause: float = 1.0,
        longest_pause: float = 30.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._allowed = failures
        self._patience = patience
        self._first_pause, self._longest_pause = first_pause, longest_pause
        self._clock = clock
        self._failures = 0
        self._opened_at = 0.0
        self._pause = first_pause
        self._probe_at = 0.0
        self._changed = asyncio.Event()
        self.state = BreakerState.CLOSED
        self.last_success: float | None = None

    @property
    def hopeless(self) -> bool:
        return self.state is not BreakerState.CLOSED and self._clock() - self._opened_at >= self._patience

    async def ready(self) -> bool:
        """Wait until a create may go out. False when hopeless: then none may."""
        while not self.hopeless:
            if self.state is BreakerState.CLOSED:
                return True
            # Also when a probe was sent so long ago that it cannot come back.
            if self._clock() >= self._probe_at:
                self.state = BreakerState.PROBING
                self._probe_at = self._clock() + self._longest_pause
                return True
            # Until the state changes, or it is time for a probe.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, self._probe_at - self._clock())):
                    await self._changed.wait()
        return False

    def succeeded(self) -> None:
        self._failures = 0
        self.last_success = self._clock()
        if self.state is not BreakerState.CLOSED:
            self._pause = self._first_pause
            self._change_to(BreakerState.CLOSED)

    def failed(self) -> None:
        self._failures += 1
        if self.state is BreakerState.CLOSED and self._failures >= self._allowed:
            self._opened_at = self._clock()
            self._open()
        elif self.state is BreakerState.PROBING:
            self._pause = min(self._pause * 2, self._longest_pause)
            self._open()

    def _open(self) -> None:
        self._probe_at = self._clock() + self._pause
        self._change_to(BreakerState.OPEN)

    def _change_to(self, state: BreakerState) -> None:
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()


class Interrupt:
    """Once begun, it ends every wait inside of a `guard`, then and later."""

    def __init__(self) -> None:
        self._guards: set[asyncio.Timeout] = set()
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
            self._guards.add(guard)
            try:
                yield
            finally:
                self._guards.discard(guard)
