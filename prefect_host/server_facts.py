"""Asks a Prefect server about an installation: whether it answers, and whether it does what is left to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from patternmill.errors import PatternmillError
from patternmill.passwords import mask_passwords
from patternmill.upkeep.fact import Fact, fault, ok, refused, warning
from prefect_host import client_settings
from prefect_host.client_settings import POOL, WORKER_LOG

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.orchestration.routes import ServerRoutes

#: An object of the server, as its API shows it.
Shown = Mapping[str, Any]

_FILES = Path(__file__).resolve().parent.parent / "deployments"
_REGISTER = "Run `python -m tasks.deployments`, or start `patternmill up` again."
#: How many names a fact lists.
_MOST_NAMED = 5


@dataclass(frozen=True)
class ServerRecord:
    """Holds what a server has of ours; without a pool nothing was registered there."""

    pool: Shown | None
    workers: Sequence[Shown] = ()
    deployments: Sequence[Shown] = ()
    automations: Sequence[Shown] = ()
    #: Flow runs that are due and not begun.
    late: Sequence[Shown] = ()
    #: IDs of blocks that automations send to, and that are gone.
    lost_blocks: frozenset[str] = frozenset()


def server_facts(home: Path) -> list[Fact]:
    """Ask the configured Prefect server, or the one that runs on this home. Call it before Prefect is imported."""
    try:
        url = _use_running_server(home)
    except PatternmillError as error:
        return [refused("prefect", error)]
    return [_absence(home)] if url is None else facts_at(url)


def facts_at(url: str) -> list[Fact]:
    """Ask a Prefect server that this process uses already. `url`: of its API."""
    try:
        return [ok("prefect", f"{mask_passwords(url)} answers"), *facts_of(_read(url))]
    except PatternmillError as error:
        remedy = (
            f"See that it is up, and that {client_settings.API_URL} is right: runs are driven without it."
        )
        return [refused("prefect", error, remedy)]
    except Exception as error:  # whatever its client raises
        text = f"{mask_passwords(url)} cannot be read: {type(error).__name__}"
        return [fault("prefect", text, "See its log, and that it is of the version that is installed here.")]


def _use_running_server(home: Path) -> str | None:
    """Point Prefect in this process at a server; return the address of its API. Raises ConfigurationError."""
    if given := os.environ.get(client_settings.API_URL):
        url = client_settings.api_address(given)
        client_settings.use_server(client_settings.client_environment(url))
        return url
    from prefect_host.own_server import OwnServer

    server = OwnServer(home)
    if not server.directory.is_dir() or not server.is_ready():
        return None
    client_settings.use_server(server.client_environment)
    return server.api_url


def _absence(home: Path) -> Fact:
    """Return what it means that no server is configured, and none runs on this home."""
    log = home / WORKER_LOG
    if not log.exists():
        return ok("prefect", "no server runs here: each command starts one for itself")
    text = "`patternmill up` served here and does not now: what is scheduled waits"
    return warning("prefect", text, f"Start it again. If it is not to serve here any more, remove {log}.")


def _read(url: str) -> ServerRecord:
    """Raise PatternmillError where the server does not answer, or rejects this client."""
    from prefect.client.orchestration import get_client

    from prefect_host.connection import require_server

    asyncio.run(require_server(url))
    with get_client(sync_client=True) as client:
        pool = _found(client, "/work_pools/{name}", name=POOL)
        if pool is None:
            return ServerRecord(None)
        ours = {"work_pools": {"name": {"any_": [POOL]}}}
        late = {"flow_runs": {"state": {"name": {"any_": ["Late"]}}}}
        automations = _all(client, "/automations/filter")
        actions = [action for one in automations for action in one["actions"]]
        blocks = {str(action["block_document_id"]) for action in actions if action.get("block_document_id")}
        return ServerRecord(
            pool,
            _all(client, "/work_pools/{work_pool_name}/workers/filter", work_pool_name=POOL),
            _all(client, "/deployments/filter", ours),
            automations,
            _all(client, "/flow_runs/filter", ours | late),
            frozenset(id for id in blocks if _found(client, "/block_documents/{id}", id=id) is None),
        )


def _found(client: SyncPrefectClient, route: ServerRoutes, **of: str) -> Shown | None:
    from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

    try:
        shown: Shown = client.request("GET", route, path_params=of).json()
        return shown
    except ObjectNotFound:
        return None
    except PrefectHTTPStatusError as error:
        if error.response.status_code == 404:
            return None
        raise


def _all(
    client: SyncPrefectClient, route: ServerRoutes, where: Shown | None = None, **of: str
) -> Sequence[Shown]:
    shown: Sequence[Shown] = client.request("POST", route, json=dict(where or {}), path_params=of).json()
    return shown


def facts_of(record: ServerRecord) -> Iterator[Fact]:
    """Yield what a server's record means."""
    if record.pool is None:
        yield warning("deployments", "none are registered at this server", _REGISTER)
        return
    yield _workers_fact(record.pool, record.workers)
    yield _deployments_fact(record.deployments)
    yield _schedules_fact(record)
    yield _automations_fact(record)


