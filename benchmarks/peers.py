"""`python -m benchmarks.peers URL KEY FILE WINDOW`: the same job as people write it by hand, with plain httpx.

A semaphore, a coroutine for each row and a poll every 2 s; no ledger, no retries, no resume.
"""

from __future__ import annotations

import asyncio
import csv
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx

_POLL_SECONDS = 2.0
_CONNECTIONS = 100


async def make_rows(client: httpx.AsyncClient, rows: list[dict[str, str]], window: int) -> None:
    """Make the pattern and the product of every row, with so many rows at work at once."""
    gate = asyncio.Semaphore(window)

    async def call(operation: str, body: dict[str, Any]) -> dict[str, Any]:
        response = await client.post(operation, json=body)
        response.raise_for_status()
        return dict(response.json())

    async def make(operation: str, body: dict[str, Any]) -> str:
        job = await call(operation, {"requestId": str(uuid.uuid4()), **body})
        while (job := await call("jobs/get", {"jobId": job["jobId"]}))["status"] == "running":
            await asyncio.sleep(_POLL_SECONDS)
        return str(next(iter(job["result"].values())))

    async def make_row(row: dict[str, str]) -> None:
        async with gate:
            pattern = await make("patterns/create", {"prompt": row["prompt"]})
            choice = {"categoryId": row["category"], "selections": {"size": row["option:size"]}}
            await make("products/create", {"patternId": pattern, **choice})

    await asyncio.gather(*map(make_row, rows))


async def main(url: str, key: str, file: str, window: str) -> None:
    """Make the rows of a file."""
    rows = list(csv.DictReader(Path(file).read_text("utf-8").splitlines()))
    limits = httpx.Limits(max_connections=_CONNECTIONS)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60, headers=headers) as client:
        await make_rows(client, rows, int(window))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
