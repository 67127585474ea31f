"""Rows in the Prefect UI: up to 500 each item is a task run of the run's flow run, above that each group of rows is.

The engine drives them and waits for none of this: whatever becomes of a task run stops no purchase half-way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from prefect import get_run_logger, task
from prefect.exceptions import PrefectSignal
from prefect.states import Cancelled, Failed

from patternmill.engine.engine import Show
from patternmill.engine.groups import Group
from patternmill.errors import BudgetReached, NotStarted, PatternmillError, RowFailed
from patternmill.planning.items import Item
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.run import Run
from patternmill.states import Stage
from tasks.machines import drive_on_machines
from tasks.markup import line
from tasks.prefect_states import failure_message, group_state
from tasks.run_page import MOST_ROWS_AS_ITEMS, progress_shown

logger = logging.getLogger(__name__)

#: How long task runs may take to end after what they show.
_ENDING_SECONDS = 10.0


async def make_rows(work: Pipeline) -> None:
    """Drive all rows of a run to their end, and show them."""
    run = work.begun
    cluster = run.spec.settings.dask
    async with progress_shown(run), rows_shown(run) as show:
        # What may be sent only once is sent one by one, which no two machines can.
        if cluster is None or run.plan.sent_once:
            await work.drive(show)
        else:
            await drive_on_machines(run, cluster)
        if not run.is_stopped:
            # Before the server has been shown all: it may not answer for a while.
            work.finish()


async def make_item(shown: SimpleNamespace) -> Any:
    """The task run's state: a failure is a state, without a traceback, because the ledger has its details."""
    try:
        await asyncio.shield(shown.driving)
    except (BudgetReached, NotStarted) as reason:
        return Cancelled(name="NotStarted", message=line(str(reason)))
    except RowFailed as failed:
        return Failed(message=line(failure_message(failed)))


async def drive_group(shown: SimpleNamespace) -> Any:
    await asyncio.shield(shown.driving)
    engine, group = shown.run.engine, shown.what
    for row, failed in engine.failures(group):
        get_run_logger().error("%s failed: %s", row.sku, failure_message(failed))
    return group_state(engine, group)


def _as_task(function: Any, name: str) -> Any:
    return task(name=name, task_run_name="{shown.label}", retries=0, persist_result=False)(function)


#: Each kind of item has a task of its own, named after what it makes.
_ITEM_TASKS = {stage: _as_task(make_item, stage.value) for stage in Stage}
_DRIVE_ROWS = _as_task(drive_group, "drive rows")


@asynccontextmanager
async def rows_shown(run: Run) -> AsyncIterator[Show]:
    """Enter it in the run's flow, while its rows are driven."""
    by_groups = run.progress.to_do > MOST_ROWS_AS_ITEMS
    task_runs: set[asyncio.Task[None]] = set()

    def show(what: Item | Group, driving: asyncio.Task[Any]) -> None:
        if isinstance(what, Group) is not by_groups:
            return
        run.progress.shown += 1
        making = _DRIVE_ROWS if isinstance(what, Group) else _ITEM_TASKS[what.stage]
        # The one parameter is opaque, because Prefect walks through every other; it reads the label alone.
        shown = SimpleNamespace(run=run, what=what, driving=driving, label=line(what.describe()))
        task_run = asyncio.create_task(_shown(making(shown)))
        task_runs.add(task_run)
        task_run.add_done_callback(task_runs.discard)

    yield show
    if task_runs:
        await asyncio.wait(task_runs, timeout=_ENDING_SECONDS)


async def _shown(task_run: Coroutine[Any, Any, Any]) -> None:
    try:
        await task_run
    except PatternmillError:
        pass
    except (Exception, PrefectSignal) as error:
        # A signal: Prefect begins no task run of a flow run that is suspended.
        logger.info("A task run was lost (%s)", type(error).__name__)
