"""Serve a measurement: `python -m tests.hostile [PATTERN_SECONDS PRODUCT_SECONDS SIGMA]` prints the address.

Each number on standard input is answered with the score of the jobs so far, for a window of so many; it ends when
standard input closes, which it does when the parent process ends.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.hostile.audit import Purchase, audit
from tests.hostile.plan import Plan, Times
from tests.hostile.record import Line, lines_of
from tests.hostile.service import HostileService


def score(record: Path, window: int) -> dict[str, Any]:
    """Return what the record shows of the jobs, and the seconds that every schedule needs for them."""
    purchases = audit(record).purchases
    polls, seen = polls_of(lines_of(record))
    return {
        "requests": dict(requests_of(lines_of(record))),
        "jobs": len(purchases),
        "unseen": len(purchases) - len(seen),
        "span": max(seen.values(), default=0.0) - min((one.at for one in purchases), default=0.0),
        "shortest": shortest(purchases, window),
        "kinds": {
            kind: score_of([one for one in purchases if one.stage == kind], polls, seen)
            for kind in ("pattern", "product")
        },
    }


def requests_of(lines: Iterable[Line]) -> Counter[str]:
    return Counter(line["operation"] for line in lines if line["event"] == "request" and line["status"])


def polls_of(lines: Iterable[Line]) -> tuple[Counter[str], dict[str, float]]:
    """Return by job how often it was asked for, and when its end was first seen."""
    polls, ended, seen = Counter[str](), set[str](), dict[str, float]()
    for line in lines:
        if line["event"] == "ended":
            ended.add(line["jobId"])
        elif line["event"] == "request" and line["operation"] == "jobs/get":
            polls[line["jobId"]] += 1
            if line["jobId"] in ended:
                seen.setdefault(line["jobId"], line["at"])
    return polls, seen


def shortest(purchases: Iterable[Purchase], window: int) -> float:
    """Return the time of the longest row, or of all work spread over the window."""
    rows: defaultdict[str, float] = defaultdict(float)
    for one in purchases:
        rows[one.prompt] += round((one.ended_at or one.at) - one.at, 2)
    return max(max(rows.values(), default=0.0), sum(rows.values()) / window)


def score_of(purchases: Sequence[Purchase], polls: Counter[str], seen: dict[str, float]) -> dict[str, float]:
    ended = [one for one in purchases if one.job_id in seen and one.ended_at is not None]
    if not ended:
        return {}
    lags = sorted(seen[one.job_id] - (one.ended_at or 0.0) for one in ended)
    return {
        "jobs": len(ended),
        "polls_mean": statistics.fmean(polls[one.job_id] for one in ended),
        "lag_median": statistics.median(lags),
        "lag_p95": lags[int(0.95 * (len(lags) - 1))],
    }


async def serve(pattern: float = 0.0, product: float = 0.0, sigma: float = 0.0) -> None:
    plan = Plan(patterns=Times("lognormal", pattern, sigma), products=Times("lognormal", product, sigma))
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        async with HostileService(plan, record, keys=("bench",)) as service:
            print(service.url, flush=True)
            while window := await asyncio.to_thread(sys.stdin.readline):
                print(json.dumps(score(record, int(window))), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(*map(float, sys.argv[1:])))
