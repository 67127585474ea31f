"""Whether a stopped flow run was cancelled in the Prefect UI: the signal is the same as of a stop."""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from prefect import get_client
from prefect.client.schemas.objects import StateType
from prefect.runtime import flow_run

from patternmill.runs.run import ActiveRun

logger = logging.getLogger(__name__)

CANCELLED = "Cancelled in the Prefect UI."
_PATIENCE = 3.0


async def explain_stop(run: ActiveRun) -> None:
    """Record a cancellation as the reason of a stopped run, instead of the signal. Asked after the drain."""
    if await is_cancelled():
        run.halt.explain_stop(CANCELLED)


async def is_cancelled() -> bool:
    """Whether a person cancels this flow run: a worker that is stopped leaves its state alone."""
    try:
        async with asyncio.timeout(_PATIENCE), get_client() as client:
            state = (await client.read_flow_run(UUID(str(flow_run.id)))).state
    except Exception as error:
        logger.info("Why this run is stopped cannot be asked: %s", type(error).__name__)
        return False
    return state is not None and state.type is StateType.CANCELLING
