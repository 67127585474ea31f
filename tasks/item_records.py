"""The task runs that a run should have in the Prefect UI: what was not shown in time is recorded from these."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from prefect import State
from prefect.client.schemas.objects import StateType

from patternmill.engine.engine import EndedItem
from patternmill.engine.shards import Shard
from patternmill.planning.items import Item
from patternmill.runs.run import Run
from patternmill.text import plural
from prefect_host.record import KnownEnds
from prefect_host.task_runs import TaskRunRecord, task_run_id
from tasks.markup import line
from tasks.prefect_states import failed_state, shard_state

#: Of task runs that are recorded, not run.
ITEM_TASK = "make_item"


def shows_items(run: Run) -> bool:
    """Whether each item has a task run; else each shard has one, and each item that failed."""
    return run.progress.to_do <= run.engine.options.item_task_runs_up_to


def known_ends(run: Run) -> KnownEnds:
    """How the shards and items of a run ended, as far as they have."""
    engine = run.engine
    shards = {shard.describe(): shard_state(engine, shard) for shard in engine.shards}
    return KnownEnds(inside=shards, task_runs={record.id: record for record in _records(run)})


def _records(run: Run) -> Iterator[TaskRunRecord]:
    engine, every = run.engine, shows_items(run)
    inside = {
        key: name
        for shard in engine.shards
        for name in (shard.describe(),)
        for row in shard.rows
        for key in row.keys
    }
    for ended in engine.ended_items():
        if every:
            yield item_record(run, ended, inside[ended.item.key])
        elif ended.failure is not None:
            yield item_record(run, ended)
    if not every:
        for shard in engine.shards:
            began = engine.opened_at(shard)
            if began is not None:
                yield shard_record(run, shard, began, closed=True)


def item_task_run_id(run: Run, item: Item) -> UUID:
    return task_run_id(run.record.run_id, item.key)


def item_record(
    run: Run, ended: EndedItem, flow_run_name: str | None = None, *, dated: datetime | None = None
) -> TaskRunRecord:
    """`flow_run_name`: of its shard; None: the run's own. `dated`: later than an end that is recorded already."""
    failure = ended.failure
    at = dated or utc_time(ended.ended)
    if failure is None:
        end = State[Any](type=StateType.COMPLETED, name="Completed", timestamp=at)
    else:
        end = failed_state(failure).model_copy(update={"timestamp": at})
    return TaskRunRecord(
        item_task_run_id(run, ended.item),
        line(ended.item.describe()),
        ITEM_TASK,
        utc_time(ended.began),
        utc_time(ended.ended),
        end,
        flow_run_name,
    )


def open_item_record(run: Run, item: Item, began: float) -> TaskRunRecord:
    """An item that is being made since `began` (Unix seconds)."""
    name = line(item.describe())
    return TaskRunRecord(item_task_run_id(run, item), name, ITEM_TASK, utc_time(began))


def shard_record(run: Run, shard: Shard, began: float, *, closed: bool = False) -> TaskRunRecord:
    """A shard as one task run, with its counts in its name."""
    made, rows = run.engine.made(shard), len(shard.rows)
    end = shard_state(run.engine, shard) if closed else None
    return TaskRunRecord(
        task_run_id(run.record.run_id, "shard", str(shard.number)),
        line(f"{shard.describe()}: {made:,} of {plural(rows, 'product')}"),
        "shard",
        utc_time(began),
        end.timestamp if end is not None else None,
        end,
    )


def utc_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
