"""The steps that spend: one task run a pattern, one a product. The engine retries and records; Prefect shows."""

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
from prefect_host.internals import is_for_people
from tasks.markup import line
from tasks.prefect_states import failed_state
from tasks.run_events import item_failed

logger = logging.getLogger(__name__)

# They run once an item, and Prefect's overhead is most of what a row costs. So there is one opaque parameter, because
# Prefect walks through each, and one result record that all share.


class ItemTask:
    """A task run's one parameter: Prefect reads its label, and nothing else of it."""

    __slots__ = ("item", "label", "run")

    def __init__(self, run: ActiveRun, item: Item) -> None:
        self.run, self.item, self.label = run, item, item.describe()


async def make_item(making: ItemTask) -> Any:
    """The task run's state: a failure is a state, without a traceback, because the ledger has its details."""
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
    """Make items as task runs, named after what they make."""
    # Adding it again changes nothing.
    logging.getLogger("prefect.task_runs").addFilter(is_for_people)
    backpressure = Backpressure()

    async def step(item: Item) -> None:
        await backpressure.wait()
        await _TASKS[item.stage](ItemTask(run, item))

    return step


async def drive_shard(run: ActiveRun, shard: Shard, as_flow: Callable[[str, int], Awaitable[object]]) -> None:
    """Drive a shard as a nested flow run; without one when the Prefect server does not answer.

    The second `drive` finds nothing left to do if the flow run did it. It covers a nested flow run that never
    began, one that could not report its end, and one that a retried parent takes for done.
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
    """The result record that all task runs share: results are in the ledger, not in Prefect."""
    return get_result_store().create_result_record(None)
