"""Outcomes as Prefect states: the name is the outcome, the message its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import State
from prefect.client.schemas.objects import StateType

from patternmill.engine.engine import Engine
from patternmill.engine.shards import Shard
from patternmill.errors import RowFailed
from patternmill.ledger.catalog_rows import counts_of
from patternmill.runs.refresh_changes import counts_line
from patternmill.runs.run import Run, RunEnding
from patternmill.states import Outcome, RowStatus
from patternmill.text import counted, plural
from tasks.markup import line
from tasks.run_steps import check_rows, choose_rows, plan_items, publish, read_file

#: A run that a limit, another run or a person stopped has neither succeeded nor failed. One with failed rows counts as
#: failed, as Prefect's own flows with failed tasks do: lists and filters go by the type, automations by the name.
_TYPES = {
    Outcome.COMPLETED: StateType.COMPLETED,
    Outcome.COMPLETED_WITH_FAILURES: StateType.FAILED,
    Outcome.FAILED: StateType.FAILED,
    Outcome.BUDGET_REACHED: StateType.CANCELLED,
    Outcome.CANCELLED: StateType.CANCELLED,
    Outcome.SKIPPED_OVERLAP: StateType.CANCELLED,
}


def state_of(outcome: Outcome, message: str) -> State[Any]:
    return State(type=_TYPES[outcome], name=outcome.value, message=line(message))


def end_state(run: Run, ending: RunEnding) -> State[Any]:
    """Of an ended run; Failed where its results are not where they were to be, whatever was made."""
    if run.unpublished is not None:
        return State(type=StateType.FAILED, name="Failed", message=line(run.unpublished.message))
    return state_of(ending.outcome, ending_message(ending))


def shard_state(engine: Engine, shard: Shard) -> State[Any]:
    """Of a shard that has ended: where the run was halted before all its rows were, as the run itself."""
    made, reason = engine.made(shard), engine.halt.reason
    if not engine.has_unfinished_rows(shard):
        reason = None
    counts = f"{made:,} of {plural(len(shard.rows), 'product')}"
    if made == len(shard.rows):
        return state_of(Outcome.COMPLETED, counts)
    if reason is None:
        return state_of(Outcome.COMPLETED_WITH_FAILURES, counts)
    return state_of(reason.outcome, f"{counts}. {reason.message}")


def failed_state(failed: RowFailed) -> State[Any]:
    return State(type=StateType.FAILED, name="Failed", message=line(_failure_message(failed)))


def _failure_message(failed: RowFailed) -> str:
    """The error, with the job and request that support needs to know."""
    names = {"job": failed.job_id, "request": failed.request_id}
    named = ", ".join(f"{kind} {name}" for kind, name in names.items() if name)
    return f"{failed.code}: {failed.message}" + (f" ({named})" if named else "")


def step_states(run: Run) -> Mapping[str, State[Any]]:
    """The states of the task runs of an ended run's steps, by their names and by those of their tasks."""
    done = State[Any](type=StateType.COMPLETED, name="Completed")
    names = [(step.name, step.task_run_name) for step in (choose_rows, read_file, check_rows, plan_items)]
    if run.results is not None and run.unpublished is None:
        names.append((publish.name, publish.task_run_name))
    return {str(name): done for both in names for name in both}


def ending_message(ending: RunEnding) -> str:
    """What a refresh found, counts that add up to the rows, and the reason where there is one."""
    changes = counts_of(ending.record)
    parts = [counts_line(changes)] if changes is not None else []
    parts.append(counts_message(ending.rows))
    if ending.record.reason:
        parts.append(ending.record.reason)
    return ". ".join(parts)


def counts_message(rows: Mapping[RowStatus, int]) -> str:
    by_status = {status.value: rows.get(status, 0) for status in RowStatus}
    return f"{plural(sum(rows.values()), 'row')}: {counted(by_status)}"
