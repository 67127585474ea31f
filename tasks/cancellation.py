"""The state of flow runs: whether one is cancelled in the Prefect UI, the signal being that of a stop; how it ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from uuid import UUID

from prefect import State, get_client
from prefect.client.schemas.objects import StateType
from prefect.runtime import flow_run

from patternmill.runs.run import Run

logger = logging.getLogger(__name__)

CANCELLED = "Cancelled in the Prefect UI."
_TOO_LATE = "Cancelled in the Prefect UI when nothing was left to be kept from being bought."
_PATIENCE = 3.0


async def explain_stop(run: Run) -> None:
    """Record a cancellation as the reason of a stopped run, instead of the signal. Asked after the drain."""
    if await is_cancelled():
        run.halt.explain_stop(CANCELLED)


async def final_state(state: State[Any]) -> State[Any]:
    """That of a run whose end is `state`: a run that is being cancelled has to end as cancelled at the server.

    It would be called Cancelled there, without its numbers, also where all was made before the cancellation came.
    """
    if state.type is StateType.CANCELLED or not await is_cancelled():
        return state
    return State(type=StateType.CANCELLED, name=state.name, message=f"{state.message}. {_TOO_LATE}")


async def is_cancelled() -> bool:
    """Whether a person cancels this flow run, as far as the server answers; a stopped worker leaves its state alone."""
    try:
        async with asyncio.timeout(_PATIENCE), get_client() as client:
            state = (await client.read_flow_run(UUID(str(flow_run.id)))).state
    except Exception as error:
        logger.info("The state of flow run %s cannot be read: %s", flow_run.id, type(error).__name__)
        return False
    return state is not None and state.type is StateType.CANCELLING
