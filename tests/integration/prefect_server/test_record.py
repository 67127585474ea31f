"""The record of a run on a real server: whole, true, and silent on the terminal."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from subprocess import Popen
from uuid import UUID

import pytest
from prefect.client.orchestration import PrefectClient
from prefect.states import Completed

from prefect_host import record
from prefect_host.own_server import OwnServer, own_password
from prefect_host.record import (
    KnownEnds,
    TaskRunCounts,
    await_record,
    close_abandoned_runs,
    close_ended_runs,
    close_inside,
    complete_record,
)
from tests.acceptance.prefect_servers import eventually
from tests.prefect_api import api_of

RUN = """
    import asyncio, json, logging, os, sys, threading
    from pathlib import Path
    from prefect_host.own_server import OwnServer
    api_url, home, mode = sys.argv[1:4]
    OwnServer(Path(home)).for_this_process()
    logging.raiseExceptions = False
    from prefect_host.record import deliver
    from datetime import timedelta
    from prefect import flow, runtime, task
    from prefect.cache_policies import NO_CACHE

    known = {}

    @task(retries=0, cache_policy=NO_CACHE, persist_result=False, task_run_name="product · {sku}")
    async def make(sku):
        if mode == "hang":
            await asyncio.sleep(600)
        if sku.endswith("3"):
            raise ValueError("refused by the service")

    @flow(validate_parameters=False, persist_result=False)
    async def shard(number):
        await asyncio.gather(*(make(f"{number}-{row}") for row in range(5)), return_exceptions=True)

    @flow(persist_result=False)
    async def bulk():
        known["id"] = str(runtime.flow_run.id)
        if mode == "hang":
            threading.Timer(4, lambda: print(json.dumps(known), flush=True)).start()
        if mode == "away":
            print(json.dumps(known), flush=True)
            sys.stdin.readline()
        await asyncio.gather(*(shard.with_options(flow_run_name=f"rows {n}")(n) for n in range(2)))

    asyncio.run(bulk())
    known["delivered"] = deliver()
    print(json.dumps(known), flush=True)
    os._exit(0)
"""


@asynccontextmanager
async def client_of(server: OwnServer) -> AsyncIterator[PrefectClient]:
    password = own_password(server.directory.parent)
    async with PrefectClient(server.api_url, auth_string=password) as client:
        yield client


def settled(server: OwnServer, flow_run_id: str, patience: float = 20.0) -> TaskRunCounts:
    async def wait() -> TaskRunCounts:
        async with client_of(server) as client:
            return await await_record(client, UUID(flow_run_id), patience=timedelta(seconds=patience))

    return asyncio.run(wait())


def recorded(server: OwnServer, flow_run_id: str, expected: int) -> TaskRunCounts:
    """The record, once it has so many task runs."""
    until = time.monotonic() + 30
    while (counts := settled(server, flow_run_id)).recorded < expected:
        assert time.monotonic() < until, counts
        time.sleep(0.2)
    return counts


def states_of_task_runs(server: OwnServer, flow_run_id: str) -> dict[str, str]:
    api = api_of(server)
    children = api.post("flow_runs/filter", {"flow_runs": {"parent_flow_run_id": {"any_": [flow_run_id]}}})
    where = {"flow_runs": {"id": {"any_": [child["id"] for child in children]}}}
    return {run["name"]: run["state_type"] for run in api.post("task_runs/filter", where)}


def test_record_of_a_run_is_complete(
    server: OwnServer, home: Path, script: Callable[..., Popen[str]]
) -> None:
    """After settling, each task run is on record under its name, in its final state; failed ones read as failed."""
    out, errors = script(RUN, server.api_url, str(home), "run").communicate(timeout=120)
    known = json.loads(out)
    assert recorded(server, known["id"], expected=10) == TaskRunCounts(recorded=10, open=0)
    states = states_of_task_runs(server, known["id"])
    assert {name for name, state in states.items() if state == "FAILED"} == {"product · 0-3", "product · 1-3"}
    assert sorted(set(states.values())) == ["COMPLETED", "FAILED"]
    assert errors == ""


def test_nested_run_whose_answer_was_lost_is_on_record_once(
    server: OwnServer, home: Path, script: Callable[..., Popen[str]]
) -> None:
    """The connection breaks when the server has made a shard's flow run: Prefect makes another, and one is left."""
    lossy = RUN.replace(
        "    known = {}\n",
        """    known = {}
    import httpx
    lost = []
    plain = httpx.AsyncClient.send

    async def losing(self, request, *arguments, **options):
        answer = await plain(self, request, *arguments, **options)
        if request.url.path.endswith("/flow_runs/") and b"parent_task_run_id" in request.content and not lost:
            if json.loads(request.content)["parent_task_run_id"]:
                lost.append(1)
                raise httpx.ReadError("reset by peer")
        return answer

    httpx.AsyncClient.send = losing
""",
    )
    assert lossy != RUN
    out, _ = script(lossy, server.api_url, str(home), "run").communicate(timeout=120)
    flow_run_id = json.loads(out)["id"]
    recorded(server, flow_run_id, expected=10)
    where = {"flow_runs": {"parent_flow_run_id": {"any_": [flow_run_id]}}}
    nested = api_of(server).post("flow_runs/filter", where)
    assert sorted(run["state_type"] for run in nested) == ["COMPLETED", "COMPLETED", "PENDING"]

    async def complete() -> int:
        async with client_of(server) as client:
            return await complete_record(
                client, UUID(flow_run_id), KnownEnds(), patience=timedelta(seconds=2)
            )

    assert asyncio.run(complete()) == 0
    nested = api_of(server).post("flow_runs/filter", where)
    assert sorted((run["name"], run["state_type"]) for run in nested) == [
        ("rows 0", "COMPLETED"),
        ("rows 1", "COMPLETED"),
    ]


