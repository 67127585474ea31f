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
        #: What finishes something goes first.
        self._waiting: dict[Stage, deque[asyncio.Future[None]]] = {
            stage: deque() for stage in reversed(Stage)
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
    """Requests a second, first come, first served. Learns a limit that is not configured from 429 answers.

    The rate follows CUBIC (RFC 9438), counted in requests rather than in time: it is cut to a little below what the
    service accepted, returns to that ever more slowly, and then leaves it ever faster. Only requests that had to wait
    for their turn raise it: a rate that was not made use of proves nothing.
    """

    #: After a cut: this share of the rate that was accepted, which is at least half of the one that was too much;
    #: less, when a 429 costs a pause.
    CUT, CUT_IF_PAUSED, LEAST = 0.93, 0.89, 0.5
    #: Soon after a pause, in which a service saves up what it accepts then: at least this share of what it accepts.
    SOON = 0.7
    #: Requests from a cut until the accepted rate is reached again: at least so many; those of so many seconds; those
    #: of so many pauses, for each 429 costs one. But not more than so many for each request that measured it.
    RETURN, SECONDS, PAUSES, BY_EACH = 60, 5.0, 10.0, 4
    #: A rate that was not made use of measures a limit as badly as so few requests.
    ROUGHLY = 3
    #: How fast it is left then: by this share of it after as many requests again, eight times that after twice as many.
    #: And how much faster than for the request before at most.
    PROBE, FASTEST = 0.2, 1.03
    #: A rate is too much at so many 429 among the last so many answers; at one, near a rate that was too much before.
    SIGNS, AMONG, NEAR = 2, 40, 0.97
    #: Seconds over which the accepted rate is measured. Cuts are as far apart as the shorter.
    SHORTEST, LONGEST = 1.0, 10.0
    #: Requests a second: the lowest rate.
    SLOWEST = 0.5
    #: Seconds between two looks at who may be sent: at a high rate several go together, as a wake-up costs more.
    LOOK = 0.02

    def __init__(self, rate: float, *, clock: Clock = time.monotonic) -> None:
        self._most = rate
        self._floor = min(self.SLOWEST, rate)
        self._clock = clock
        self._rate = rate
        #: Right after the last cut; what was accepted then; and the requests since then that had to wait.
        self._low, self._plateau, self._sent = rate, float("inf"), 0
        self._return: float = self.RETURN
        self._tokens = self._burst()
        self._filled_at = clock()
        self._paused_until = -float("inf")
        #: Seconds of all pauses, each to its end.
        self._paused = 0.0
        self._cut_at = -float("inf")
        #: By a clock that stands still in pauses: the last cut, or the first request; and what was accepted since.
        self._measured_from = float("inf")
        self._accepted: deque[float] = deque(maxlen=4096)
        #: What was counted for the last cut: requests, in so many seconds.
        self._counted: tuple[int, float] | None = None
        #: Seconds of the pause at the last cut.
        self._cost = 0.0
        #: When the rate was first cut since a request was last accepted.
        self._refusing_since = float("inf")
        self._recent: deque[bool] = deque(maxlen=self.AMONG)
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._pump_task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def rate(self) -> float:
        """Requests a second that may be sent now."""
        return self._rate

    def limit(self, rate: float) -> None:
        """At most so many requests a second from now on."""
        self._rate = rate if self._rate == self._most else min(self._rate, rate)
        self._most, self._floor = rate, min(self.SLOWEST, rate)

    async def acquire(self) -> bool:
        """Wait for the turn to send one request. False once closed: then nothing may be sent."""
        if self._closed:
            return False
        if self._measured_from == float("inf"):
            self._measured_from = self._unpaused() - self.SHORTEST
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

    def accepted(self, sent_at: float) -> None:
        """A request sent at `sent_at` was accepted."""
        self._refusing_since = float("inf")
        if sent_at > self._cut_at:
            self._recent.append(False)
            self._accepted.append(self._unpaused())
        elif self._counted:  # too late for the cut, which was too deep by this one
            count, seconds = self._counted
            self._counted = count + 1, seconds
            self._cut_to((count + 1) / seconds, self.ROUGHLY)

    def limited(self, sent_at: float, pause: float) -> bool:
        """A request sent at `sent_at` was answered 429: no request for `pause` seconds, then slower.

        False when a lower rate has not helped at all: then something else than the rate is too much.
        """
        self.pause(pause)
        if sent_at > self._cut_at:
            self._recent.append(True)
            if self._is_too_much():
                self._cut(pause)
        return sent_at < self._refusing_since + self.SHORTEST

    def forget(self) -> None:
        """What was learned of the rate was learned from answers that were not about it."""
        self._low = self._rate = self._most
        self._plateau, self._sent, self._return = float("inf"), 0, self.RETURN
        self._refusing_since = float("inf")
        self._counted = None
        self._cut_at, self._measured_from = self._clock(), self._unpaused()
        self._accepted.clear()
        self._recent.clear()

    def pause(self, seconds: float) -> None:
        """No request for so many seconds."""
        now = self._clock()
        self._fill(now)
        until = max(self._paused_until, now + seconds)
        self._paused += until - max(self._paused_until, now)
        self._paused_until = until

    def _unpaused(self) -> float:
        return max(self._clock(), self._paused_until) - self._paused

    def _is_too_much(self) -> bool:
        if self._unpaused() - self._measured_from < self.SHORTEST:
            return False
        return self._rate >= self.NEAR * self._plateau or sum(self._recent) >= self.SIGNS

    def _cut(self, pause: float) -> None:
        self._cost = pause
        if self._sent and not self._accepted:
            self._halve()
        elif self._sent:
            served = max(self._share_accepted(), self.LEAST) * self._rate
            self._counted = None
            self._cut_to(served, len(self._accepted))
        else:
            self._counted = self._count()
            self._cut_to(self._counted[0] / self._counted[1], self.ROUGHLY)
        self._tokens = min(self._tokens, 0.0)
        self._cut_at, self._measured_from = self._clock(), self._unpaused()
        self._accepted.clear()
        self._recent.clear()

    def _halve(self) -> None:
        """Nothing was accepted since the last cut: what the service will accept again is as it was."""
        self._refusing_since = min(self._refusing_since, max(self._clock(), self._paused_until))
        self._low = self._rate = max(self._rate / 2, self._floor)
        self._sent, self._return = 0, self.BY_EACH * self.ROUGHLY

    def _cut_to(self, served: float, requests: int) -> None:
        """Go below the rate that was accepted, as measured by so many requests, and begin to return to it."""
        self._plateau = min(max(served, self._floor / self.CUT_IF_PAUSED), self._most)
        self._low = self._rate = self._plateau * (self.CUT_IF_PAUSED if self._cost else self.CUT)
        self._sent = 0
        seconds = max(self.SECONDS, self.PAUSES * self._cost)
        self._return = min(
            max(self.RETURN, seconds * self._plateau), self.BY_EACH * max(requests, self.ROUGHLY)
        )

    def _share_accepted(self) -> float:
        """Of the last answers. Less, soon after a pause."""
        share = 1.0 - sum(self._recent) / len(self._recent)
        if self._sent >= self._return / 2:
            return share
        seconds = self._unpaused() - self._measured_from
        return share * max(seconds / (seconds + self._cost / 2), self.SOON)

    def _count(self) -> tuple[int, float]:
        """Requests that were accepted of late, and in how many seconds."""
        now = self._unpaused()
        seconds = min(now - self._measured_from, self.LONGEST)
        return sum(at > now - seconds for at in self._accepted), seconds

    def _grow(self) -> None:
        """One more request had to wait for its turn."""
        if self._rate < self._most:
            self._sent += 1
            away = (self._sent / self._return - 1.0) ** 3
            step = self._plateau - self._low if away < 0 else self.PROBE * self._plateau
            self._rate = min(self._plateau + away * step, self.FASTEST * self._rate, self._most)

    def _burst(self) -> float:
        return max(1.0, self._rate / 20)

    def _fill(self, now: float) -> None:
        """Add tokens for the time that passed, pauses excepted."""
        since = max(self._filled_at, min(now, self._paused_until))
        self._filled_at = now
        if now > since:
            self._tokens = min(self._tokens + (now - since) * self._rate, self._burst())

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
                await asyncio.sleep(max(delay, self.LOOK))
            else:
                self._tokens -= 1
                self._grow()
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
