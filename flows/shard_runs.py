"""How rows are driven: shard by shard as nested flow runs here, or in parts by workers elsewhere."""

import asyncio
import logging

from flows.shard import shard
from patternmill.engine.rows import Shard
from patternmill.errors import PatternmillError
from patternmill.runs.context import driven
from patternmill.runs.run import ActiveRun, Run
from patternmill.runs.spread import spread
from tasks.part_runs import Workers
from tasks.run_page import progress_shown


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
            group.create_task(drive_shard(run, rows))


async def drive_shard(run: ActiveRun, rows: Shard) -> None:
    """Drive a shard as a nested flow run; without one when the Prefect server has none to give.

    A shard is driven once, whoever does it: the second call finds nothing left to do. That covers a nested
    run that never began, one that could not report its end, and one that a retried parent takes for done.
    """
    # A function, because a text would be a format, and a sku with a brace in it no valid one.
    as_flow = shard.with_options(flow_run_name=rows.describe)
    try:
        await as_flow(run.name, rows.number)
    except PatternmillError:
        raise
    except Exception as error:
        logging.getLogger(__name__).info(
            "%s: its flow run is lost (%s)", rows.describe(), type(error).__name__
        )
    await run.engine.drive(rows, run.engine.own_steps)
