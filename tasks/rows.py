"""Rows in the Prefect UI: each item to make is a task run; above 500 of them, each group of rows is one.

A task run is the work: it begins with the run's first write for its item or group, and ends with the last.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import Any

from prefect import State, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.states import Cancelled, Completed, Failed

from patternmill.engine.engine import Engine, MakeGroup
from patternmill.engine.groups import Group
from patternmill.errors import BudgetReached, NotStarted, PatternmillError, RowFailed
from patternmill.identifiers import ItemKey, RunId
from patternmill.logs import write_logs
from patternmill.planning.items import Item
from patternmill.planning.plan import TO_DO
from patternmill.runs.machines import Execution
from patternmill.runs.run import Run
from patternmill.settings import load_settings, with_service
from patternmill.states import Stage
from tasks.machines import drive_on_machines
from tasks.markup import line, logged
from tasks.prefect_states import failure_message, group_state
from tasks.run_page import progress_shown

#: Up to so many items each has a task run: nobody reads a page of many thousands.
_MOST_ITEM_TASKS = 500
#: The engine that drives groups in this process; None on another machine.
_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


class ItemWork:
    """An item with the engine that makes it; opaque to Prefect, which walks through every other parameter."""

    __slots__ = ("engine", "item", "label")

    def __init__(self, engine: Engine, item: Item) -> None:
        self.engine, self.item, self.label = engine, item, line(item.describe())


async def make_item(work: ItemWork) -> State[Any]:
    """Write the intent, create, await the job, and write the result: the ledger has each step before the next."""
    try:
        return Completed(message=await work.engine.make(work.item))
    except (BudgetReached, NotStarted) as reason:
        return Cancelled(name="NotStarted", message=line(str(reason)))
    except RowFailed as failed:
        sku = next(row.sku for row in work.engine.plan.rows if work.item.key in row.keys)
        return Failed(message=line(f"{sku}: {failure_message(failed)}"))
    except PatternmillError as error:
        return Failed(message=line(str(error)))


async def make_group(run_id: str, environment: str, number: int, label: str) -> State[Any]:
    """Drive the rows of a group to their ends: by its run's engine, or, on another machine, from the ledger."""
    if (engine := _engine.get()) is not None:
        group = engine.groups[number - 1]
        await engine.drive_group(group)
        return _end_of(engine, group)
    write_logs()
    settings = with_service(load_settings(environment))
    execution = await Execution.begin(settings, RunId(run_id), number)
    if execution is None:
        return Completed(message="Driven to its end before, or closed with its run.")
    if execution.lease.fence > 1:
        get_run_logger().warning("Begun again (%d): what was begun before goes on.", execution.lease.fence)
    try:
        await execution.drive()
    except PatternmillError as error:
        return Cancelled(message=line(str(error)))
    return _end_of(execution.engine, execution.group)


def _end_of(engine: Engine, group: Group) -> State[Any]:
    for row, failed in engine.failures(group):
        get_run_logger().error("%s failed: %s", row.sku, failure_message(failed))
    return group_state(engine, group)


#: The ledger decides what is done again: Prefect repeats nothing, and remembers no result.
_task: Any = partial(task, retries=0, cache_policy=NO_CACHE, persist_result=False)
#: Each kind of item has a task of its own, named after what it makes.
_ITEM_TASKS = {stage: _task(name=stage.value, task_run_name="{work.label}")(make_item) for stage in Stage}
#: Not a decorator: Dask sends a function to other machines by its name.
GROUP_TASK = _task(name="rows", task_run_name="{label}")(make_group)


async def make_rows(run: Run) -> None:
    """Drive all rows of a run to their ends, as task runs of the current flow run."""
    cluster = run.spec.settings.dask
    async with progress_shown(run):
        make = _ItemTasks(run.engine)
        if cluster is not None and run.plan.sent_once:
            # One by one, which no two machines can.
            logged("Note: PATTERNMILL_DASK is not used. What may be sent only once is sent by one process.")
            cluster = None
        run.is_by_groups = cluster is not None or run.plan.counts(TO_DO).total() > _MOST_ITEM_TASKS
        if not run.is_by_groups:
            await run.engine.drive(make)
        elif cluster is None:
            await run.engine.drive(make, _group_task(run))
        else:
            await run.engine.make_shared_references(make)
            await drive_on_machines(run, cluster, GROUP_TASK)


def _group_task(run: Run) -> MakeGroup:
    async def make(group: Group) -> None:
        _engine.set(run.engine)
        run.progress.task_runs += 1
        place = run.record.run_id, run.record.environment, group.number
        await GROUP_TASK(*place, line(group.describe()), return_state=True)

    return make


class _ItemTasks:
    """The task runs of a run's items; the inputs of each are the items that it is built on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._states: dict[ItemKey, State[Any]] = {}

    async def __call__(self, item: Item) -> None:
        built_on = self._states.get(item.parent_key) if item.parent_key is not None else None
        self._engine.progress.task_runs += 1
        self._states[item.key] = await _ITEM_TASKS[item.stage](
            ItemWork(self._engine, item), return_state=True, wait_for=[built_on] if built_on else None
        )
