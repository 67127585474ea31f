"""Flow runs of a catalog that their commands left open: the next run of the catalog ends them, as nobody else would.

A killed process leaves its flow run open, and one whose server was gone at its end. What a worker ran is not ours to
end: automations notice it, and it is begun again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect import State, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.runs.run import Run
from patternmill.states import Outcome
from tasks.prefect_states import state_of

logger = logging.getLogger(__name__)

KILLED = "The process that ran this was killed. What it had begun is in the ledger; the next run resumed it."
_UNTOLD = "Its end did not reach this server: `patternmill status` has what became of it."
_OPEN = [StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING, StateType.PAUSED, StateType.CANCELLING]
_PATIENCE = 5.0
#: How many runs are looked back.
_MOST = 20
#: An ended run may still complete its page.
_ENDING = timedelta(seconds=90)


async def end_left_runs(run: Run) -> None:
    """End what earlier runs of a run's catalog left open; a server that does not answer soon changes nothing."""
    try:
        async with asyncio.timeout(_PATIENCE), get_client() as client:
            async for record in _left(client, run):
                await _end(client, record, is_killed=record.run_id in {one.run_id for one in run.broken})
    except Exception as error:
        logger.info("Flow runs that were left open stay as they are: %s", type(error).__name__)


async def _left(client: PrefectClient, run: Run) -> AsyncIterator[RunRecord]:
    """Yield the earlier runs whose flow runs are open; with the catalog's lease held, none of them goes on."""
    earlier = await asyncio.to_thread(_earlier_runs, run)
    found = await client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            id=FlowRunFilterId(any_=[UUID(name) for name in earlier]),
            deployment_id=FlowRunFilterDeploymentId(is_null_=True),
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_OPEN)),
        )
    )
    for flow_run in found:
        yield earlier[str(flow_run.id)]


def _earlier_runs(run: Run) -> dict[str, RunRecord]:
    """Return the last runs of the catalog that have ended, by their flow runs."""
    with open_ledger(run.spec.settings) as ledger:
        records = ledger.runs.find(environment=run.record.environment, catalog=run.record.catalog)[:_MOST]
    killed, before = {one.run_id for one in run.broken}, run.record.started_at - _ENDING
    return {
        one.prefect_flow_run_id: one
        for one in records
        if one.prefect_flow_run_id and one.ended_at and (one.run_id in killed or one.ended_at < before)
    }


async def _end(client: PrefectClient, record: RunRecord, *, is_killed: bool) -> None:
    """End the task runs first: where that takes too long, the next run goes on with them."""
    flow_run = UUID(record.prefect_flow_run_id)
    inside = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
    still_open = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_OPEN)))
    while found := await client.read_task_runs(flow_run_filter=inside, task_run_filter=still_open):
        for task_run in found:
            message = KILLED if is_killed else _UNTOLD
            await client.set_task_run_state(task_run.id, Crashed(message=message), force=True)
    await client.set_flow_run_state(flow_run, _state(record, is_killed=is_killed), force=True)


def _state(record: RunRecord, *, is_killed: bool) -> State[Any]:
    if is_killed:
        return Crashed(message=KILLED)
    return state_of(record.outcome or Outcome.FAILED, f"{record.reason or record.outcome}. {_UNTOLD}")
