"""The deployments on a Prefect server: registered as prefect.yaml has them, but for what people set there."""

import functools
from pathlib import Path
from typing import Any

import yaml
from prefect import Flow, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate, DeploymentUpdate, WorkPoolCreate
from prefect.client.schemas.filters import FlowFilter, FlowRunFilter, WorkPoolFilter
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectAlreadyExists
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from pydantic import ValidationError

from patternmill.errors import Refusal
from patternmill.files import code_version

POOL = "patternmill"
_ROOT = Path(__file__).resolve().parent.parent
#: The name of the one schedule that `--cron` sets; others are people's.
_SLUG = "refresh"


async def register_deployments(environment: str) -> list[str]:
    """Register the work pool and the deployments for runs in this folder, and return their names.

    What people set on the server stays: parameters, schedules, pauses, limits and tags.
    """
    async with get_client() as client:
        await _register_pool(client)
        for name, entry in _entries().items():
            registered = await _registered(client, entry)
            for deployment in registered.values():  # those of schedules too, which keep their folder
                moved = _folder() if deployment.name == name else {}
                await _update(client, deployment, _code(entry, environment, deployment) | moved)
            if name not in registered:
                await _create(client, name, entry, environment, {"environment": environment})
        return list(_entries())


async def schedule_refresh(file: str, catalog: str, environment: str, cron: str) -> str:
    """Refresh a catalog by a schedule, in this folder: sets the one that this made before, and keeps all others.

    Returns what a person is told. Raises Refusal for a schedule that cannot be read.
    """
    first = await _first_of(cron)
    schedule = CronSchedule(cron=cron, timezone="UTC")
    entry, name = _entries()["catalog-refresh"], f"{catalog} ({environment})"
    entry |= {"tags": [*entry["tags"], "patternmill-scheduled"]}
    parameters = {"file": file, "catalog": catalog, "environment": environment}
    async with get_client() as client:
        await _register_pool(client)
        if before := (await _registered(client, entry)).get(name):
            code = _code(entry, environment, before) | _folder()
            await _update(client, before, code | {"parameters": before.parameters | parameters})
        deployment_id = before.id if before else await _create(client, name, entry, environment, parameters)
        if mine := [one for one in before.schedules if one.slug == _SLUG] if before else []:
            await client.update_deployment_schedule(deployment_id, mine[0].id, schedule=schedule, active=True)
        else:
            new = DeploymentScheduleCreate(schedule=schedule, slug=_SLUG)
            await client.create_deployment_schedules(deployment_id, [new])
    where = "wherever `patternmill up` runs on this Prefect server"
    return f"Catalog {name} is refreshed at `{cron}` (UTC), next on {first}, {where}."


async def schedules() -> list[dict[str, Any]]:
    """Return the schedules of our deployments, whether each is on, and when the deployment is due next."""
    ours = WorkPoolFilter.model_validate({"name": {"any_": [POOL]}})
    found: list[dict[str, Any]] = []
    async with get_client() as client:
        for deployment in await client.read_deployments(work_pool_filter=ours):
            due = {"deployment_id": {"any_": [deployment.id]}, "state": {"type": {"any_": ["SCHEDULED"]}}}
            runs = await client.read_flow_runs(
                flow_run_filter=FlowRunFilter.model_validate(due), sort=FlowRunSort.EXPECTED_START_TIME_ASC
            )
            times = [
                run.expected_start_time for run in runs if run.auto_scheduled and run.expected_start_time
            ]
            for one in deployment.schedules:
                rule = str(one.schedule.model_dump(exclude_none=True).get("cron") or one.schedule)
                is_on = bool(one.active and not deployment.paused)
                due_next = f"{times[0]:%Y-%m-%d %H:%M}" if times and is_on else None
                found.append({"deployment": deployment.name, "rule": rule, "on": is_on, "next": due_next})
    return found


async def _first_of(cron: str) -> str:
    """Return when a schedule is due next, by the code with which the server plans. Raises Refusal."""
    from prefect.server.schemas.schedules import CronSchedule as Planned

    try:
        if len(cron.split()) > 5:
            raise ValueError("it has more than five fields")
        (first,) = await Planned(cron=cron, timezone="UTC").get_dates(1)
    except ValueError as error:
        why = str(error)
        if isinstance(error, ValidationError):
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
        never = "failed to find next date" in why
        message = f"{cron!r} never comes." if never else f"{cron!r} cannot be read: {why}."
        remedy = 'Write minute, hour, day, month and weekday: --cron "0 5 * * *".'
        raise Refusal("wrong_option", message, remedy) from None
    return f"{first:%Y-%m-%d %H:%M}"


def _entries() -> dict[str, dict[str, Any]]:
    text = (_ROOT / "deployments" / "prefect.yaml").read_text("utf-8")
    return {entry["name"]: entry for entry in yaml.safe_load(text)["deployments"]}


def _entrypoint(entry: dict[str, Any]) -> str:
    return str(_ROOT / entry["entrypoint"])


@functools.cache
def _flow(entrypoint: str) -> Flow[..., Any]:
    return load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)


async def _registered(client: PrefectClient, entry: dict[str, Any]) -> dict[str, DeploymentResponse]:
    """Return the deployments of an entry's flow in our pool by their names."""
    found = await client.read_deployments(
        flow_filter=FlowFilter.model_validate({"name": {"any_": [_flow(_entrypoint(entry)).name]}}),
        work_pool_filter=WorkPoolFilter.model_validate({"name": {"any_": [POOL]}}),
    )
    return {deployment.name: deployment for deployment in found}


def _code(
    entry: dict[str, Any], environment: str, registered: DeploymentResponse | None = None
) -> dict[str, Any]:
    """Return what a deployment has of the code. Environments that other workers have registered stay choices."""
    form = parameter_schema(_flow(_entrypoint(entry))).model_dump(exclude_unset=True)
    about = form["properties"]["environment"]
    choices = {environment}
    if registered:
        before = (registered.parameter_openapi_schema or {}).get("properties", {}).get("environment", {})
        choices |= {*before.get("enum", ()), registered.parameters.get("environment") or environment}
    kept = {name: about[name] for name in ("title", "description", "position") if name in about}
    form["properties"]["environment"] = {**kept, "type": "string", "enum": sorted(choices)}
    return {
        "entrypoint": _entrypoint(entry), "parameter_openapi_schema": form, "version": code_version(),
    }  # fmt: skip


def _folder() -> dict[str, Any]:
    """Return what has runs work in this folder, whose modules none of them imports."""
    code = {"prefect.deployments.steps.set_working_directory": {"directory": str(_ROOT)}}
    return {"pull_steps": [code, {"tasks.folder.work_in": {"directory": str(Path.cwd())}}]}


async def _create(
    client: PrefectClient, name: str, entry: dict[str, Any], environment: str, parameters: dict[str, Any]
) -> Any:
    about = {"description": entry["description"], "tags": entry["tags"], "parameters": parameters}
    ours: Any = {
        "work_pool_name": POOL,
        "enforce_parameter_schema": True,
        **_code(entry, environment),
        **_folder(),
    }
    flow_id = await client.create_flow_from_name(_flow(_entrypoint(entry)).name)
    return await client.create_deployment(flow_id, name, **about, **ours)


async def _update(client: PrefectClient, deployment: DeploymentResponse, changes: dict[str, Any]) -> None:
    await client.update_deployment(deployment.id, DeploymentUpdate(**changes))


async def _register_pool(client: PrefectClient) -> None:
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    try:
        await client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))
    except ObjectAlreadyExists:
        return
