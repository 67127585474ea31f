"""The parts of a spread run as Prefect's flow runs: started on workers, checked, and closed on the page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from prefect import get_client
from prefect.client.schemas.objects import StateType, WorkerStatus
from prefect.deployments.flow_runs import arun_deployment
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Crashed

from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.runs.assignment import assignment
from patternmill.runs.part_worker import Part, PartWork
from patternmill.runs.spread import PartGrant, WorkerHandle
from prefect_host.record import close_inside
from prefect_host.service_blocks import addressed_settings
from prefect_host.stop_signals import Stopping
from tasks.cancellation import flow_run_state, is_cancelled

logger = logging.getLogger(__name__)

#: The deployment that workers run parts of: see deployments/prefect.yaml.
DEPLOYMENT = "part/part"
_PATIENCE = 30.0
_REMEDY = "See deployments/README.md on several machines, or leave --spread out. Nothing was spent."
_LOST = "The process that ran this was lost. What it had begun is in the ledger, and was assigned to another."
_UNNEEDED = "No longer needed before it began."


async def require_workers() -> None:
    """Raise ConfigurationError when no worker is online for the parts of a run that should be spread."""
    async with get_client() as client:
        try:
            deployment = await client.read_deployment_by_name(DEPLOYMENT)
        except ObjectNotFound:
            raise ConfigurationError(
                f"The Prefect server has no deployment {DEPLOYMENT!r}.",
                remedy=f"Run `prefect deploy --all --prefect-file deployments/prefect.yaml`. {_REMEDY}",
            ) from None
        pool = deployment.work_pool_name or ""
        workers = await client.read_workers_for_work_pool(pool)
    if not any(worker.status is WorkerStatus.ONLINE for worker in workers):
        raise ConfigurationError(
            f"No worker of the work pool {pool!r} is online.",
            remedy=f"Start `patternmill worker` on each machine. {_REMEDY}",
        )


class Workers:
    """Assigns parts to whichever worker starts them."""

    async def start(self, grant: PartGrant) -> WorkerHandle:
        # Starting the same part under the same grant again returns the same flow run.
        key = f"{grant.run_id}-{grant.number}-{grant.grant}"
        parameters = {
            "run_id": grant.run_id,
            "number": grant.number,
            "grant": grant.grant,
            "environment": grant.environment,
        }
        starting = arun_deployment(
            DEPLOYMENT, parameters=parameters, flow_run_name=grant.name, timeout=0, idempotency_key=key
        )
        return _FlowRun((await asyncio.wait_for(starting, _PATIENCE)).id)


class _FlowRun:
    """A part's flow run. A server that does not answer delays nothing: the part's state is in the ledger."""

    def __init__(self, run_id: UUID) -> None:
        self._id = run_id

    async def is_gone(self) -> bool:
        return await flow_run_state(self._id, _PATIENCE) in _FINAL

    async def dismiss(self) -> None:
        """Set it to Cancelled if it never began, to Crashed if it did, so that it is not shown as running."""
        state = await flow_run_state(self._id, _PATIENCE)
        if state is None or state in _FINAL:
            return
        begun = state is not StateType.SCHEDULED
        try:
            async with asyncio.timeout(_PATIENCE), get_client() as client:
                ending: Any = Crashed(message=_LOST) if begun else Cancelled(message=_UNNEEDED)
                await client.set_flow_run_state(self._id, ending, force=True)
                if begun:
                    await close_inside(client, self._id)
        except Exception as error:
            logger.info("A part's flow run stays open on the page: %s", type(error).__name__)

    async def await_end(self) -> None:
        """Wait for its own final state, which comes a moment after its end in the ledger."""
        try:
            await asyncio.wait_for(self._final(), _PATIENCE)
        except TimeoutError:
            await self.dismiss()

    async def _final(self) -> None:
        while True:
            state = await flow_run_state(self._id, _PATIENCE)
            if state is None or state in _FINAL:
                return
            await asyncio.sleep(0.5)


_FINAL = frozenset({StateType.COMPLETED, StateType.FAILED, StateType.CANCELLED, StateType.CRASHED})


@asynccontextmanager
async def begun_part(
    run_id: str, number: int, grant: int, environment: str, stopping: Stopping
) -> AsyncIterator[Part]:
    """The part, begun; its end goes into the ledger. Raises LeaseLost when it was reassigned."""
    assigned = await asyncio.to_thread(assignment, RunId(run_id), number, environment)
    work = PartWork(replace(assigned, settings=await addressed_settings(assigned.settings)), grant)
    async with work as part:
        stopping.attach(part)
        yield part
        if stopping.is_requested and await is_cancelled():
            work.cancelled = "Cancelled in the Prefect UI, by one of its parts."
