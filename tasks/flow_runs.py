"""The flow run of a run at the server: its name, what a person makes of it meanwhile, and those that were left open.

A server that does not answer soon changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from socket import gethostname
from typing import Any
from uuid import UUID

from prefect import State, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import StateType
from prefect.exceptions import Pause
from prefect.runtime import deployment, flow_run
from prefect.states import Crashed

from patternmill.ledger.ledger import open_ledger
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome
from tasks.markup import line, logged
from tasks.prefect_states import sentences, state_of

logger = logging.getLogger(__name__)

CANCELLED = "Cancelled in the Prefect UI."
SUSPENDED = "Suspended in the Prefect UI."
_TOO_LATE = "Cancelled in the Prefect UI when nothing was left to be kept from being bought."
_NOT_RESUMED = "Paused in the Prefect UI, and not resumed."
_KILLED = "The process that ran this was killed. What it had begun is in the ledger; the next run resumed it."
_UNTOLD = "Its end did not reach this server: `patternmill status` has what became of it."
_IS_OPEN = {"type": {"any_": ["SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING"]}}
#: How many runs are looked back for those that were left open.
_MOST = 20
#: An ended run may still complete its page.
_ENDING = timedelta(seconds=90)


@asynccontextmanager
async def _asking(what: str, seconds: float = 3.0) -> AsyncIterator[PrefectClient]:
    """Yield a client of the server for some seconds; log what is raised meanwhile, after what comes of that: `what`."""
    try:
        async with asyncio.timeout(seconds), get_client() as client:
            yield client
    except Exception as error:
        logger.info("%s: %s", what, type(error).__name__)


async def name_flow_run(spec: RunSpec) -> None:
    """Name the flow run after its catalog, tag it with catalog and environment, and label it for messages about it."""
    catalog, environment = line(spec.catalog), line(spec.settings.environment)
    async with _asking("The flow run keeps its name") as client:
        own = UUID(str(flow_run.id))
        name = line(f"{flow_run.name.partition(' ')[0]} {spec.catalog}")
        await client.update_flow_run(own, name=name, tags=sorted({*flow_run.tags, catalog, environment}))
        about = {"catalog": catalog, "environment": environment, "machine": line(gethostname())}
        await client.update_flow_run_labels(own, {f"patternmill.{key}": about[key] for key in about})


async def heed_state(run: Run) -> None:
    """Begin nothing new while the flow run is paused; stop once it is cancelled or suspended. Called with each beat."""
    state = await _current_state()
    if state is None:
        return
    if state.type is StateType.CANCELLING:
        run.stop(CANCELLED)
    elif _is_suspended(state):
        run.stop(SUSPENDED)
    elif run.engine.is_paused and state.is_final():
        run.stop(_NOT_RESUMED)
    else:
        run.engine.pause(state.type is StateType.PAUSED)


async def heed_stop(run: Run) -> None:
    """Record, for a stopped run that has drained, that it was cancelled, instead of the signal that came with that.

    A suspended one ends its process, with its results: resumed, its flow run begins from the top.
    """
    state = await _current_state() if run.is_stopped else None
    if state is None:
        return
    if state.type is StateType.CANCELLING:
        run.halt.explain_stop(CANCELLED)
    elif _is_suspended(state):
        await run.finish()
        raise Pause(state=state)


def _is_suspended(state: State[Any]) -> bool:
    """Return whether the state is Suspended, of a deployment's run: no other can be begun again."""
    return state.name == "Suspended" and deployment.id is not None


async def final_state(state: State[Any]) -> State[Any]:
    """Return the state that a run ends in, where its end is `state`: one that is being cancelled ends as cancelled.

    The server would call it Cancelled, without its numbers, also where all was made before the cancellation came.
    """
    now = await _current_state() if state.type is not StateType.CANCELLED else None
    if now is None or now.type is not StateType.CANCELLING:
        return state
    message = sentences(state.message or "", _TOO_LATE)
    return State(type=StateType.CANCELLED, name=state.name, message=message)


async def _current_state() -> State[Any] | None:
    async with _asking("The state of the flow run cannot be read") as client:
        return (await client.read_flow_run(UUID(str(flow_run.id)))).state
    return None


async def end_left_runs(run: Run) -> None:
    """End what earlier runs of a run's catalog left open, as nobody else would.

    A killed process leaves its flow run open, and so does one whose server was gone at its end. What a worker ran is
    not ended here: automations notice it, and it is begun again.
    """
    async with _asking("Flow runs that were left open stay as they are", 5.0) as client:
        ends = await asyncio.to_thread(_ends_of_earlier_runs, run)
        left = {"id": {"any_": list(ends)}, "deployment_id": {"is_null_": True}, "state": _IS_OPEN}
        for open_run in await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(left)):
            await _end(client, open_run.id, ends[open_run.id])
            logged(f"Note: {open_run.name}, which its command left open in the Prefect UI, was ended.")


def _ends_of_earlier_runs(run: Run) -> dict[UUID, State[Any]]:
    """Return how the last runs of the catalog ended, by their flow runs. With its lease held, none of them goes on."""
    with open_ledger(run.spec.settings) as ledger:
        records = ledger.runs.find(environment=run.record.environment, catalog=run.record.catalog)[:_MOST]
    killed, before = {record.run_id for record in run.broken}, run.record.started_at - _ENDING
    ends: dict[UUID, State[Any]] = {}
    for record in records:
        if record.prefect_flow_run_id and record.run_id in killed:
            ends[UUID(record.prefect_flow_run_id)] = Crashed(message=_KILLED)
        elif record.prefect_flow_run_id and record.ended_at and record.ended_at < before:
            why = sentences(record.reason or str(record.outcome), _UNTOLD)
            ends[UUID(record.prefect_flow_run_id)] = state_of(record.outcome or Outcome.FAILED, why)
    return ends


async def _end(client: PrefectClient, left: UUID, state: State[Any]) -> None:
    """End the task runs first: where that takes too long, the next run goes on with them."""
    inside = FlowRunFilter.model_validate({"id": {"any_": [left]}})
    still_open = TaskRunFilter.model_validate({"state": _IS_OPEN})
    crashed = state if state.is_crashed() else Crashed(message=_UNTOLD)
    while task_runs := await client.read_task_runs(flow_run_filter=inside, task_run_filter=still_open):
        for task_run in task_runs:
            await client.set_task_run_state(task_run.id, crashed, force=True)
    await client.set_flow_run_state(left, state, force=True)