def test_log_of_a_failed_task_run_stays_on_the_server(
    server: OwnServer, home: Path, script: Callable[..., Popen[str]]
) -> None:
    """The traceback that the terminal does not show is in the server's logs."""
    out, errors = script(RUN, server.api_url, str(home), "run").communicate(timeout=120)
    recorded(server, json.loads(out)["id"], expected=10)
    logs = api_of(server).post("logs/filter", {"logs": {"level": {"ge_": 40}}, "limit": 200})
    assert any("Traceback" in log["message"] and "refused by the service" in log["message"] for log in logs)
    assert "Traceback" not in out + errors


def test_open_runs_of_a_killed_process_are_closed(
    server: OwnServer, home: Path, script: Callable[..., Popen[str]]
) -> None:
    """What a killed process left running is forced into final states, the task runs and then the flow runs."""
    run = script(RUN, server.api_url, str(home), "hang")
    assert run.stdout is not None
    flow_run_id = json.loads(run.stdout.readline())["id"]
    # On a busy machine the first events, which name the task runs, take longer than the script gives them.
    eventually(lambda: "product · 0-0" in states_of_task_runs(server, flow_run_id), within=30)
    run.kill()
    run.communicate()
    # Nothing changes any more, so that it is not waited for.
    assert settled(server, flow_run_id, patience=2).open > 0
    known = {"product · 0-0": Completed()}

    async def close() -> list[int]:
        async with client_of(server) as client:
            return [
                await close_inside(client, UUID(flow_run_id), KnownEnds(inside=known)),
                await close_inside(client, UUID(flow_run_id)),
            ]

    async def abandon() -> list[int]:
        async with client_of(server) as client:
            return [await close_abandoned_runs(client), await close_abandoned_runs(client)]

    unknown, again = asyncio.run(close())
    assert unknown > 0 and again == 0
    assert settled(server, flow_run_id, patience=2).open == 0
    states = states_of_task_runs(server, flow_run_id)
    assert {name for name, state in states.items() if state != "CRASHED"} == set(known)
    # The shards are closed already.
    assert asyncio.run(abandon()) == [1, 0]
    state = api_of(server).get(f"flow_runs/{flow_run_id}")["state"]
    assert re.search(r"Its last sign was at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.", state["message"])


def test_open_runs_inside_a_crashed_run_are_closed(
    server: OwnServer,
    home: Path,
    script: Callable[..., Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a worker does after an automation closed the run alone: once, and not in other people's runs."""
    monkeypatch.setattr(record, "_GRACE", timedelta(0))
    tagged = RUN.replace("asyncio.run(bulk())", "tagged()").replace(
        "    known = {}\n",
        "    known = {}\n\n    def tagged():\n        with tags(*sys.argv[4:]):\n            asyncio.run(bulk())\n",
    )
    assert tagged != RUN
    tagged = tagged.replace(
        "from prefect import flow, runtime, task", "from prefect import flow, runtime, tags, task"
    )
    runs = []
    for tag in ("patternmill", "looms"):
        run = script(tagged, server.api_url, str(home), "hang", tag)
        assert run.stdout is not None
        runs.append(json.loads(run.stdout.readline())["id"])
        run.kill()
        run.communicate()
    ours, theirs = runs
    assert settled(server, ours, patience=2).open > 0
    crashed = {"state": {"type": "CRASHED", "name": "Crashed"}, "force": True}
    for flow_run_id in runs:
        api_of(server).post(f"flow_runs/{flow_run_id}/set_state", crashed)

    async def close() -> list[int]:
        closed: set[UUID] = set()
        async with client_of(server) as client:
            return [await close_ended_runs(client, closed), await close_ended_runs(client, closed)]

    assert asyncio.run(close()) == [1, 0]
    assert settled(server, ours, patience=2).open == 0
    assert settled(server, theirs, patience=2).open > 0
