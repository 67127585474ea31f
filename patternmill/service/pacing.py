"""Load on the service: a window of jobs, rates of requests, a circuit breaker, and the stop that ends all waits."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum

from patternmill.states import Stage

#: Seconds of a clock that never runs backward.
Clock = Callable[[], float]


class Window:
    """The most jobs in flight at once. Overload halves it, success grows it back; products go first.

    A slot is occupied from before a create until its job ended. First come, first served within a stage.
    """

    #: Overload is so many signs of it among the last so many answers to creates.
    SIGNS, AMONG = 3, 30

    def __init__(self, ceiling: int, *, clock: Clock = time.monotonic) -> None:
        self._ceiling = ceiling
        self._clock = clock
        self._limit = float(ceiling)
        #: Below this, growth is fast: that much has been carried before.
        self._proven = float(ceiling)
        self._shrunk_at = -float("inf")
        self._recent: deque[bool] = deque(maxlen=self.AMONG)
        self._occupied = 0
        self._waiting: dict[Stage, deque[asyncio.Future[None]]] = {
            Stage.PRODUCT: deque(),
            Stage.PATTERN: deque(),
        }

    @property
    def limit(self) -> int:
        return int(self._limit)

    async def acquire(self, stage: Stage) -> None:
        """Wait for a slot. Cancelled while waiting, it occupies none."""
        if self._occupied < self.limit and not any(self._waiting.values()):
            self._occupied += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[stage].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(turn, stage)
            raise

    def release(self) -> None:
        self._occupied -= 1
        self._admit()

    def accepted(self) -> None:
        """A create was accepted: one more at once, or a fraction of one near the point that was too much."""
        self._recent.append(False)
        step = 1.0 if self._limit < self._proven else 1.0 / self._limit
        self._limit = min(self._limit + step, float(self._ceiling))
        self._admit()

    def overloaded(self, sent_at: float) -> None:
        """A request sent at `sent_at` (by the same clock) was too much. Halves once for a whole round.

        One such answer among many successes is an accident and changes nothing.
        """
        if sent_at <= self._shrunk_at:
            return
        self._recent.append(True)
        if sum(self._recent) < self.SIGNS:
            return
        self._recent.clear()
        self._shrunk_at = self._clock()
        self._proven = max(1.0, 0.85 * self._limit)
        self._limit = max(1.0, self._limit / 2)

    def _admit(self) -> None:
        for turns in self._waiting.values():
            while turns and self._occupied < self.limit:
                turn = turns.popleft()
                if not turn.done():
                    self._occupied += 1
                    turn.set_result(None)

    def _leave(self, turn: asyncio.Future[None], stage: Stage) -> None:
        if turn.done() and not turn.cancelled():
            self.release()
        elif turn in self._waiting[stage]:
            self._waiting[stage].remove(turn)


class RateLimiter:
    """Requests a second, first come, first served. Adapts to a limit that is not configured by 429 answers.

    Below nine tenths of the rate that was last too much it grows fast, above slowly.
    """

    #: Growth with each request sent: at most a tenth, and a hundredth, a second.
    FAST, SLOW = 0.015, 0.0015
    CUT = 0.8
    #: The rate is too much at so many 429 among the last so many answers.
    SIGNS, AMONG = 2, 40

    def __init__(self, rate: float, *, clock: Clock = time.monotonic) -> None:
        self._most = rate
        self._floor = min(1.0, rate)
        self._clock = clock
        self._rate = rate
        self._too_much = float("inf")
        self._tokens = self._burst()
        self._filled_at = clock()
        self._paused_until = -float("inf")
        self._resumed_at = self._filled_at
        self._cut_at = -float("inf")
        self._accepted: deque[float] = deque(maxlen=256)
        self._recent: deque[bool] = deque(maxlen=self.AMONG)
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._pump_task: asyncio.Task[None] | None = None
        self._closed = False

    async def acquire(self) -> bool:
        """Wait for the turn to send one request. False once closed: then nothing may be sent."""
        if self._closed:
            return False
        if not self._waiting and self._delay() <= 0:
            self._tokens -= 1
            return True
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._pump_task is None or self._pump_task.done():
            self._pump_task = asyncio.create_task(self._pump())
        return await turn

    def close(self) -> None:
        """No request is sent any more, waiting or later."""
        self._closed = True
        if self._pump_task is not None:
            self._pump_task.cancel()
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(False)

    def accepted(self) -> None:
        self._recent.append(False)
        self._accepted.append(self._clock())

    def limited(self, sent_at: float, pause: float) -> None:
        """A request sent at `sent_at` was answered 429: no request for `pause` seconds, then slower."""
        self._slow_down(sent_at)
        self._paused_until = max(self._paused_until, self._clock() + pause)
        self._resumed_at = max(self._resumed_at, self._paused_until)

    def _slow_down(self, sent_at: float) -> None:
        now = self._clock()
        if sent_at <= self._cut_at:
            return
        self._recent.append(True)
        if sum(self._recent) < self.SIGNS:
            return
        self._recent.clear()
        self._fill(now)
        self._too_much = self._rate
        self._rate = max(self._floor, self._cut(now))
        self._cut_at = now
        self._tokens = min(self._tokens, 0.0)

    def _cut(self, now: float) -> float:
        """The next rate. After a cut that did not help, from what was served since rather than in steps."""
        since = max(now - 5.0, self._resumed_at)
        if now - since >= 1.0:
            return min(self._rate * self.CUT, sum(at > since for at in self._accepted) / (now - since))
        return self._rate * (self.CUT if now - self._cut_at > 10.0 else 0.5)

    def _burst(self) -> float:
        return max(1.0, self._rate / 20)

    def _fill(self, now: float) -> None:
        """Add tokens and raise the rate for the time that passed, pauses excepted."""
        since = max(self._filled_at, min(now, self._paused_until))
        passed = now - since
        self._filled_at = now
        if passed <= 0:
            return
        self._tokens = min(self._tokens + passed * self._rate, self._burst())
        fast = self._rate < 0.9 * self._too_much
        growth = self._rate * (self.FAST if fast else self.SLOW)
        self._rate = min(self._rate * (1 + min(growth, 0.1 if fast else 0.01) * min(passed, 1.0)), self._most)

    def _delay(self) -> float:
        now = self._clock()
        self._fill(now)
        if now < self._paused_until:
            return self._paused_until - now
        return max(0.0, (1.0 - self._tokens) / self._rate)

    async def _pump(self) -> None:
        while self._waiting:
            if self._waiting[0].done():  # cancelled while it waited
                self._waiting.popleft()
            elif (delay := self._delay()) > 1e-6:
                await asyncio.sleep(delay)
            else:
                self._tokens -= 1
                self._waiting.popleft().set_result(True)


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