def _workers_fact(pool: Shown, workers: Sequence[Shown]) -> Fact:
    online = [worker["name"] for worker in workers if worker["status"] == "ONLINE"]
    most, used = pool["concurrency_limit"], pool.get("active_slots") or 0
    text = f"{len(online)} online" + (f", {used} of {most} slots of the pool used" if most else "")
    if pool["is_paused"]:
        return fault("workers", f"{text}; the work pool {POOL!r} is paused", "Resume it in the Prefect UI.")
    if not online:
        return fault("workers", f"{text}: what is scheduled waits", "Start `patternmill up --worker`.")
    if most and used >= most:
        remedy = "See what runs with `patternmill status`; end flow runs in the UI whose process is gone."
        return warning("workers", f"{text}: the next run waits", remedy)
    return ok("workers", f"{text}: {_names(online)}")


def _deployments_fact(deployments: Sequence[Shown]) -> Fact:
    names = {deployment["name"] for deployment in deployments}
    text = f"{len(names)} registered"
    if missing := [name for name in _expected("prefect.yaml", "deployments") if name not in names]:
        return warning("deployments", f"{text}, without {_names(missing)}", _REGISTER)
    if paused := [deployment["name"] for deployment in deployments if deployment["paused"]]:
        return warning("deployments", f"{text}; paused: {_names(paused)}", "Resume them in the Prefect UI.")
    if full := [deployment["name"] for deployment in deployments if _is_full(deployment)]:
        remedy = "End flow runs in the Prefect UI whose process is gone, or raise the limit."
        return warning("deployments", f"{text}; no slot is free: {_names(full)}", remedy)
    return ok("deployments", text)


def _is_full(deployment: Shown) -> bool:
    limit = deployment.get("global_concurrency_limit")
    return limit is not None and limit["active_slots"] >= limit["limit"]


def _schedules_fact(record: ServerRecord) -> Fact:
    with_schedule = [one for one in record.deployments if one["schedules"]]
    off = [one["name"] for one in with_schedule if not all(part["active"] for part in one["schedules"])]
    active = [one["name"] for one in with_schedule if any(part["active"] for part in one["schedules"])]
    text = f"active: {_names(active)}" if active else "none active"
    if record.late:
        late = _names([run["name"] for run in record.late])
        return warning("schedules", f"{text}; due and not begun: {late}", "See that a worker has room.")
    if off:
        remedy = "Switch them on in the Prefect UI, or delete those that are not wanted."
        return warning("schedules", f"{text}; switched off: {_names(off)}", remedy)
    return ok("schedules", text)


def _automations_fact(record: ServerRecord) -> Fact:
    enabled = {one["name"] for one in record.automations if one["enabled"]}
    names = _expected("automations.yaml", "automations")
    missing = [name for name in names if name not in enabled]
    text = f"{len(names) - len(missing)} of {len(names)} send messages"
    if record.lost_blocks:
        text = f"{text}, some to a block that is gone: {_names(sorted(record.lost_blocks))}"
        return fault("automations", text, "Make the block anew, and the automations with its ID.")
    is_unattended = any(one["schedules"] for one in record.deployments)
    if not missing or not is_unattended:
        return ok("automations", text)
    return warning(
        "automations", f"{text}; not: {_names(missing)}", "See deployments/README.md, Automations."
    )


def _expected(file: str, part: str) -> list[str]:
    """Return the names of the deployments, or automations, that a file of ours has."""
    return [entry["name"] for entry in yaml.safe_load((_FILES / file).read_text("utf-8"))[part]]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
