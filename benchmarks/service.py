"""`python -m benchmarks.service WEATHER`: the double for measurements, which looks things up in no time.

It prints its address and key, and for each line on standard input what it has seen so far, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict
from typing import Any

from tests.double.server import KEY, serve
from tests.double.service import Double, Job, Reply
from tests.double.weather import Weather


class Counting(Double):
    """Keeps no record, but when it was asked first and last, and how late the ends of jobs were seen."""

    def __init__(self, weather: Weather) -> None:
        super().__init__(weather)
        self._made: dict[str, Job] = {}
        self._lags: dict[str, float] = {}
        self._first = self._last = 0.0
        self._polls = self._before = 0

    def note(self, event: str, **facts: Any) -> None:
        """Forget it."""

    def _pattern(self, pattern_id: str) -> Job | None:
        return self._made.get(pattern_id)

    def _begin(self, operation: str, body: dict[str, Any]) -> Job:
        job = super()._begin(operation, body)
        self._made[job.result] = job
        self._first = self._first or job.at
        return job

    def _poll(self, name: str) -> Reply:
        reply, self._last = super()._poll(name), time.time()
        self._polls += 1
        if reply.body["status"] == "succeeded":
            self._lags.setdefault(name, self._last - self.jobs[name].ends_at)
        return reply

    def score(self) -> dict[str, float]:
        """Return what was seen since the last time, with the longest row and all jobs' time."""
        lasts = {job.result: job.ends_at - job.at for job in self.jobs.values()}
        jobs = list(self.jobs.values())[self._before :]
        products = [job for job in jobs if job.stage == "product"]
        lags = sorted(self._lags.values()) or [0.0]
        score = {
            "jobs": len(jobs), "seen": len(self._lags), "polls": self._polls / max(len(jobs), 1),
            "lag": lags[len(lags) // 2], "span": self._last - self._first,
            "longest": max((lasts[job.result] + lasts[job.body["patternId"]] for job in products), default=0.0),
            "work": sum(job.ends_at - job.at for job in jobs),
        }  # fmt: skip
        self._before, self._polls, self._first = len(self.jobs), 0, 0.0
        self._lags.clear()
        return score


async def main(weather: Weather) -> None:
    """Serve until standard input ends."""
    double = Counting(weather)
    server = await serve(double)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", KEY, flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(double.score()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Weather(**{**asdict(Weather(latency=0.0)), **json.loads(sys.argv[1])})))
