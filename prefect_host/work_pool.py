"""The work pool of our deployments: its name, and its job template, with which a run sets only parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient

POOL = "patternmill"
TEMPLATE = Path(__file__).resolve().parent.parent / "deployments" / "process-pool.json"


def job_template() -> dict[str, Any]:
    template: dict[str, Any] = json.loads(TEMPLATE.read_text("utf-8"))
    return template


async def ensure_pool(client: PrefectClient) -> None:
    """Make our pool, or update the template of an existing one; its other settings stay."""
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.exceptions import ObjectNotFound

    template = job_template()
    try:
        await client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=template))
    except ObjectNotFound:
        await client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))
