"""Asks a Prefect server about an installation: whether it answers, and whether it does what is left to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from patternmill.errors import PatternmillError
from patternmill.passwords import mask_passwords
from patternmill.upkeep.facts import Fact, fault, ok, refused, warning
from prefect_host import client_settings
from prefect_host.client_settings import API_URL, POOL, TEMPLATE, WORKER_LOG

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun, Worker, WorkPool
    from prefect.client.schemas.responses import DeploymentResponse
    from prefect.events.schemas.automations import Automation

_REGISTER = "Run `python -m tasks.deployments`, or start `patternmill up` again."
#: How many names a fact lists.
_MOST_NAMED = 5


@dataclass(frozen=True)
class ServerRecord:
    """Holds what a server has of ours; without a pool nothing was registered there."""

    pool: WorkPool | None
    workers: Sequence[Worker] = ()
    deployments: Sequence[DeploymentResponse] = ()
    automations: Sequence[Automation] = ()
    #: Flow runs that are due and not begun.
    late: Sequence[FlowRun] = ()
    #: IDs of blocks that automations send to, and that are gone.
    lost_blocks: frozenset[str] = frozenset()


def server_facts(home: Path) -> list[Fact]:
    """Ask the configured Prefect server, or the one that runs on this home. Call it before Prefect is imported."""
    if given := os.environ.get(API_URL):
        try:
            url = client_settings.api_address(given)
        except PatternmillError as error:
            return [refused("prefect", error)]
        client_settings.use_server(client_settings.client_environment(url))
        return facts_at(url)
    from prefect_host.own_server import OwnServer

    server, log = OwnServer(home), home / WORKER_LOG
    if server.directory.is_dir() and server.is_ready():
        client_settings.use_server(server.client_environment)
        return facts_at(server.api_url)
    if not log.exists():
        return [ok("prefect", "no server runs here: each command starts one for itself")]
    text = "`patternmill up` served here and does not now: what is scheduled waits"
    return [warning("prefect", text, f"Start it again. If it is not to serve here any more, remove {log}.")]


def facts_at(url: str) -> list[Fact]:
    """Ask a Prefect server that this process uses already. `url`: of its API."""
    try:
        return [ok("prefect", f"{mask_passwords(url)} answers"), *facts_of(asyncio.run(_read(url)))]
    except PatternmillError as error:
        remedy = f"See that it is up, and that {API_URL} is right: runs are driven without it."
        return [refused("prefect", error, remedy)]
    except Exception as error:  # whatever its client raises
        text = f"{mask_passwords(url)} cannot be read: {type(error).__name__}"
        return [fault("prefect", text, "See its log, and that it is of the version that is installed here.")]


async def _read(url: str) -> ServerRecord:
    """Raise PatternmillError where the server does not answer, or rejects this client."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, WorkPoolFilter
    from prefect.exceptions import ObjectNotFound

    from prefect_host.connection import require_server

    await require_server(url)
    ours = WorkPoolFilter.model_validate({"name": {"any_": [POOL]}})
    is_late = FlowRunFilter.model_validate({"state": {"name": {"any_": ["Late"]}}})
    async with get_client() as client:
        try:
            pool = await client.read_work_pool(POOL)
        except ObjectNotFound:
            return ServerRecord(None)
        automations = await client.read_automations()
        actions = [action for automation in automations for action in automation.actions]
        blocks = {block for action in actions if (block := getattr(action, "block_document_id", None))}
        lost_blocks = set()
        for block in blocks:
            try:
                await client.read_block_document(block)
            except ObjectNotFound:
                lost_blocks.add(str(block))
        return ServerRecord(
            pool,
            await client.read_workers_for_work_pool(POOL),
            await client.read_deployments(work_pool_filter=ours),
            automations,
            await client.read_flow_runs(work_pool_filter=ours, flow_run_filter=is_late),
            frozenset(lost_blocks),
        )


def facts_of(record: ServerRecord) -> Iterator[Fact]:
    """Yield what a server's record means."""
    if record.pool is None:
        yield warning("deployments", "none are registered at this server", _REGISTER)
        return
    yield _workers_fact(record.pool, record.workers)
    yield _deployments_fact(record.deployments)
    yield _schedules_fact(record)
    yield _automations_fact(record)


def _workers_fact(pool: WorkPool, workers: Sequence[Worker]) -> Fact:
    online = [worker.name for worker in workers if worker.status == "ONLINE"]
    most, used = pool.concurrency_limit, pool.active_slots or 0
    text = f"{len(online)} online" + (f", {used} of {most} slots of the pool used" if most else "")
    if pool.is_paused:
        return fault("workers", f"{text}; the work pool {POOL!r} is paused", "Resume it in the Prefect UI.")
    if not online:
        return fault("workers", f"{text}: what is scheduled waits", "Start `patternmill up --worker`.")
    if most and used >= most:
        remedy = "See what runs with `patternmill status`; end flow runs in the UI whose process is gone."
        return warning("workers", f"{text}: the next run waits", remedy)
    return ok("workers", f"{text}: {_names(online)}")


def _deployments_fact(deployments: Sequence[DeploymentResponse]) -> Fact:
    names = {deployment.name for deployment in deployments}
    text = f"{len(names)} registered"
    if missing := [name for name in _expected("prefect.yaml", "deployments") if name not in names]:
        return warning("deployments", f"{text}, without {_names(missing)}", _REGISTER)
    if paused := [deployment.name for deployment in deployments if deployment.paused]:
        return warning("deployments", f"{text}; paused: {_names(paused)}", "Resume them in the Prefect UI.")
    limits = {deployment.name: deployment.global_concurrency_limit for deployment in deployments}
    if full := [name for name, limit in limits.items() if limit and limit.active_slots >= limit.limit]:
        remedy = "End flow runs in the Prefect UI whose process is gone, or raise the limit."
        return warning("deployments", f"{text}; no slot is free: {_names(full)}", remedy)
    return ok("deployments", text)


def _schedules_fact(record: ServerRecord) -> Fact:
    switches = {
        deployment.name: [schedule.active for schedule in deployment.schedules]
        for deployment in record.deployments
    }
    off = [name for name, switched in switches.items() if not all(switched)]
    active = [name for name, switched in switches.items() if any(switched)]
    text = f"active: {_names(active)}" if active else "none active"
    if record.late:
        late = _names([run.name for run in record.late])
        return warning("schedules", f"{text}; due and not begun: {late}", "See that a worker has room.")
    if off:
        remedy = "Switch them on in the Prefect UI, or delete those that are not wanted."
        return warning("schedules", f"{text}; switched off: {_names(off)}", remedy)
    return ok("schedules", text)


def _automations_fact(record: ServerRecord) -> Fact:
    enabled = {automation.name for automation in record.automations if automation.enabled}
    names = _expected("automations.yaml", "automations")
    missing = [name for name in names if name not in enabled]
    text = f"{len(names) - len(missing)} of {len(names)} send messages"
    if record.lost_blocks:
        text = f"{text}, some to a block that is gone: {_names(sorted(record.lost_blocks))}"
        return fault("automations", text, "Make the block anew, and the automations with its ID.")
    # Who starts each run by hand sees how it ends.
    if not missing or not any(deployment.schedules for deployment in record.deployments):
        return ok("automations", text)
    text = f"{text}; not: {_names(missing)}"
    return warning("automations", text, "See deployments/README.md, Automations.")


def _expected(file: str, part: str) -> list[str]:
    """Return the names of the deployments, or automations, that a file of ours has."""
    return [entry["name"] for entry in yaml.safe_load((TEMPLATE.parent / file).read_text("utf-8"))[part]]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
