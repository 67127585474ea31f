"""`python -m benchmarks.studio`: creates and polls that the embedded studio answers in a second of CPU, in-process.

With `--peer CHECKOUT` another checkout's studio is measured too, taking turns, each time in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import CHECKOUT

KEY = "bench"
HEADERS = [
    (b"host", b"127.0.0.1:1"),
    (b"authorization", f"Bearer {KEY}".encode()),
    (b"content-type", b"application/json"),
]
Rates = dict[str, float]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument("--peer", type=Path, metavar="CHECKOUT", help="another checkout to measure too")
    parser.add_argument("--requests", type=int, default=4000, help="creates, and as many polls")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(measure(options.requests)))
        return 0
    checkouts = [CHECKOUT, *([options.peer.resolve()] if options.peer else [])]
    found: dict[Path, list[Rates]] = {checkout: [] for checkout in checkouts}
    for _ in range(options.rounds):
        for checkout in checkouts:
            found[checkout].append(_in_process_of(checkout, options.requests))
    for checkout, rounds in found.items():
        shown = (f"{name} {statistics.median(one[name] for one in rounds):7.0f}/s" for name in rounds[0])
        print(f"{checkout}: {', '.join(shown)} (CPU, median of {len(rounds)})")
    return 0


def measure(requests: int) -> Rates:
    """Requests in a second of this process's CPU, by what they do; the studio is the first one on `sys.path`."""
    from studio.app import build_app
    from studio.pace import Pace
    from studio.pictures import Pictures
    from studio.service import Service
    from studio.store import Store

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "studio.db")
        service, pictures = Service(store, pace=Pace.INSTANT), Pictures(Path(folder) / "pictures")
        app = build_app(service, pictures, frozenset({KEY}))
        rates = asyncio.run(_measure(app, requests))
        store.close()
    return rates


async def _measure(app: Any, requests: int) -> Rates:
    bodies = [
        {"requestId": f"r-{number}", "prompt": f"blue herons {number} on cream"} for number in range(requests)
    ]
    began = time.process_time()
    jobs = [await _ask(app, "/v1/patterns/create", body) for body in bodies]
    created = time.process_time()
    for job in jobs:
        await _ask(app, "/v1/jobs/get", {"jobId": job["jobId"]})
    polled = time.process_time()
    return {
        "creates": requests / (created - began),
        "polls": requests / (polled - created),
        "both": 2 * requests / (polled - began),
    }


async def _ask(app: Any, path: str, body: object) -> dict[str, Any]:
    raw = json.dumps(body).encode()
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": HEADERS,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise RuntimeError(f"{path} was answered {sent[0]['status']}: {sent[1]['body']!r}")
    answer: dict[str, Any] = json.loads(sent[1]["body"])
    return answer


def _in_process_of(checkout: Path, requests: int) -> Rates:
    """This file, which the checkout may not have, run so that the checkout's studio is found first."""
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(checkout)!r});"
        f" runpy.run_path({__file__!r})['main'](['--one', '--requests', '{requests}'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=checkout
    )
    rates: Rates = json.loads(done.stdout)
    return rates


if __name__ == "__main__":
    sys.exit(main())
