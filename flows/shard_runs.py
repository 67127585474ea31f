"""How rows are driven: shard by shard as nested flow runs here, or in parts by workers elsewhere."""

import asyncio

from flows.shard import shard
from patternmill.engine.shards import Shard
from patternmill.runs.run import ActiveRun, Run
from patternmill.runs.spread import spread
from tasks.item_tasks import drive_shard
from tasks.part_runs import Workers
from tasks.run_page import progress_shown


async def make_all(run: Run) -> None:
    if run.spec.spread is None:
        await make_rows(run)
        return
    async with progress_shown(run):
        await spread(run, Workers(), drive_shards)


async def make_rows(run: ActiveRun) -> None:
    async with progress_shown(run):
        await drive_shards(run)


async def drive_shards(run: ActiveRun) -> None:
    """Drive the shards as nested flow runs, side by side, all inside the run's one window."""
    async with asyncio.TaskGroup() as shards:
        async for part in run.engine.opened_shards():
            shards.create_task(make_shard(run, part))


async def make_shard(run: ActiveRun, part: Shard) -> None:
    # A text would be a format, and a sku with a brace in it no valid one.
    await drive_shard(run, part, shard.with_options(flow_run_name=part.describe))
