"""The work pool of our deployments: its name, and the template that leaves a run nothing to set but parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient

POOL = "patternmill"
TEMPLATE = Path(__file__).resolve().parent.parent / "deployments" / "process-pool.json"


def job_template() -> dict[str, Any]:
    """The base job template of our pool: no variable that a run could set."""
    template: dict[str, Any] = json.loads(TEMPLATE.read_text("utf-8"))
    return template


async def ensure_pool(client: PrefectClient) -> None:
    """Make our pool, or bring one of an earlier version to the template; whatever else was set in it stays."""
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.exceptions import ObjectNotFound

    template = job_template()
    try:
        await client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=template))
    except ObjectNotFound:
        await client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))
