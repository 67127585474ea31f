"""Closes on the screen what killed processes left open there, and questions that nobody has to answer any more."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast
from uuid import UUID

from prefect import State, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Crashed

#: The next run goes on with what is left after so many seconds.
_PATIENCE = 15.0
_OPEN = {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}
_DIED = "The process that ran this is gone. What it had bought is in the ledger; later runs go on with it."
_SETTLED = "Another run of the catalog has begun or asks since: this plan is no longer the newest."
#: How a flow run with such tags ended, as far as that is known, and the ends of its task runs by name.
OnRecord = Callable[[list[str]], tuple[State[Any] | None, Mapping[str, State[Any]]]]
_log = logging.getLogger(__name__)


def catalog_tag(environment: str, catalog: str) -> str:
    """Return the tag of all runs of a catalog."""
    return f"{environment}:{catalog}"


async def end_dead_runs(
    environment: str, catalog: str, on_record: OnRecord = lambda tags: (None, {})
) -> None:
    """End the open runs of a catalog that began before this flow run, with their task runs, and its open questions.

    So are task runs of this flow run before it was suspended or retried. All end as they did on record, which the
    server may have missed. Call it only with the catalog's lease held: none of them can be alive then.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    mine = context.flow_run
    earlier: dict[str, Any] = {
        "tags": {"all_": [catalog_tag(environment, catalog)]},
        "id": {"not_any_": [mine.id]},
        "start_time": {"before_": mine.start_time},
    }
    mine_before = {"id": {"any_": [mine.id]}}, {"start_time": {"before_": context.start_time}}
    for pause in (0.5, 2.0, 0.0):
        try:
            async with asyncio.timeout(_PATIENCE), get_client() as client:
                await _end_tasks(client, *mine_before, on_record)
                await _end(client, earlier, on_record)
                await end_questions(client, await open_questions(client, environment, catalog))
                return
        except Exception as error:  # whatever the client raises
            _log.warning("Runs of dead processes stay open on the screen: %r", error)
            await asyncio.sleep(pause)


async def _end(client: PrefectClient, earlier: dict[str, Any], on_record: OnRecord) -> None:
    """End the task runs first, those of flow runs too that a worker has ended itself."""
    await _end_tasks(client, earlier, {}, on_record)
    dead = FlowRunFilter.model_validate(earlier | {"state": _OPEN})
    for flow_run in await client.read_flow_runs(flow_run_filter=dead):
        state = on_record(flow_run.tags)[0] or Crashed(message=_DIED)
        await client.set_flow_run_state(flow_run.id, state, force=True)


async def _end_tasks(
    client: PrefectClient, flow_runs: dict[str, Any], which: dict[str, Any], on_record: OnRecord
) -> None:
    left: dict[str, Any] = {
        "flow_run_filter": FlowRunFilter.model_validate(flow_runs),
        "task_run_filter": TaskRunFilter.model_validate({"state": _OPEN, **which}),
    }
    while task_runs := await client.read_task_runs(**left, limit=100):
        owners = {"id": {"any_": [run.flow_run_id for run in task_runs]}}
        found = await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(owners))
        known = {owner.id: on_record(owner.tags)[1] for owner in found}
        for run in task_runs:
            state = known.get(cast(UUID, run.flow_run_id), {}).get(run.name) or Crashed(message=_DIED)
            await client.set_task_run_state(run.id, state, force=True)


async def open_questions(client: PrefectClient, environment: str, catalog: str) -> list[FlowRun]:
    """Return the flow runs of a catalog that wait for the answer to a form, without this one."""
    context = FlowRunContext.get()
    mine = [context.flow_run.id] if context and context.flow_run else []
    waiting = {
        "tags": {"all_": [catalog_tag(environment, catalog)]},
        "id": {"not_any_": mine},
        "state": {"type": {"any_": ["PAUSED"]}},
    }
    runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(waiting))
    return [run for run in runs if run.state and run.state.state_details.run_input_keyset]


async def end_questions(client: PrefectClient, waiting: Iterable[FlowRun]) -> None:
    """End flow runs whose question need not be answered any more."""
    for flow_run in waiting:
        await client.set_flow_run_state(flow_run.id, Cancelled(message=_SETTLED), force=True)
