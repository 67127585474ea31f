"""The worker outlives a run that is rescheduled before its last process has ended."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from prefect.workers.process import ProcessWorker

from prefect_host.process_worker import DrainingWorker


async def poll(monkeypatch: pytest.MonkeyPatch, *, is_ending: bool) -> list[object]:
    """Ask for runs: Prefect's worker counts one twice that is still ending, which anyio refuses."""

    async def submit(self: ProcessWorker) -> list[object]:
        if not is_ending:
            raise RuntimeError("out of order")
        limiter = anyio.CapacityLimiter(2)
        limiter.acquire_on_behalf_of_nowait("a run")
        limiter.acquire_on_behalf_of_nowait("a run")
        return []

    monkeypatch.setattr(ProcessWorker, "get_and_submit_flow_runs", submit)
    worker = DrainingWorker(asyncio.Event(), work_pool_name="patternmill", name="one")
    return list(await worker.get_and_submit_flow_runs())


async def test_run_that_is_still_ending_is_left_for_the_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await poll(monkeypatch, is_ending=True) == []
    with pytest.raises(RuntimeError, match="out of order"):
        await poll(monkeypatch, is_ending=False)
