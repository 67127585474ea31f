"""The pace at which requests are sent, and the interrupt that ends all waits."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

#: A clock that never runs backward, in seconds.
Clock = Callable[[], float]
NEVER = float("inf")


class Pace:
    """A token bucket whose rate grows with each accepted request and is cut by a refusal (AIMD).

    A cut is small after many accepted requests and large after few, and larger where a refusal costs a pause.
    Decision 0010 says why; docs/reliability.md has the figures.
    """

    #: After n accepted requests a cut leaves (n + 1) / (n + 1 + CUT * cost) of the rate, and the rate is what it was
    #: after BACK * cost more. The cost of a refusal is 1, and PAUSED for each second of the pause that it asks for.
    CUT, BACK, PAUSED = 3.0, 50.0, 1.5
    #: The lowest rate, in requests a second.
    SLOWEST = 0.2
    #: The fewest seconds between two wake-ups: at a high rate several requests go together, as a wake-up costs more.
    LOOK = 0.02

    def __init__(self, rate: float, *, clock: Clock = time.monotonic) -> None:
        """Begin at the highest rate, in requests a second."""
        self._clock = clock
        self._fastest = self._rate = self._refused_at = rate
        #: By how much an accepted request raises the rate, and how many were accepted since the last cut.
        self._step, self._accepted, self._cut_at = 0.0, 0, -NEVER
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._filled_at, self._paused_until = clock(), -NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._tokens = self._burst()

    @property
    def rate(self) -> float:
        """Return the requests a second that may be sent now."""
        return min(self._rate, self._fastest)

    def limit(self, rate: float) -> None:
        """Send at most so many requests a second from now on."""
        self._fastest = rate

    async def acquire(self, since: float = 0.0) -> None:
        """Wait for a turn: whoever has waited `since` an earlier moment goes first, otherwise in order."""
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (since, next(self._numbers), turn))
        self._admit()
        await turn

    def accepted(self, sent_at: float) -> None:
        """Raise the rate, unless nobody waits for it."""
        if sent_at < self._cut_at:
            return
        self._accepted += 1
        if self._waiting:
            self._fill()
            self._rate = min(self._rate + self._step, self._fastest)

    def refused(self, sent_at: float, pause: float = 0.0) -> None:
        """Send nothing for `pause` seconds, then more slowly. A request from before the last cut causes no new one."""
        self._fill()
        self._paused_until = max(self._paused_until, self._clock() + pause)
        if sent_at >= self._cut_at:
            self._cut(1 + self.PAUSED * pause)

    def _cut(self, cost: float) -> None:
        top, n = self.rate, self._accepted
        # Without an acceptance in between, as in an outage, the rate returns to what it was before the first cut.
        self._refused_at = top if n else self._refused_at
        self._rate = max(self.SLOWEST, top * (n + 1) / (n + 1 + self.CUT * cost))
        self._step = max(0.0, self._refused_at - self._rate) / (self.BACK * cost)
        self._accepted, self._cut_at = 0, max(self._clock(), self._paused_until)
        self._tokens = min(self._tokens, 0.0)

    def _burst(self) -> float:
        return max(1.0, self.rate / 20)

    def _fill(self) -> None:
        """Add tokens for the time that passed, pauses excepted."""
        now = self._clock()
        seconds = now - max(self._filled_at, min(now, self._paused_until))
        self._filled_at = now
        self._tokens = min(self._tokens + seconds * self.rate, self._burst())

    def _admit(self) -> None:
        """Let whoever may go now go, and look again when the next one may."""
        while self._waiting:
            if self._waiting[0][-1].done():  # cancelled
                heapq.heappop(self._waiting)
                continue
            self._fill()
            delay = max(self._paused_until - self._clock(), (1.0 - self._tokens) / self.rate)
            if delay > 1e-6:
                self._look_after(max(delay, self.LOOK))
                return
            self._tokens -= 1
            heapq.heappop(self._waiting)[-1].set_result(None)

    def _look_after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._admit()


class Interrupt:
    """An interrupt that, once begun, ends every wait inside a `guard`, then and later."""

    def __init__(self) -> None:
        #: The guards that are open, in the order in which they were entered and are ended.
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
        """Cancel what is awaited inside, and raise TimeoutError, when the interrupt comes first."""
        async with asyncio.timeout(0 if self.begun else None) as guard:
            self._guards[guard] = None
            try:
                yield
            finally:
                self._guards.pop(guard, None)
