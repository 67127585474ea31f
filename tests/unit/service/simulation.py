"""A service in virtual time whose jobs take as long as they are set to, and a run that polls for them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median

from patternmill.service.outcomes import Answer, Ended, ExchangeResult
from patternmill.service.pacing import Pace
from patternmill.service.polling import Poller
from patternmill.states import Stage
from tests.unit.service import virtual

CREATE_RATE, POLL_RATE = 200.0, 300.0
Draw = Callable[[], float]


def lognormal(typical: float, sigma: float, seed: int) -> Draw:
    """Durations of that median."""
    chance = random.Random(seed)
    return lambda: typical * chance.lognormvariate(0, sigma)


@dataclass(frozen=True)
class Figures:
    """What a simulated run came to."""

    polls_per_job: float
    median_lag: float
    mean_lag: float
    p99_lag: float
    makespan: float
    #: The makespan of the same jobs when every end is seen at once.
    shortest: float

    @property
    def ratio(self) -> float:
        return self.makespan / max(self.shortest, 1e-9)

    def __str__(self) -> str:
        return (
            f"{self.polls_per_job:5.2f} polls a job, lag median {self.median_lag:6.2f} s, "
            f"mean {self.mean_lag:6.2f} s, p99 {self.p99_lag:6.2f} s, makespan {self.makespan:7.1f} s = "
            f"{self.ratio:.3f} of the shortest"
        )


class Service:
    """Knows when each job ends. One exchange takes `latency`."""

    def __init__(self, latency: float = 0.02) -> None:
        self.ends: dict[str, float] = {}
        self.lags: list[float] = []
        self.polls = 0
        self.latency = latency

    def begin(self, duration: float) -> str:
        job_id = f"job-{len(self.ends)}"
        self.ends[job_id] = virtual.clock() + duration
        return job_id

    async def ask(self, job_id: str) -> Answer:
        await asyncio.sleep(self.latency / 2)
        self.polls += 1
        ended = virtual.clock() >= self.ends[job_id]
        await asyncio.sleep(self.latency / 2)
        body = {"jobId": job_id, "kind": "pattern", "status": "running", "result": None}
        if ended:
            body |= {
                "status": "succeeded",
                "result": {"patternId": f"made-by-{job_id}", "productId": f"made-by-{job_id}"},
            }
            self.lags.append(virtual.clock() - self.ends[job_id])
        return Answer(ExchangeResult.ANSWERED, status=200, body=body)


async def _rows(
    count: int, window: int, draws: list[list[float]], wait: Callable[[str, Stage, float], object]
) -> None:
    """Each row makes a pattern and then a product inside one window."""
    slots = asyncio.Semaphore(window)
    creates = Pace(CREATE_RATE, clock=virtual.clock)

    async def row(number: int) -> None:
        async with slots:
            for stage, durations in zip((Stage.PATTERN, Stage.PRODUCT), draws, strict=False):
                await creates.acquire()
                await wait("", stage, durations[number])  # type: ignore[misc]

    await asyncio.gather(*(row(number) for number in range(count)))


async def _simulate(rows: int, window: int, draws: list[list[float]]) -> Figures:
    shortest = await _perfect(rows, window, draws)
    service, started = Service(), virtual.clock()
    poller = Poller(service.ask, Pace(POLL_RATE, clock=virtual.clock), clock=virtual.clock)

    async def wait(_: str, stage: Stage, duration: float) -> None:
        end = await poller.follow(service.begin(duration), stage)
        assert isinstance(end, Ended), end

    await _rows(rows, window, draws, wait)
    makespan = virtual.clock() - started
    poller.abandon()
    lags = sorted(service.lags)
    return Figures(
        polls_per_job=service.polls / len(service.ends),
        median_lag=median(lags),
        mean_lag=mean(lags),
        p99_lag=lags[int(0.99 * (len(lags) - 1))],
        makespan=makespan,
        shortest=shortest,
    )


async def _perfect(rows: int, window: int, draws: list[list[float]]) -> float:
    started = virtual.clock()

    async def wait(_: str, __: Stage, duration: float) -> None:
        await asyncio.sleep(duration)

    await _rows(rows, window, draws, wait)
    return virtual.clock() - started


def simulate(rows: int, window: int, *stages: Draw) -> Figures:
    """Run `rows` rows whose stages take what `stages` say."""
    draws = [[draw() for _ in range(rows)] for draw in stages]
    return virtual.run(_simulate(rows, window, draws))


def main() -> None:
    """Print the figures for jobs of many kinds."""
    for sigma in (0.0, 0.05, 0.1, 0.2, 0.3):
        for rows, window in ((1000, 200), (2000, 1000)):
            print(
                f"75 s, sigma {sigma:4}, window {window:4}", simulate(rows, window, lognormal(75, sigma, 1))
            )
    for window in (200, 500):
        ten_three = lognormal(10, 0.3, 1), lognormal(3, 0.3, 2)
        print(f"10 s + 3 s, sigma 0.3, window {window}", simulate(500, window, *ten_three))
    print("0.7 s + 0.5 s, window 200", simulate(300, 200, lognormal(0.7, 0.4, 1), lognormal(0.5, 0.4, 2)))
    print("instant, window 200", simulate(300, 200, lambda: 0.0, lambda: 0.0))
    print("24 rows of 75 s + 30 s", simulate(24, 200, lognormal(75, 0.3, 1), lognormal(30, 0.3, 2)))
    print("one row of 90 s + 30 s", simulate(1, 200, lambda: 90.0, lambda: 30.0))


if __name__ == "__main__":
    main()
