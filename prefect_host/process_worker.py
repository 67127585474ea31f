"""Prefect's process worker, restricted: a run chooses only its parameters, and a stop lets runs drain."""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC
from typing import TYPE_CHECKING, Any

from prefect.workers.process import ProcessJobConfiguration, ProcessWorker

from prefect_host.client_settings import TEMPLATE

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun

#: What anyio says of a run that is begun while its last process still counts; Prefect's worker would end by it.
_STILL_ENDING = "already holding one of this CapacityLimiter's tokens"

logger = logging.getLogger(__name__)


class OwnConfiguration(ProcessJobConfiguration):
    """Command, environment and folder are the worker's own, whatever the server, pool, deployment or run ask for."""

    @classmethod
    async def from_template_and_values(
        cls,
        base_job_template: dict[str, Any],
        values: dict[str, Any],
        client: PrefectClient | None = None,
    ) -> OwnConfiguration:
        """Fill the template, and refuse what is not the run's to choose. Raises ValueError."""
        fill = super().from_template_and_values
        filled: ProcessJobConfiguration = await fill(base_job_template, values, client=client)
        foreign = [name for name in ("command", "working_dir") if getattr(filled, name) is not None]
        foreign += [f"env {name}" for name in sorted(filled.env)]
        if foreign:
            raise ValueError(
                f"The run, its deployment or its work pool sets {', '.join(foreign)}. A run chooses its parameters "
                "alone; what else it needs is set in the worker's environment. Nothing was begun."
            )
        return cls(name=filled.name, labels=filled.labels, stream_output=filled.stream_output)


# Prefect does not register an ABC, which would replace its own worker of this type with a warning.
class DrainingWorker(ProcessWorker, ABC):
    """Starts no more runs once `stop` is set."""

    job_configuration = OwnConfiguration

    def __init__(self, stop: asyncio.Event, **options: Any) -> None:
        super().__init__(**options)
        self._stop = stop

    @classmethod
    def get_default_base_job_template(cls) -> dict[str, Any]:
        """Return the template of our work pool."""
        return dict(json.loads(TEMPLATE.read_text("utf-8")))

    async def get_and_submit_flow_runs(self) -> list[FlowRun]:
        """Begin the runs that are due, unless this worker is to stop."""
        if self._stop.is_set():
            return []
        try:
            return await super().get_and_submit_flow_runs()
        except RuntimeError as error:
            if _STILL_ENDING not in str(error):
                raise
            # A run that was rescheduled before this worker was rid of its last process; it comes with the next poll.
            logger.info("A run that is to begin again is still ending here.")
            return []
