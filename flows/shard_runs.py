"""Drives rows: by shards as nested flow runs, or in parts on other workers."""

import asyncio

from prefect import State, flow

from patternmill.runs.pipeline import driven
from patternmill.runs.run import ActiveRun, Run
from patternmill.runs.spread import spread
from tasks.item_tasks import drive_shard, task_step
from tasks.part_runs import Workers
from tasks.prefect_states import shard_state
from tasks.run_page import progress_shown


@flow(name="shard", validate_parameters=False, persist_result=False)
async def shard(run_id: str, number: int) -> State:
    """Make one shard of this process's run or part; nested, so that the page of a large import stays usable."""
    run = driven.get()
    assert run.name == run_id, "a shard is driven inside its run"
    rows = run.engine.shard(number)
    await run.engine.drive(rows, task_step(run))
    return shard_state(run.engine, rows)


async def make_rows(run: Run) -> None:
    async with progress_shown(run):
        if run.spec.spread is None:
            await drive_shards(run)
        else:
            await spread(run, Workers(), drive_shards)


async def drive_shards(run: ActiveRun) -> None:
    """Drive the shards as nested flow runs, concurrently, all inside the run's one window."""
    driven.set(run)
    async with asyncio.TaskGroup() as group:
        async for rows in run.engine.opened_shards():
            # A function, because a text would be a template, and a sku may have braces.
            as_flow = shard.with_options(flow_run_name=rows.describe)
            group.create_task(drive_shard(run, rows, as_flow))
