"""A service in virtual time whose jobs take as long as they are set to, and a run that polls for them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from patternmill.service.client import Look
from patternmill.service.outcomes import Answer, Ended
from patternmill.service.pacing import Pace
from patternmill.states import Stage
from tests.unit.service import virtual
from tests.unit.service.answers import DONE, JOB, Script, answered

CREATE_RATE, LATENCY = 200.0, 0.02
Draw = Callable[[], float]


def lognormal(typical: float, sigma: float, seed: int) -> Draw:
    """Return a source of durations of that median."""
    chance = random.Random(seed)
    return lambda: typical * chance.lognormvariate(0, sigma)


@dataclass(frozen=True)
class Figures:
    """What a simulated run came to; a lag is the time until an end is seen."""

    polls_per_job: float
    median_lag: float
    p99_lag: float
    #: Of the makespan, to that of the same jobs when every end is seen at once.
    ratio: float


class Service(Script):
    """Knows when each job ends."""

    def __init__(self) -> None:
        super().__init__({}, latency=LATENCY / 2)
        self.ends: dict[str, float] = {}
        self.lags: list[float] = []

    def begin(self, duration: float) -> str:
        job_id = f"job-{len(self.ends)}"
        self.ends[job_id] = virtual.clock() + duration
        return job_id

    async def post(self, operation: str, body: bytes, look: Look | None = None) -> Answer:
        answer = await super().post(operation, body, look)
        await asyncio.sleep(LATENCY / 2)
        return answer

    def answer(self, operation: str, question: Any) -> Answer:
        job_id = question["jobId"]
        has_ended = virtual.clock() >= self.ends[job_id]
        if has_ended:
            self.lags.append(virtual.clock() - self.ends[job_id])
        result = {"patternId": job_id, "productId": job_id}
        return answered(200, {**(DONE | {"result": result} if has_ended else JOB), "jobId": job_id})


async def _makespan(
    rows: int, window: int, draws: list[list[float]], wait: Callable[[Stage, float], Awaitable[object]]
) -> float:
    """Make a pattern and then a product for each row, inside one window; return how long that took."""
    slots, started = asyncio.Semaphore(window), virtual.clock()
    creates = Pace(CREATE_RATE, clock=virtual.clock)

    async def row(number: int) -> None:
        async with slots:
            for stage, durations in zip((Stage.PATTERN, Stage.PRODUCT), draws, strict=False):
                await creates.acquire()
                await wait(stage, durations[number])

    await asyncio.gather(*map(row, range(rows)))
    return virtual.clock() - started


def simulate(rows: int, window: int, *stages: Draw) -> Figures:
    """Run `rows` rows whose stages take what `stages` say."""
    draws = [[draw() for _ in range(rows)] for draw in stages]

    async def main() -> Figures:
        shortest = await _makespan(rows, window, draws, lambda stage, duration: asyncio.sleep(duration))
        service = Service()
        api = service.api()

        async def wait(stage: Stage, duration: float) -> None:
            assert isinstance(await api.follow(service.begin(duration), stage), Ended)

        makespan, lags = await _makespan(rows, window, draws, wait), sorted(service.lags)
        return Figures(
            polls_per_job=len(service.sent) / len(service.ends),
            median_lag=median(lags),
            p99_lag=lags[int(0.99 * (len(lags) - 1))],
            ratio=makespan / max(shortest, 1e-9),
        )

    return virtual.run(main())
