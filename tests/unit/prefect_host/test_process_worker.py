"""The worker outlives a run that is rescheduled before its last process has ended."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from prefect.workers.process import ProcessWorker

from prefect_host.process_worker import DrainingWorker


def worker() -> DrainingWorker:
    return DrainingWorker(asyncio.Event(), work_pool_name="patternmill", name="one")


def test_run_that_is_still_ending_is_left_for_the_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect's worker counts it twice, which anyio refuses."""

    async def submit(self: ProcessWorker) -> list[object]:
        limiter = anyio.CapacityLimiter(2)
        limiter.acquire_on_behalf_of_nowait("a run")
        limiter.acquire_on_behalf_of_nowait("a run")
        return []

    monkeypatch.setattr(ProcessWorker, "get_and_submit_flow_runs", submit)

    async def poll() -> list[object]:
        return list(await worker().get_and_submit_flow_runs())

    assert asyncio.run(poll()) == []


def test_other_errors_of_the_worker_are_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def submit(self: ProcessWorker) -> list[object]:
        raise RuntimeError("out of order")

    monkeypatch.setattr(ProcessWorker, "get_and_submit_flow_runs", submit)

    async def poll() -> None:
        await worker().get_and_submit_flow_runs()

    with pytest.raises(RuntimeError, match="out of order"):
        asyncio.run(poll())
