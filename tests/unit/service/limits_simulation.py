"""Services in virtual time that limit requests in many ways, and endless rows that are made through `StudioApi`.

`python -m tests.unit.service.limits_simulation` prints how much of each limit is used, and at what price.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from patternmill.service.client import Look
from patternmill.service.jobs import Job
from patternmill.service.outcomes import Answer, ExchangeResult
from patternmill.service.resend import ResendPolicy
from patternmill.service.studio_api import StudioApi
from patternmill.states import Stage
from tests.unit.service import virtual

PATTERNS, PRODUCTS, POLLS = "patterns/create", "products/create", "jobs/get"
CREATES = (PATTERNS, PRODUCTS)
#: Seconds that a run has for finding a limit.
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
class TokenBucket:
    """So many a second, and up to `burst` saved up."""

    rate: float
    burst: float = 10.0
    _tokens: float = math.inf
    _filled_at: float = 0.0

    def takes(self, now: float) -> bool:
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self.rate)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def wait(self, now: float) -> float:
        return (1.0 - self._tokens) / self.rate


@dataclass
class JobsAtOnce:
    """So many jobs that have not ended."""

    most: int
    _ends: list[float] = field(default_factory=list)

    def takes(self, now: float) -> bool:
        while self._ends and self._ends[0] <= now:
            heapq.heappop(self._ends)
        return len(self._ends) < self.most

    def wait(self, now: float) -> float:
        return self._ends[0] - now

    def begin(self, ends: float) -> None:
        heapq.heappush(self._ends, ends)


# -- the service


@dataclass(frozen=True)
class Request:
    at: float
    operation: str
    status: int


RetryAfter = Callable[[float], str | None]
L = TypeVar("L", bound=Limit)


def honest(wait: float) -> str | None:
    return str(max(1, math.ceil(wait)))


def unhinted(wait: float) -> str | None:
    return None


class Service:
    """Answers after `latency` seconds, more or less; refuses by its limits."""

    def __init__(self, case: Case, seed: int) -> None:
        self._limits = dict(case.limits())
        self._at_once = dict(case.jobs_at_once())
        self._case = case
        self._chance = random.Random(seed)
        self._jobs: dict[str, tuple[str, float]] = {}
        self.requests: list[Request] = []

    async def post(self, operation: str, body: bytes, look: Look | None = None) -> Answer:
        if look is not None:
            await look()
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

    def _answer(self, operation: str, fields: dict[str, Any]) -> Answer:
        now, at_once = virtual.clock(), self._at_once.get(operation)
        if operation != POLLS and self._case.away[0] <= now < self._case.away[1]:
            return Answer(ExchangeResult.ANSWERED, status=503)
        for limit in (at_once, self._limits.get(operation)):
            if limit is not None and not limit.takes(now):
                retry_after = self._case.retry_after(limit.wait(now))
                return Answer(ExchangeResult.ANSWERED, status=429, retry_after=retry_after)
        if operation == POLLS:
            return self._poll(fields["jobId"])
        kind = "pattern" if operation == PATTERNS else "product"
        typical = self._case.pattern_time if operation == PATTERNS else self._case.product_time
        job_id = f"job-{len(self._jobs)}"
        ends = now + typical * self._chance.lognormvariate(0, 0.2)
        self._jobs[job_id] = kind, ends
        if at_once is not None:
            at_once.begin(ends)
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


def _apart(patterns: L, products: L) -> dict[str, L]:
    return {PATTERNS: patterns, PRODUCTS: products}


def _together(limit: L) -> dict[str, L]:
    return {PATTERNS: limit, PRODUCTS: limit}


@dataclass(frozen=True)
class Case:
    """A service, and the run that meets it. Rates are requests a second, times seconds."""

    name: str
    limits: Callable[[], Mapping[str, Limit]] = dict
    #: What can be reached of each, or of both together.
    possible: Mapping[str, float] = field(default_factory=dict)
    #: Seconds.
    lasts: float = 240.0
    retry_after: RetryAfter = unhinted
    #: By operation, the most jobs that the service runs; above that it answers 429.
    jobs_at_once: Callable[[], Mapping[str, JobsAtOnce]] = dict
    window: int = 200
    pattern_time: float = 2.0
    product_time: float = 2.0
    latency: float = 0.05
    #: From when to when creates are answered 503.
    away: tuple[float, float] = (0.0, 0.0)
    #: None: rows without end. Else what is measured is how long they take.
    rows: int | None = None


SIX = {PATTERNS: 6.0, PRODUCTS: 6.0}


def _rate(most: int, seconds: float) -> float:
    """The jobs a second that a limit of jobs allows; their durations scatter."""
    return most / (1.02 * seconds)


def _cases() -> Iterable[Case]:
    windows = lambda: _apart(FixedWindow(6), FixedWindow(6))  # noqa: E731
    yield Case("6 + 6, fixed window, no hint", windows, SIX)
    yield Case("6 + 6, fixed window, Retry-After 5", windows, SIX, retry_after=lambda wait: "5")
    yield Case("6 + 6, burst 1, Retry-After", lambda: _apart(TokenBucket(6, 1), TokenBucket(6, 1)), SIX,
               retry_after=honest)  # fmt: skip
    yield Case("12 together, burst 10, no hint", lambda: _together(TokenBucket(12)), {"together": 12.0})
    yield Case("20 patterns + 3 products", lambda: _apart(TokenBucket(20), TokenBucket(3)),
               {PATTERNS: 3.0, PRODUCTS: 3.0})  # fmt: skip
    yield Case("20 jobs of 10 s at once", possible={"together": _rate(20, 10.0)}, lasts=420.0,
               pattern_time=10.0, product_time=10.0, jobs_at_once=lambda: _together(JobsAtOnce(20)))  # fmt: skip
    yield Case("10 patterns of 20 s + 5 products of 10 s at once", lasts=420.0, pattern_time=20.0,
               possible={PATTERNS: _rate(10, 20.0), PRODUCTS: _rate(5, 10.0)}, product_time=10.0,
               jobs_at_once=lambda: _apart(JobsAtOnce(10), JobsAtOnce(5)))  # fmt: skip
    yield Case("no limit, 200 in flight", rows=2000, pattern_time=1, product_time=1)
    yield Case(
        "two minutes of 503, 200 in flight", rows=1200, pattern_time=10, product_time=10, away=(30.0, 150.0)
    )


CASES = {case.name: case for case in _cases()}


# -- the run


@dataclass(frozen=True)
class Figures:
    """`used`: by operation, or for both, the share of what was possible, the first minute excepted."""

    used: dict[str, float]
    #: Of the creates after the first minute, and of all.
    late_429: float
    all_429: float
    #: The first minute.
    early_429: int
    #: Seconds, of so many rows.
    lasted: float | None

    def __str__(self) -> str:
        used = "; ".join(f"{name.partition('/')[0]} {share:4.0%}" for name, share in self.used.items())
        lasted = f"{self.lasted:.1f} s" if self.lasted else ""
        return (
            f"{used}{lasted} | 429 {self.late_429:.1%} late, {self.all_429:.1%} of all, {self.early_429} in the first "
            "minute"
        )


class _Process:
    """One process that makes rows: the pattern, then the product, as the engine does."""

    def __init__(self, case: Case, service: Service, seed: int) -> None:
        policy = ResendPolicy(jitter=random.Random(seed).random)
        self.api = StudioApi(
            service,
            create_rate=500.0,
            poll_rate=300.0,
            policy=policy,
            clock=virtual.clock,
        )
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
            created = await self.api.create(stage, b'{"row": %d}' % id(asyncio.current_task()))
            assert isinstance(created, Job), created
            await self.api.follow(created.job_id, stage)


async def _simulate(case: Case, seed: int) -> Figures:
    service = Service(case, seed)
    process = _Process(case, service, 100 * seed)
    running = asyncio.create_task(process.rows(case.rows))
    await asyncio.wait([running], timeout=case.lasts if case.rows is None else None)
    lasted = virtual.clock()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await process.api.close()
    return _figures(case, service, lasted)


def _figures(case: Case, service: Service, lasted: float) -> Figures:
    creates = [request for request in service.requests if request.operation in CREATES]
    late = [one for one in creates if LEARNING <= one.at < case.lasts]
    seconds = case.lasts - LEARNING
    used = {name: _served(name, late, seconds) / possible for name, possible in case.possible.items()}
    return Figures(used, _refused(late), _refused(creates), sum(one.status == 429 for one in creates if one.at < 60),
                   lasted if case.rows else None)  # fmt: skip


def _served(name: str, requests: list[Request], seconds: float) -> float:
    """Creates a second."""
    return sum(one.status == 200 and name in {one.operation, "together"} for one in requests) / seconds


def _refused(requests: list[Request]) -> float:
    return sum(one.status == 429 for one in requests) / max(1, len(requests))


def simulate(case: Case, seed: int = 7) -> Figures:
    return virtual.run(_simulate(case, seed))


def main() -> None:
    for name, case in CASES.items():
        print(f"{name:50}", simulate(case), flush=True)


if __name__ == "__main__":
    main()
