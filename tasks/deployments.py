"""The deployments at a Prefect server: registered as prefect.yaml has them, but for what people set there.

    python -m tasks.deployments         (at the server of PREFECT_API_URL)

Parameters, schedules, pauses and limits stay as the server has them. Prefect's own `prefect deploy` sets parameters,
and the schedules that its file names, back to what the file says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import (
    DeploymentScheduleCreate,
    DeploymentScheduleUpdate,
    DeploymentUpdate,
    WorkPoolCreate,
    WorkPoolUpdate,
)
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from pydantic import ValidationError

from patternmill.errors import ConfigurationError
from prefect_host.client_settings import POOL, TEMPLATE

CHECKOUT = Path(__file__).resolve().parent.parent
FILE = CHECKOUT / "deployments" / "prefect.yaml"
#: The tag of runs that a catalog's own schedule begins; an automation notices when the next one does not come.
SCHEDULED = "patternmill-scheduled"


Notify = Callable[[str], None]


async def register_deployments(notify: Notify) -> None:
    """Register the work pool and the deployments of prefect.yaml; `notify` gets a line for each that loses parameters.

    Other deployments of the same flows in the pool get the flow's new form and folder too.
    """
    async with get_client() as client:
        await _register_pool(client)
        for name, entry in _entries().items():
            of_flow = FlowFilter(name=FlowFilterName(any_=[name]))
            registered = await client.read_deployments(flow_filter=of_flow)
            code = _code_of(entry)
            text = {"description": entry["description"], "tags": entry.get("tags", [])}
            for deployment in registered:
                if deployment.work_pool_name == POOL:
                    is_of_file = deployment.name == name
                    await _renew(client, deployment, code | (text if is_of_file else {}), notify)
            if name not in {deployment.name for deployment in registered}:
                flow_id = await client.create_flow_from_name(name)
                parameters = entry.get("parameters")
                await client.create_deployment(flow_id, name, parameters=parameters, **code, **text)


async def schedule_refresh(parameters: Mapping[str, Any], cron: str, timezone: str) -> str:
    """Make or replace the deployment that refreshes a catalog by a schedule; return its name.

    Raises ConfigurationError for a schedule that Prefect does not understand.
    """
    try:
        schedule = DeploymentScheduleCreate(schedule=CronSchedule(cron=cron, timezone=timezone), slug="cron")
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ").rstrip(".")
        raise ConfigurationError(
            f"The schedule {cron!r} ({timezone}) cannot be read: {why}.",
            remedy='Write minute, hour, day, month and weekday: --cron "0 5 * * *" --timezone Europe/Berlin.',
        ) from None
    entry = _entries()["catalog-refresh"]
    name = f"{parameters['catalog']} ({parameters['environment']})"
    text = {"description": entry["description"], "tags": [*entry["tags"], SCHEDULED]}
    given: dict[str, Any] = {"parameters": dict(parameters), "schedules": [schedule], "paused": False}
    async with get_client() as client:
        await _register_pool(client)
        flow_id = await client.create_flow_from_name(entry["name"])
        await client.create_deployment(flow_id, name, **given, **_code_of(entry), **text)
    return name


def _entries() -> dict[str, dict[str, Any]]:
    """Return the deployments of the file by their names, which are those of their flows."""
    return {entry["name"]: entry for entry in yaml.safe_load(FILE.read_text("utf-8"))["deployments"]}


def _code_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a deployment has of its flow's code, and where that is. Raises what the code does on import."""
    flow: Flow[..., Any] = load_flow_from_entrypoint(
        str(CHECKOUT / entry["entrypoint"]), use_placeholder_flow=False
    )
    return {
        "entrypoint": entry["entrypoint"],
        "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": str(CHECKOUT)}}],
        "parameter_openapi_schema": parameter_schema(flow).model_dump(exclude_unset=True),
        "enforce_parameter_schema": True,
        "work_pool_name": POOL,
    }


async def _renew(
    client: PrefectClient, deployment: DeploymentResponse, code: Mapping[str, Any], notify: Notify
) -> None:
    """Update what a deployment has of the code, and drop the parameters that its flow has no longer."""
    properties = code["parameter_openapi_schema"]["properties"]

    def without_dropped(parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in parameters.items() if name in properties}

    given = [deployment.parameters, *(schedule.parameters for schedule in deployment.schedules)]
    dropped = sorted({name for parameters in given for name in parameters} - set(properties))
    changed = dict(code)
    if dropped:
        notify(f"{deployment.name}: dropped what its flow has no longer: {', '.join(dropped)}.")
        changed["parameters"] = without_dropped(deployment.parameters)
        changed["schedules"] = [
            DeploymentScheduleUpdate(
                **schedule.model_dump(include={"schedule", "active", "slug"}),
                parameters=without_dropped(schedule.parameters),
            )
            for schedule in deployment.schedules
        ]
    try:
        await client.update_deployment(deployment.id, DeploymentUpdate(**changed))
    except PrefectHTTPStatusError as refused:
        notify(f"{deployment.name} stays as it was: {refused.response.text}")


async def _register_pool(client: PrefectClient) -> None:
    """Make the work pool, or renew its template; its limit and pause stay."""
    template = json.loads(TEMPLATE.read_text("utf-8"))
    try:
        await client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=template))
    except ObjectNotFound:
        pool = WorkPoolCreate(name=POOL, type="process", base_job_template=template)
        await client.create_work_pool(pool)


if __name__ == "__main__":
    asyncio.run(register_deployments(print))
