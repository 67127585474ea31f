"""Services in virtual time that limit requests in many ways, and endless rows that are made through `StudioApi`.

`python -m tests.unit.service.limits_simulation [WORD ...]` prints how much of each limit is used, and at what price;
only the cases with such a word in their names.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from patternmill.service.outcomes import Accepted, Answer, ExchangeResult
from patternmill.service.resend import ResendPolicy
from patternmill.service.studio_api import Pace, StudioApi
from patternmill.states import Stage
from tests.unit.service import virtual

PATTERNS, PRODUCTS, POLLS = "patterns/create", "products/create", "jobs/get"
CREATES = (PATTERNS, PRODUCTS)
#: Seconds that a run has for learning a limit, at its beginning and after each change.
LEARNING = 60.0


# -- limits


class Limit(Protocol):
    """What a service lets pass. Those that are refused do not count."""

    def takes(self, now: float) -> bool: ...

    def wait(self, now: float) -> float:
        """Seconds until one more may pass."""


@dataclass
class FixedWindow:
    """So many in each whole second."""

    rate: float
    _second: int = -1
    _taken: int = 0

    def takes(self, now: float) -> bool:
        if int(now) != self._second:
            self._second, self._taken = int(now), 0
        if self._taken >= self.rate:
            return False
        self._taken += 1
        return True

    def wait(self, now: float) -> float:
        return 1.0 - now % 1.0


@dataclass
class SlidingWindow:
    """So many in any second."""

    rate: float
    _taken: deque[float] = field(default_factory=deque)

    def takes(self, now: float) -> bool:
        while self._taken and self._taken[0] <= now - 1.0:
            self._taken.popleft()
        if len(self._taken) >= self.rate:
            return False
        self._taken.append(now)
        return True

    def wait(self, now: float) -> float:
        return self._taken[0] + 1.0 - now


@dataclass
class TokenBucket:
    """So many a second, and up to `burst` saved up. `changes`: the rate from a moment on."""

    rate: float
    burst: float = 10.0
    changes: Mapping[float, float] = field(default_factory=dict)
    _tokens: float = math.inf
    _filled_at: float = 0.0

    def takes(self, now: float) -> bool:
        for moment, rate in self.changes.items():
            if self._filled_at < moment <= now:
                self.rate = rate
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self.rate)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def wait(self, now: float) -> float:
        return (1.0 - self._tokens) / self.rate


# -- the service


@dataclass(frozen=True)
class Request:
    at: float
    operation: str
    status: int


RetryAfter = Callable[[float], str | None]


def honest(wait: float) -> str | None:
    return str(max(1, math.ceil(wait)))


def silent(wait: float) -> str | None:
    return None


class Service:
    """Answers after `latency` seconds, more or less; refuses by its limits."""

    def __init__(self, case: Case) -> None:
        self._limits = dict(case.limits())
        self._case = case
        self._chance = random.Random(7)
        self._jobs: dict[str, tuple[str, float]] = {}
        self.requests: list[Request] = []

    async def post(self, operation: str, body: bytes) -> Answer:
        await self._travel()
        answer = self._answer(operation, json.loads(body))
        assert answer.status is not None
        self.requests.append(Request(virtual.clock(), operation, answer.status))
        await self._travel()
        return answer

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _travel(self) -> None:
        await asyncio.sleep(self._case.latency / 2 * self._chance.uniform(0.8, 1.2))

    def _running(self) -> int:
        return sum(ends > virtual.clock() for _, ends in self._jobs.values())

    def _answer(self, operation: str, fields: dict[str, Any]) -> Answer:
        now, limit = virtual.clock(), self._limits.get(operation)
        if limit is not None and not limit.takes(now):
            told = self._case.retry_after(limit.wait(now))
            return Answer(ExchangeResult.ANSWERED, status=429, retry_after=told)
        if operation == POLLS:
            return self._poll(fields["jobId"])
        if self._case.jobs_at_once is not None and self._running() >= self._case.jobs_at_once:
            return Answer(ExchangeResult.ANSWERED, status=429)
        kind = "pattern" if operation == PATTERNS else "product"
        typical = self._case.pattern_time if operation == PATTERNS else self._case.product_time
        job_id = f"job-{len(self._jobs)}"
        self._jobs[job_id] = kind, now + typical * self._chance.lognormvariate(0, 0.2)
        return _says(job_id, kind, ended=False)

    def _poll(self, job_id: str) -> Answer:
        kind, ends = self._jobs[job_id]
        return _says(job_id, kind, ended=virtual.clock() >= ends)


def _says(job_id: str, kind: str, *, ended: bool) -> Answer:
    result = {f"{kind}Id": f"made-by-{job_id}"} if ended else None
    status = "succeeded" if ended else "running"
    body = {"jobId": job_id, "kind": kind, "status": status, "result": result}
    return Answer(ExchangeResult.ANSWERED, status=200, body=body)


# -- the cases


def _apart(patterns: Limit, products: Limit) -> dict[str, Limit]:
    return {PATTERNS: patterns, PRODUCTS: products}


def _together(limit: Limit) -> dict[str, Limit]:
    return {PATTERNS: limit, PRODUCTS: limit}


@dataclass(frozen=True)
class Case:
    """A service, and the run that meets it. Rates are requests a second, times seconds."""

    name: str
    limits: Callable[[], Mapping[str, Limit]] = dict
    #: What can be reached of each, or of both together, in each phase.
    possible: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    phases: tuple[float, ...] = (240.0,)
    retry_after: RetryAfter = silent
    #: The most jobs that the service runs; above that it answers 429.
    jobs_at_once: int | None = None
    window: int = 200
    processes: int = 1
    pattern_time: float = 2.0
    product_time: float = 2.0
    latency: float = 0.05
    #: None: rows without end. Else what is measured is how long they take.
    rows: int | None = None


SIX = {PATTERNS: (6.0,), PRODUCTS: (6.0,)}
SHARED = {"together": (12.0,)}
SHAPES: dict[str, Callable[[float], Limit]] = {
    "fixed window": FixedWindow,
    "sliding window": SlidingWindow,
    "token bucket, burst 1": lambda rate: TokenBucket(rate, 1),
    "token bucket, burst 10": lambda rate: TokenBucket(rate, 10),
}
HINTS: dict[str, RetryAfter] = {
    "no hint": silent,
    "Retry-After": honest,
    "Retry-After 1": lambda wait: "1",
    "Retry-After 5": lambda wait: "5",
}
CHANGING = {180.0: 4.0, 360.0: 12.0}


def _cases() -> Iterable[Case]:
    for shape, limit in SHAPES.items():
        for hint, told in HINTS.items():
            yield Case(f"6 + 6, {shape}, {hint}", lambda n=limit: _apart(n(6), n(6)), SIX, retry_after=told)  # type: ignore[misc]
    for hint, told in HINTS.items():
        name = f"12 together, burst 10, {hint}"
        yield Case(name, lambda: _together(TokenBucket(12)), SHARED, retry_after=told)
    yield Case("12 together, fixed window, no hint", lambda: _together(FixedWindow(12)), SHARED)
    three = {PATTERNS: (3.0,), PRODUCTS: (3.0,)}
    yield Case("3 patterns + 20 products", lambda: _apart(TokenBucket(3), TokenBucket(20)), three)
    yield Case("20 patterns + 3 products", lambda: _apart(TokenBucket(20), TokenBucket(3)), three)
    yield Case("60 + 60", lambda: _apart(TokenBucket(60), TokenBucket(60)), {PATTERNS: (60.0,), PRODUCTS: (60.0,)},
               window=500)  # fmt: skip
    yield Case("6 + 6, jobs of 60 s and 20 s, 1000 in flight", lambda: _apart(TokenBucket(6), TokenBucket(6)), SIX,
               (420.0,), window=1000, pattern_time=60, product_time=20)  # fmt: skip
    changing = {"together": (12.0, 4.0, 12.0)}
    for hint in ("no hint", "Retry-After"):
        yield Case(f"12 -> 4 -> 12 together, {hint}", lambda: _together(TokenBucket(12, changes=CHANGING)), changing,
                   (180.0, 180.0, 180.0), HINTS[hint])  # fmt: skip
        yield Case(f"two processes, 6 + 6, {hint}", lambda: _apart(TokenBucket(6), TokenBucket(6)), SIX,
                   retry_after=HINTS[hint], processes=2)  # fmt: skip
    yield Case("two processes, 12 together", lambda: _together(TokenBucket(12)), SHARED, processes=2)
    yield Case(
        "6 + 6 and 20 polls", lambda: {**_apart(TokenBucket(6), TokenBucket(6)), POLLS: TokenBucket(20)}, SIX
    )
    for at_once, made in ((20, 10.0), (100, 2.0), (20, 60.0), (100, 60.0)):
        possible = {"together": (at_once / (1.02 * made),)}
        yield Case(f"{at_once} jobs of {made:.0f} s at once", possible=possible, phases=(420.0,),
                   jobs_at_once=at_once, pattern_time=made, product_time=made)  # fmt: skip
    yield Case("no limit, 200 in flight", rows=2000, pattern_time=1, product_time=1)
    yield Case("no limit, 1000 in flight", rows=4000, window=1000, pattern_time=5, product_time=3)


CASES = {case.name: case for case in _cases()}


# -- the run


@dataclass(frozen=True)
class Figures:
    """`used`: by operation, or for both, the share of what was possible in each phase, its first minute excepted."""

    used: dict[str, tuple[float, ...]]
    #: Of the creates after the first minute of each phase, and of all.
    late_429: float
    all_429: float
    #: The first minute.
    early_429: int
    smallest_window: int
    #: Seconds, of so many rows.
    lasted: float | None

    def __str__(self) -> str:
        used = "; ".join(
            f"{name.partition('/')[0]} {' '.join(f'{one:4.0%}' for one in share)}"
            for name, share in self.used.items()
        )
        lasted = f"{self.lasted:.1f} s" if self.lasted else ""
        return (
            f"{used}{lasted} | 429 {self.late_429:.1%} late, {self.all_429:.1%} of all, {self.early_429} in the first "
            f"minute | window {self.smallest_window}"
        )


class _Process:
    """One process that makes rows: the pattern, then the product, as the engine does."""

    def __init__(self, case: Case, service: Service, number: int) -> None:
        policy = ResendPolicy(jitter=random.Random(number).random)
        pace = Pace(case.window, create_rate=500.0, poll_rate=300.0)
        self.api = StudioApi(service, pace=pace, policy=policy, clock=virtual.clock)
        self.smallest_window = case.window
        self._begun = asyncio.Semaphore(case.window)

    async def rows(self, count: int | None) -> None:
        rows: set[asyncio.Task[None]] = set()
        while count is None or count > 0:
            await self._begun.acquire()
            row = asyncio.create_task(self._row())
            rows.add(row)
            row.add_done_callback(rows.discard)
            row.add_done_callback(lambda _: self._begun.release())
            count = None if count is None else count - 1
        await asyncio.gather(*rows)

    async def _row(self) -> None:
        for stage in (Stage.PATTERN, Stage.PRODUCT):
            await self.api.window.acquire(stage)
            try:
                created = await self.api.create(stage, b'{"row": %d}' % id(asyncio.current_task()))
                assert isinstance(created, Accepted), created
                await self.api.follow(created.job.job_id, stage, known=created.job)
            finally:
                self.smallest_window = min(self.smallest_window, self.api.window.limit)
                self.api.window.release()


async def _simulate(case: Case) -> Figures:
    service = Service(case)
    processes = [_Process(case, service, number) for number in range(case.processes)]
    running = [asyncio.create_task(process.rows(case.rows)) for process in processes]
    await asyncio.wait(running, timeout=sum(case.phases) if case.rows is None else None)
    lasted = virtual.clock()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.gather(*(process.api.close() for process in processes))
    return _figures(case, service, min(process.smallest_window for process in processes), lasted)


def _figures(case: Case, service: Service, smallest_window: int, lasted: float) -> Figures:
    creates = [request for request in service.requests if request.operation in CREATES]
    late, used, begins = [], dict[str, tuple[float, ...]](), 0.0
    for number, phase in enumerate(case.phases):
        counted = [one for one in creates if begins + LEARNING <= one.at < begins + phase]
        late += counted
        for name, possible in case.possible.items():
            share = _served(name, counted, phase - LEARNING) / possible[number]
            used[name] = (*used.get(name, ()), share)
        begins += phase
    return Figures(used, _refused(late), _refused(creates), sum(one.status == 429 for one in creates if one.at < 60),
                   smallest_window, lasted if case.rows else None)  # fmt: skip


def _served(name: str, requests: list[Request], seconds: float) -> float:
    """Creates a second."""
    return sum(one.status == 200 and name in {one.operation, "together"} for one in requests) / seconds


def _refused(requests: list[Request]) -> float:
    return sum(one.status == 429 for one in requests) / max(1, len(requests))


def simulate(case: Case) -> Figures:
    return virtual.run(_simulate(case))


def main(words: list[str]) -> None:
    for name, case in CASES.items():
        if not words or any(word in name for word in words):
            print(f"{name:45}", simulate(case), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
