"""How fast requests leave: creates by what the service takes, polls by a job's age."""

import asyncio
import heapq
import itertools
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

#: Requests a second: of each create operation at first, at least and at most, and of all polls.
_FIRST, _LEAST, _MOST, _POLLS = 20.0, 0.2, 200.0, 200.0
#: What a request that is taken does to the rate before the first refusal; afterwards a refusal leaves this share of
#: the rate, which is what it was after so many that are taken.
_GROWTH, _FIRST_LEFT, _LEFT, _BACK = 1.03, 0.5, 0.85, 100
#: The requests of so many seconds may leave at once after a pause, as the service has saved them up too.
_BURST = 1.0
#: How many jobs of a stage are watched closely while nothing is known of it; the others learn from them.
_SCOUTS = 10


class Bucket:
    """A token bucket whose rate each request that is taken raises, and each refusal cuts (AIMD)."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._step = self._next = self._quiet_until = self._cut_at = 0.0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self, rank: int = 1) -> None:
        """Wait for a turn: a lower rank goes first, otherwise in order."""
        loop = asyncio.get_running_loop()
        if not self._waiting and max(self._next, self._quiet_until) <= loop.time():
            return self._take(loop.time())
        turn: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (rank, next(self._numbers), turn))
        if self._timer is None:
            self._release()
        return await turn

    def taken(self) -> None:
        self.rate = min(self.rate + self._step if self._step else self.rate * _GROWTH, _MOST)

    def refused(self, sent_at: float) -> None:
        """Cut the rate, by more the first time. A request from before the last cut causes no other."""
        if sent_at >= self._cut_at:
            before, left = self.rate, _LEFT if self._step else _FIRST_LEFT
            self.rate, self._cut_at = max(before * left, _LEAST), asyncio.get_running_loop().time()
            self._step = max(before - self.rate, _LEAST) / _BACK

    def hold(self, pause: float) -> None:
        """Send nothing for a pause. What could have been sent meanwhile leaves at once after it."""
        self._quiet_until = max(self._quiet_until, asyncio.get_running_loop().time() + pause)

    def _take(self, now: float) -> None:
        self._next = max(self._next, now - _BURST) + 1 / self.rate

    def _release(self) -> None:
        """Let those go whose turn it is, and look again when the next one may."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._waiting:
            if self._waiting[0][-1].done():  # it was cancelled
                heapq.heappop(self._waiting)
            elif (at := max(self._next, self._quiet_until)) > (now := loop.time()) + 1e-6:
                self._timer = loop.call_at(at, self._release)
                return
            else:
                heapq.heappop(self._waiting)[-1].set_result(None)
                self._take(now)


@dataclass
class Pace:
    """The pace of one client's requests."""

    #: One bucket for each create operation: one for both would follow neither of two limits.
    creates: Mapping[str, Bucket] = field(default_factory=partial(defaultdict, partial(Bucket, _FIRST)))
    polls: Bucket = field(default_factory=partial(Bucket, _POLLS))


class Polling:
    """When the jobs of a stage are asked about: first when a tenth of such jobs have ended, then by their age."""

    def __init__(self, durations: Sequence[float]) -> None:
        """Take the durations of earlier jobs in seconds, the last first."""
        self._last = deque(reversed(durations), maxlen=100)
        self._followed = 0
        self._look()

    def begin(self) -> bool:
        """Count another job that is followed, and return whether it is one of the scouts."""
        self._followed += 1
        return self._followed <= _SCOUTS

    def learn(self, duration: float) -> None:
        self._last.append(duration)
        self._look()

    def _look(self) -> None:
        # No job is seen to end before its first poll: without the tenth, each would put off the next ones.
        known = sorted(self._last)
        #: The age at which a job is first asked about.
        self.first = 0.9 * known[len(known) // 10] if known else 0.0

    def pause(self, age: float, *, scout: bool = False) -> float:
        """Return the seconds until a job of this age is asked about next."""
        if self.first > age:
            return max(self.first - age, 0.1)
        if self._last or scout:
            return max(min(age, 2.0), 0.05 * age, 0.5)
        return max(min(age, 15.0), 2.0)
