"""Do the same job as people write it by hand: asyncio with plain httpx, or with plain aiohttp.

`python -m benchmarks.peers httpx|aiohttp --url URL --file CSV --window N` is a process of its own. It has a semaphore,
a coroutine for each row and a poll every 2 s, but no ledger, no retries and no resume: it does not pay for them.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

POLL_SECONDS = 2.0
#: Costs httpx's pool the least CPU of what was tried: one connection for each row in flight costs more, and its own
#: default, which keeps only 20 of 100 open, much more. 100 is aiohttp's own default.
CONNECTIONS = 100
CATEGORY_IDS = {"Cushion": "stag_cushion_01", "Mug": "stag_mug_02"}
HEADERS = {"Authorization": "Bearer bench"}
Body = dict[str, Any]
Call = Callable[[str, Body], Awaitable[Body]]


@asynccontextmanager
async def by_httpx(url: str) -> AsyncIterator[Call]:
    """Yield a function that posts with httpx."""
    import httpx

    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60, headers=HEADERS) as client:

        async def call(operation: str, body: Body) -> Body:
            response = await client.post(operation, json=body)
            response.raise_for_status()
            return dict(response.json())

        yield call


@asynccontextmanager
async def by_aiohttp(url: str) -> AsyncIterator[Call]:
    """Yield a function that posts with aiohttp."""
    import aiohttp

    connector, timeout = aiohttp.TCPConnector(limit=CONNECTIONS), aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=HEADERS) as session:

        async def call(operation: str, body: Body) -> Body:
            async with session.post(f"{url}/{operation}", json=body, raise_for_status=True) as response:
                return dict(await response.json())

        yield call


PEERS = {"httpx": by_httpx, "aiohttp": by_aiohttp}


async def make_rows(call: Call, rows: list[dict[str, str]], window: int) -> None:
    """Make the pattern and the product of every row, with so many rows at work at once."""
    gate = asyncio.Semaphore(window)

    async def make(operation: str, body: Body) -> str:
        job = await call(operation, body)
        while (job := await call("jobs/get", {"jobId": job["jobId"]}))["status"] == "running":
            await asyncio.sleep(POLL_SECONDS)
        return str(next(iter(job["result"].values())))

    async def make_row(row: dict[str, str]) -> None:
        async with gate:
            pattern = {"requestId": request_id("pattern", row["prompt"]), "prompt": row["prompt"]}
            await make("products/create", product_of(row, await make("patterns/create", pattern)))

    await asyncio.gather(*map(make_row, rows))


def request_id(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def product_of(row: dict[str, str], pattern_id: str) -> Body:
    return {
        "requestId": request_id("product", row["sku"]),
        "patternId": pattern_id,
        "categoryId": CATEGORY_IDS[row["category"]],
        "selections": {"size": row["option:size"]},
    }


async def run(peer: str, url: str, file: Path, window: int) -> None:
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    async with PEERS[peer](url) as call:
        await make_rows(call, rows, window)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--url", required=True, help="the service's base address")
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--window", type=int, required=True)
    asyncio.run(run(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
