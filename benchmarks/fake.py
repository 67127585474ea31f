"""Serve jobs to the clients that are measured, and keep the score: each job ends at once or after a drawn time.

It is a process of its own, on a raw protocol, so that it is not what is being measured:
`python -m benchmarks.fake [PATTERN_SECONDS PRODUCT_SECONDS SIGMA]`. Job times are drawn from the prompt, so that every
contender meets the same ones.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

SIZES = {"Cushion": ["40x40", "50x50"], "Mug": ["11oz", "15oz"]}
OFFER = {
    f"cat_{name.lower()}": {"name": name, "options": [{"name": "size", "values": values}]}
    for name, values in SIZES.items()
}


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

    def draw(self, kind: str, prompt: str) -> float:
        median = self.pattern_seconds if kind == "pattern" else self.product_seconds
        if not median:
            return 0.0
        return median * math.exp(random.Random(f"{kind}/{prompt}").gauss(0, self.sigma))


class Studio:
    """The jobs and the score."""

    def __init__(self, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        self.pace = pace
        self.clock = clock
        self.jobs: dict[str, Job] = {}
        self.by_request: dict[str, Job] = {}
        self.by_result: dict[str, Job] = {}
        self.requests: Counter[str] = Counter()
        self.last_seen = 0.0

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
                if pattern:
                    return self.create("product", body, pattern.prompt)
                return 422, {"error": "patternId"}
            case "categories/list":
                names = [{"categoryId": key, "name": category["name"]} for key, category in OFFER.items()]
                return 200, {"categories": names}
            case "categories/get":
                return 200, {"categoryId": body["categoryId"], **OFFER[body["categoryId"]]}
        return 404, {"error": {"message": f"no such operation: {operation}"}}

    def create(self, kind: str, body: dict[str, Any], prompt: str) -> tuple[int, Any]:
        job = self.by_request.get(body["requestId"]) or self.begin(kind, body["requestId"], prompt)
        return 200, {"jobId": job.job_id, "kind": kind, "status": "running", "result": None}

    def begin(self, kind: str, request_id: str, prompt: str) -> Job:
        now, number = self.clock(), len(self.jobs)
        seconds = self.pace.draw(kind, prompt)
        job = Job(kind, f"job_{number}", f"{kind}_{number}", prompt, seconds, now, now + seconds)
        self.jobs[job.job_id] = self.by_request[request_id] = self.by_result[job.result_id] = job
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
        result = {f"{job.kind}Id": job.result_id}
        return 200, {"jobId": job.job_id, "kind": job.kind, "status": "succeeded", "result": result}

    def stats(self, window: int) -> dict[str, Any]:
        span = self.last_seen - min((job.begun_at for job in self.jobs.values()), default=self.last_seen)
        return {
            "requests": dict(self.requests),
            "jobs": len(self.jobs),
            "unseen": sum(job.seen_at is None for job in self.jobs.values()),
            "span": span,
            "shortest": self.shortest(window),
            "kinds": {kind: self.score(kind) for kind in ("pattern", "product")},
        }

    def shortest(self, window: int) -> float:
        """Return the seconds that every schedule needs: of the longest row, or of all work spread over the window."""
        rows: defaultdict[str, float] = defaultdict(float)
        for job in self.jobs.values():
            rows[job.prompt] += job.seconds
        return max(max(rows.values(), default=0.0), sum(rows.values()) / window)

    def score(self, kind: str) -> dict[str, float]:
        jobs = [job for job in self.jobs.values() if job.kind == kind and job.seen_at is not None]
        lags = sorted(job.seen_at - job.ends_at for job in jobs if job.seen_at is not None)
        if not jobs:
            return {}
        return {
            "jobs": len(jobs),
            "polls_mean": statistics.fmean(job.polls for job in jobs),
            "lag_median": statistics.median(lags),
            "lag_p95": lags[int(0.95 * (len(lags) - 1))],
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


async def serve(pace: Pace) -> None:
    """Serve until standard input closes, which it does when the parent process ends."""
    studio = Studio(pace)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Wire(studio), "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    left = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), left.set)
    await left.wait()


if __name__ == "__main__":
    asyncio.run(serve(Pace(*map(float, sys.argv[1:]))))
