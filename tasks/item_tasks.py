"""The steps that spend: one task run a pattern, one a product. The library retries and records; Prefect shows."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.results import get_result_store
from prefect.states import Cancelled

from patternmill.engine.engine import Step
from patternmill.engine.shards import Shard
from patternmill.errors import BudgetReached, NotStarted, PatternmillError, RowFailed
from patternmill.planning.items import Item
from patternmill.runs.run import ActiveRun
from patternmill.states import Stage
from prefect_host.event_batches import Backpressure
from prefect_host.internals import says_something
from tasks.markup import line
from tasks.prefect_states import failed_state
from tasks.run_events import item_failed

logger = logging.getLogger(__name__)

# These run once an item, so what Prefect does around them is most of what a row costs. One opaque parameter,
# because Prefect walks through every one; and a result that is a record already, or it makes one for each.


class ItemTask:
    """What a task run is about: Prefect reads its label, and nothing else of it."""

    __slots__ = ("item", "label", "run")

    def __init__(self, run: ActiveRun, item: Item) -> None:
        self.run, self.item, self.label = run, item, item.describe()


async def make_item(making: ItemTask) -> Any:
    """The task run's state: what failed reads as failed, without a traceback for what is in the ledger anyway."""
    try:
        await making.run.engine.make(making.item)
    except (BudgetReached, NotStarted) as reason:
        return Cancelled(name="NotStarted", message=line(str(reason)), data=_no_result())
    except RowFailed as failed:
        item_failed(making.run, making.item, failed)
        state = failed_state(failed)
        state.data = _no_result()
        return state
    return _no_result()


#: Each kind of item has a task of its own, named after what it makes.
_TASKS = {
    stage: task(
        name=stage.value,
        task_run_name="{making.label}",
        retries=0,
        cache_policy=NO_CACHE,
        persist_result=False,
    )(make_item)
    for stage in Stage
}


def task_step(run: ActiveRun) -> Step:
    """How a run's items are made as task runs, named after what they make."""
    # Adding it again changes nothing.
    logging.getLogger("prefect.task_runs").addFilter(says_something)
    backpressure = Backpressure()

    async def step(item: Item) -> None:
        await backpressure.wait()
        await _TASKS[item.stage](ItemTask(run, item))

    return step


async def drive_shard(run: ActiveRun, shard: Shard, as_flow: Callable[[str, int], Awaitable[object]]) -> None:
    """Drive a shard as a nested flow run; without one when the Prefect server does not answer.

    A shard is driven once, whoever does it: the second call finds nothing left to do. That covers a nested
    run that never began, one that could not report its end, and one that a retried parent takes for done.
    """
    try:
        await as_flow(run.name, shard.number)
    except PatternmillError:
        raise
    except Exception as error:
        logger.info("%s: its flow run was lost (%s)", shard.describe(), type(error).__name__)
    await run.engine.drive(shard, run.engine.make)


@lru_cache(1)
def _no_result() -> Any:
    """The result record of every task run here, made once: results are in the ledger, not in Prefect."""
    return get_result_store().create_result_record(None)
