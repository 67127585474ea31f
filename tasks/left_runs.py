"""Flow runs of a catalog that their commands left open: the next run of the catalog ends them, as nobody else would.

A killed process leaves its flow run open, and one whose server was gone at its end. What a worker ran is not ours to
end: automations notice it, and it is begun again.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect import State, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.states import Crashed

from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.runs.run import Run
from patternmill.states import Outcome
from tasks.prefect_states import state_of

logger = logging.getLogger(__name__)

KILLED = "The process that ran this was killed. What it had begun is in the ledger; the next run resumed it."
_UNTOLD = "Its end did not reach this server: `patternmill status` has what became of it."
_IS_OPEN = {"type": {"any_": ["SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING"]}}
_PATIENCE = 5.0
#: How many runs are looked back.
_MOST = 20
#: An ended run may still complete its page.
_ENDING = timedelta(seconds=90)


async def end_left_runs(run: Run) -> None:
    """End what earlier runs of a run's catalog left open; a server that does not answer soon changes nothing."""
    try:
        async with asyncio.timeout(_PATIENCE), get_client() as client:
            ends = await asyncio.to_thread(_ends_of_earlier_runs, run)
            left = {"id": {"any_": list(ends)}, "deployment_id": {"is_null_": True}, "state": _IS_OPEN}
            for flow_run in await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(left)):
                await _end(client, flow_run.id, ends[flow_run.id])
    except Exception as error:
        logger.info("Flow runs that were left open stay as they are: %s", type(error).__name__)


def _ends_of_earlier_runs(run: Run) -> dict[UUID, State[Any]]:
    """Return how the last runs of the catalog ended, by their flow runs. With its lease held, none of them goes on."""
    with open_ledger(run.spec.settings) as ledger:
        records = ledger.runs.find(environment=run.record.environment, catalog=run.record.catalog)[:_MOST]
    killed, before = {record.run_id for record in run.broken}, run.record.started_at - _ENDING
    return {
        UUID(record.prefect_flow_run_id): Crashed(message=KILLED)
        if record.run_id in killed
        else _untold_end(record)
        for record in records
        if record.prefect_flow_run_id
        and record.ended_at
        and (record.run_id in killed or record.ended_at < before)
    }


def _untold_end(record: RunRecord) -> State[Any]:
    return state_of(record.outcome or Outcome.FAILED, f"{record.reason or record.outcome}. {_UNTOLD}")


async def _end(client: PrefectClient, flow_run: UUID, state: State[Any]) -> None:
    """End the task runs first: where that takes too long, the next run goes on with them."""
    inside = FlowRunFilter.model_validate({"id": {"any_": [flow_run]}})
    still_open = TaskRunFilter.model_validate({"state": _IS_OPEN})
    crashed = state if state.is_crashed() else Crashed(message=_UNTOLD)
    while left := await client.read_task_runs(flow_run_filter=inside, task_run_filter=still_open):
        for task_run in left:
            await client.set_task_run_state(task_run.id, crashed, force=True)
    await client.set_flow_run_state(flow_run, state, force=True)
