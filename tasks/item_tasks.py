"""The steps that spend: one task run a pattern, one a product. The library retries and remembers; Prefect shows."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from prefect import State, task
from prefect._internal.result_records import ResultRecord, ResultRecordMetadata
from prefect.cache_policies import NO_CACHE
from prefect.states import Cancelled

from patternmill.engine.rows import Step
from patternmill.errors import BudgetReached, NotStarted, RowFailed
from patternmill.planning.items import Item
from patternmill.runs.run import ActiveRun
from patternmill.states import Stage
from prefect_host.event_batches import Room
from tasks.markup import line
from tasks.prefect_states import failed_state
from tasks.run_events import item_failed

# These run once an item, so what Prefect does around them is most of what a row costs. One opaque parameter,
# because Prefect walks through every one; and a result that is a record already, or it makes one for each.


class ItemTask:
    """What a task run is about: Prefect reads its label, and nothing else of it."""

    __slots__ = ("item", "label", "run")

    def __init__(self, run: ActiveRun, item: Item) -> None:
        self.run, self.item, self.label = run, item, item.describe()


async def make_item(making: ItemTask) -> State[Any] | ResultRecord[None]:
    """The task run's state: what failed reads as failed, without a traceback for what is in the ledger anyway."""
    try:
        await making.run.engine.make(making.item)
    except (BudgetReached, NotStarted) as reason:
        return Cancelled(name="NotStarted", message=line(str(reason)), data=_nothing())
    except RowFailed as failed:
        item_failed(making.run, making.item, failed)
        state = failed_state(failed)
        state.data = _nothing()
        return state
    return _nothing()


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
    task_runs = logging.getLogger("prefect.task_runs")
    if _says_something not in task_runs.filters:
        task_runs.addFilter(_says_something)

    room = Room()

    async def step(item: Item) -> None:
        await room.wait()
        await _TASKS[item.stage](ItemTask(run, item))

    return step


def _says_something(record: logging.LogRecord) -> bool:
    """Whether a log line is for people: Prefect writes a returned state out as Python would, and then its message."""
    return not str(record.msg).startswith("Task run failed with state:")


@lru_cache(1)
def _nothing() -> ResultRecord[None]:
    """The result of every task run here: results are in the ledger, not in Prefect."""
    return ResultRecord(result=None, metadata=ResultRecordMetadata(storage_key="nothing"))
