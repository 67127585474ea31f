"""The peers: the same job as people write it by hand, with asyncio and httpx, and with Prefect's `.map`.

`python -m benchmarks.peers plain|prefect-map --url URL --file CSV --window N`: each is a process of its own, and
prints one JSON line at its end. No ledger, no resume, no retries: what they leave out, they do not pay for.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import resource
import time
import uuid
from pathlib import Path
from typing import Any

POLL_SECONDS = 2.0
#: Costs httpx's pool the least CPU of what was tried: one connection a row in flight costs more, and its own default,
#: which keeps only 20 of 100 open, much more.
CONNECTIONS = 100
CATEGORY_IDS = {"Cushion": "cat_cushion", "Mug": "cat_mug"}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def request_id(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def product_of(row: dict[str, str], pattern_id: str) -> dict[str, Any]:
    return {
        "requestId": request_id("product", row["sku"]),
        "patternId": pattern_id,
        "categoryId": CATEGORY_IDS[row["category"]],
        "selections": {"size": row["option:size"]},
    }


async def plain(url: str, rows: list[dict[str, str]], window: int) -> int:
    """One coroutine a row, a semaphore, a poll every 2 s."""
    import httpx

    gate = asyncio.Semaphore(window)
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as client:

        async def call(operation: str, body: dict[str, Any]) -> dict[str, Any]:
            response = await client.post(operation, json=body, headers={"Authorization": "Bearer bench"})
            response.raise_for_status()
            return dict(response.json())

        async def made(operation: str, body: dict[str, Any]) -> str:
            job = await call(operation, body)
            while (job := await call("jobs/get", {"jobId": job["jobId"]}))["status"] == "running":
                await asyncio.sleep(POLL_SECONDS)
            return str(next(iter(job["result"].values())))

        async def one(row: dict[str, str]) -> str:
            async with gate:
                wanted = {"requestId": request_id("pattern", row["prompt"]), "prompt": row["prompt"]}
                pattern_id = await made("patterns/create", wanted)
                return await made("products/create", product_of(row, pattern_id))

        return len(await asyncio.gather(*(one(row) for row in rows)))


def prefect_map(url: str, rows: list[dict[str, str]], window: int) -> int:
    """As Prefect documents it: a flow, synchronous tasks, `.map`, one thread a task in flight."""
    import httpx
    from prefect import flow, task, unmapped
    from prefect.task_runners import ThreadPoolTaskRunner

    def call(client: httpx.Client, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        response = client.post(operation, json=body, headers={"Authorization": "Bearer bench"})
        response.raise_for_status()
        return dict(response.json())

    def made(client: httpx.Client, operation: str, body: dict[str, Any]) -> str:
        job = call(client, operation, body)
        while (job := call(client, "jobs/get", {"jobId": job["jobId"]}))["status"] == "running":
            time.sleep(POLL_SECONDS)
        return str(next(iter(job["result"].values())))

    @task
    def pattern(row: dict[str, str], client: httpx.Client) -> str:
        return made(
            client,
            "patterns/create",
            {"requestId": request_id("pattern", row["prompt"]), "prompt": row["prompt"]},
        )

    @task
    def product(row: dict[str, str], pattern_id: str, client: httpx.Client) -> str:
        return made(client, "products/create", product_of(row, pattern_id))

    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)

    runner: Any = ThreadPoolTaskRunner(max_workers=window)

    @flow(task_runner=runner)
    def import_rows() -> int:
        with httpx.Client(base_url=url, limits=limits, timeout=60) as client:
            patterns = pattern.map(rows, unmapped(client))
            return len(product.map(rows, patterns, unmapped(client)).result())

    return import_rows()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("peer", choices=("plain", "prefect-map"))
    parser.add_argument("--url", required=True, help="the service's base address")
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--window", type=int, required=True)
    arguments = parser.parse_args()
    rows = rows_of(arguments.file)
    began = time.monotonic()
    if arguments.peer == "plain":
        made = asyncio.run(plain(arguments.url, rows, arguments.window))
    else:
        made = prefect_map(arguments.url, rows, arguments.window)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    score = {"made": made, "seconds": time.monotonic() - began, "cpu": usage.ru_utime + usage.ru_stime}
    print(json.dumps({**score, "peak_rss": usage.ru_maxrss}), flush=True)


if __name__ == "__main__":
    main()
