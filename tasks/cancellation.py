"""The state of a flow run at the server: what a person makes of a run that goes on.

A server that does not answer soon changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from socket import gethostname
from typing import Any
from uuid import UUID

from prefect import State, get_client
from prefect.client.schemas.objects import StateType
from prefect.exceptions import Pause
from prefect.runtime import deployment, flow_run
from prefect.types import KeyValueLabels

from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec
from tasks.markup import line

logger = logging.getLogger(__name__)

CANCELLED = "Cancelled in the Prefect UI."
SUSPENDED = "Suspended in the Prefect UI."
_TOO_LATE = "Cancelled in the Prefect UI when nothing was left to be kept from being bought."
_NOT_RESUMED = "Paused in the Prefect UI, and not resumed."
_PATIENCE = 3.0


async def name_flow_run(spec: RunSpec) -> None:
    """Name the flow run after its catalog, tag it with catalog and environment, and label it for messages about it."""
    try:
        async with asyncio.timeout(_PATIENCE), get_client() as client:
            named = await client.read_flow_run(UUID(str(flow_run.id)))
            verb = named.name.partition(" ")[0]
            tags = {*named.tags, line(spec.catalog), line(spec.settings.environment)}
            await client.update_flow_run(named.id, name=line(f"{verb} {spec.catalog}"), tags=sorted(tags))
            labels: KeyValueLabels = {
                "patternmill.catalog": line(spec.catalog),
                "patternmill.environment": line(spec.settings.environment),
                "patternmill.machine": line(gethostname()),
            }
            await client.update_flow_run_labels(named.id, labels)
    except Exception as error:
        logger.info("Flow run %s keeps its name: %s", flow_run.id, type(error).__name__)


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
    return State(type=StateType.CANCELLED, name=state.name, message=f"{state.message}. {_TOO_LATE}")


async def _current_state() -> State[Any] | None:
    try:
        async with asyncio.timeout(_PATIENCE), get_client() as client:
            return (await client.read_flow_run(UUID(str(flow_run.id)))).state
    except Exception as error:
        logger.info("The state of flow run %s cannot be read: %s", flow_run.id, type(error).__name__)
        return None
