"""A real schedule on a real Prefect server fires. With whenever 0.10 none does on Python 3.11, and nothing says so."""

import asyncio
import time
from pathlib import Path

from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun

from cli.worker import DrainingWorker
from tasks.deployments import POOL, schedule_refresh


async def ended_run() -> FlowRun | None:
    async with get_client() as client:
        deployment = await client.read_deployment_by_name("catalog-refresh/fired (studio)")
        ended = {"deployment_id": {"any_": [deployment.id]}, "state": {"type": {"any_": ["COMPLETED"]}}}
        runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(ended))
        return runs[0] if runs else None


def test_a_cron_schedule_fires_and_its_run_has_the_parameters_of_its_catalog(deployed: Path) -> None:
    async def fired() -> FlowRun | None:
        await schedule_refresh("fired.csv", "fired", "studio", "* * * * *")
        worker = DrainingWorker(work_pool_name=POOL)
        working = asyncio.create_task(worker.start(printer=lambda text: None))
        until = time.monotonic() + 150
        while not (run := await ended_run()) and time.monotonic() < until:
            await asyncio.sleep(1)
        await worker.drain()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return run

    run = asyncio.run(fired())
    assert run and run.auto_scheduled
    assert run.state and run.state.message == f"fired.csv of fired in studio, from {deployed}"
