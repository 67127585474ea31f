"""A small fast service to measure clients against: answers at once or after drawn job times, and keeps the score.

A process of its own (`python -m benchmarks.fake`), on a raw protocol, so that it is not what is being measured. Job
times are drawn from the seed and the prompt, so that every contender meets the same ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import resource
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zlib import crc32

CATEGORIES = [
    {
        "categoryId": "cat_cushion",
        "name": "Cushion",
        "options": [{"name": "size", "values": ["40x40", "50x50"]}],
    },
    {"categoryId": "cat_mug", "name": "Mug", "options": [{"name": "size", "values": ["11oz", "15oz"]}]},
]


@dataclass
class Job:
    kind: str
    job_id: str
    result_id: str
    prompt: str
    seconds: float
    begun_at: float
    ends_at: float
    polls: int = 0
    #: Of the first poll that returned the end.
    seen_at: float | None = None


@dataclass(frozen=True)
class Pace:
    """Job times: the medians of a lognormal distribution; 0 ends a job at once."""

    pattern_seconds: float = 0.0
    product_seconds: float = 0.0
    sigma: float = 0.3
    seed: int = 1
    #: Of so many prompts one has products that always fail; 0: none.
    failing: int = 0

    def fails(self, kind: str, prompt: str) -> bool:
        return kind == "product" and self.failing > 0 and crc32(prompt.encode()) % self.failing == 0

    def draw(self, kind: str, prompt: str) -> float:
        median = self.pattern_seconds if kind == "pattern" else self.product_seconds
        if not median:
            return 0.0
        return median * math.exp(random.Random(f"{self.seed}/{kind}/{prompt}").gauss(0, self.sigma))


class Studio:
    """The jobs and the score."""

    def __init__(self, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        self.pace = pace
        self.clock = clock
        self.jobs: dict[str, Job] = {}
        self.by_request: dict[str, Job] = {}
        self.by_result: dict[str, Job] = {}
        self.requests: Counter[str] = Counter()
        self.first_create: float | None = None
        self.last_seen = 0.0
        self.in_flight = 0
        self.peak_in_flight = 0

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        operation = path.removeprefix("/v1/")
        self.requests[operation] += 1
        match operation:
            case "jobs/get":
                return self.poll(body)
            case "patterns/create":
                return self.create("pattern", body, str(body["prompt"]))
            case "products/create":
                pattern = self.by_result.get(str(body["patternId"]))
                return (
                    self.create("product", body, pattern.prompt) if pattern else (422, {"error": "patternId"})
                )
            case "categories/list":
                return 200, {
                    "categories": [{"categoryId": c["categoryId"], "name": c["name"]} for c in CATEGORIES]
                }
            case "categories/get":
                return 200, next(c for c in CATEGORIES if c["categoryId"] == body["categoryId"])
        return 404, {"error": {"message": f"no such operation: {operation}"}}

    def create(self, kind: str, body: dict[str, Any], prompt: str) -> tuple[int, Any]:
        job = self.by_request.get(body["requestId"]) or self.begin(kind, body["requestId"], prompt)
        return 200, {"jobId": job.job_id, "kind": kind, "status": "running", "result": None}

    def begin(self, kind: str, request_id: str, prompt: str) -> Job:
        now, number = self.clock(), len(self.jobs)
        self.first_create = now if self.first_create is None else self.first_create
        seconds = self.pace.draw(kind, prompt)
        job = Job(kind, f"job_{number}", f"{kind}_{number}", prompt, seconds, now, now + seconds)
        self.jobs[job.job_id] = self.by_request[request_id] = self.by_result[job.result_id] = job
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        return job

    def poll(self, body: dict[str, Any]) -> tuple[int, Any]:
        job = self.jobs.get(body["jobId"])
        if job is None:
            return 404, {"error": {"message": "no such job"}}
        now = self.clock()
        job.polls += 1
        if now < job.ends_at:
            return 200, {"jobId": job.job_id, "kind": job.kind, "status": "running", "result": None}
        if job.seen_at is None:
            job.seen_at = self.last_seen = now
            self.in_flight -= 1
        if self.pace.fails(job.kind, job.prompt):
            return 200, {
                "jobId": job.job_id,
                "kind": job.kind,
                "status": "failed",
                "error": "It did not work.",
            }
        result = {f"{job.kind}Id": job.result_id}
        return 200, {"jobId": job.job_id, "kind": job.kind, "status": "succeeded", "result": result}

    def stats(self, window: int) -> dict[str, Any]:
        span = self.last_seen - (self.first_create or self.last_seen)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "requests": dict(self.requests),
            "jobs": len(self.jobs),
            "unseen": sum(job.seen_at is None for job in self.jobs.values()),
            "peak_in_flight": self.peak_in_flight,
            "span": span,
            "shortest": self.shortest(window),
            "longest_stall": self.longest_stall(window),
            "kinds": {kind: self.score(kind) for kind in ("pattern", "product")},
            "cpu": usage.ru_utime + usage.ru_stime,
        }

    def shortest(self, window: int) -> float:
        """No schedule can be shorter: neither than the longest row, nor than all work spread evenly over the window."""
        rows: defaultdict[str, float] = defaultdict(float)
        for job in self.jobs.values():
            rows[job.prompt] += job.seconds
        return max(max(rows.values(), default=0.0), sum(rows.values()) / window)

    def longest_stall(self, window: int) -> float:
        """The longest time in which the client had room in its window and created nothing, in seconds.

        From the first create to the last pattern's: until then there is always something to create.
        """
        jobs = sorted(self.jobs.values(), key=lambda job: job.begun_at)
        last = max((job.begun_at for job in jobs if job.kind == "pattern"), default=0.0)
        ends = sorted(job.seen_at for job in jobs if job.seen_at is not None)
        longest = 0.0
        for number, (job, following) in enumerate(pairwise(jobs), start=1):
            if following.begun_at > last:
                break
            # The window has room from the end that brings the jobs in flight below it.
            needed = number - window
            free_from = job.begun_at if needed < 0 else max(job.begun_at, ends[needed])
            longest = max(longest, following.begun_at - free_from)
        return longest

    def score(self, kind: str) -> dict[str, float]:
        jobs = [job for job in self.jobs.values() if job.kind == kind and job.seen_at is not None]
        lags = sorted(job.seen_at - job.ends_at for job in jobs if job.seen_at is not None)
        if not jobs:
            return {}
        return {
            "jobs": len(jobs),
            "seconds_median": statistics.median(job.seconds for job in jobs),
            "polls_mean": statistics.fmean(job.polls for job in jobs),
            "lag_median": statistics.median(lags),
            "lag_p95": lags[int(0.95 * (len(lags) - 1))],
            "lag_max": lags[-1],
        }


class Wire(asyncio.Protocol):
    """HTTP/1.1, as much of it as JSON clients use."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end]
            length = _content_length(head)
            if len(self.waiting) < end + 4 + length:
                return
            body = self.waiting[end + 4 : end + 4 + length]
            self.waiting = self.waiting[end + 4 + length :]
            self.exchange(head.split(b" ", 2)[1].decode(), body)

    def exchange(self, path: str, body: bytes) -> None:
        if path.startswith("/stats"):
            window = int(parse_qs(urlsplit(path).query).get("window", ["1000000"])[0])
            status, value = 200, self.studio.stats(window)
        else:
            status, value = self.studio.answer(path, json.loads(body or b"{}"))
        content = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.transport.write(head.encode() + content)


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    start = lowered.find(b"content-length:")
    return int(lowered[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0


async def serve(pace: Pace, port: int) -> None:
    """Until standard input closes, which it does when the parent process ends."""
    studio = Studio(pace)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Wire(studio), "127.0.0.1", port, backlog=4096)
    print(json.dumps({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}), flush=True)
    left = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), left.set)
    await left.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fake", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pattern-seconds", type=float, default=0.0)
    parser.add_argument("--product-seconds", type=float, default=0.0)
    parser.add_argument("--sigma", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failing", type=int, default=0)
    arguments = parser.parse_args()
    pace = Pace(
        arguments.pattern_seconds,
        arguments.product_seconds,
        arguments.sigma,
        arguments.seed,
        arguments.failing,
    )
    asyncio.run(serve(pace, arguments.port))


if __name__ == "__main__":
    main()
