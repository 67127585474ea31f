"""What a killed process left open on the screen is closed by the next run of its catalog."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from prefect import flow, get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun

from cli.server import Server
from tasks.page import catalog_tag, end_dead_runs

_HANGS = """
import asyncio, sys
from prefect import flow, tags, task

@task(retries=0)
async def hangs(number):
    print("begun", flush=True)
    await asyncio.sleep(600)

@flow(retries=0)
async def hanging():
    await asyncio.gather(*[hangs(number) for number in range(3)])

with tags(sys.argv[1]):
    asyncio.run(hanging())
"""


def killed(tag: str) -> None:
    """Begin a flow run with a tag in a process, and kill the process once the server knows that its tasks run."""
    hanging = subprocess.Popen([sys.executable, "-c", _HANGS, tag], stdout=subprocess.PIPE, text=True)
    with hanging:
        assert hanging.stdout
        assert [hanging.stdout.readline() for _ in range(3)] == ["begun\n"] * 3
        (run,) = asyncio.run(runs_of(tag))
        until = time.monotonic() + 30
        while asyncio.run(task_states(run)) != {"Running"} and time.monotonic() < until:
            time.sleep(0.2)
        hanging.kill()


async def runs_of(tag: str) -> list[FlowRun]:
    async with get_client() as client:
        tagged = FlowRunFilter.model_validate({"tags": {"all_": [tag]}})
        return await client.read_flow_runs(flow_run_filter=tagged)


async def task_states(run: FlowRun) -> set[str | None]:
    async with get_client() as client:
        this = FlowRunFilter.model_validate({"id": {"any_": [run.id]}})
        return {task_run.state_name for task_run in await client.read_task_runs(flow_run_filter=this)}


def test_the_next_run_of_a_catalog_closes_dead_ones_of_it_and_no_others(server: Server) -> None:
    @flow(retries=0)
    async def next_run() -> None:
        await end_dead_runs("studio", "killed")

    for catalog in ("killed", "other"):
        killed(catalog_tag("studio", catalog))
    asyncio.run(next_run())
    (dead,) = asyncio.run(runs_of("studio:killed"))
    (other,) = asyncio.run(runs_of("studio:other"))
    assert (dead.state_name, other.state_name) == ("Crashed", "Running")
    assert dead.state and "ledger" in str(dead.state.message)
    assert asyncio.run(task_states(dead)) == {"Crashed"}


def test_outside_a_flow_run_nothing_is_asked_for(tmp_path: Path) -> None:
    asyncio.run(end_dead_runs("studio", "spring"))


def test_a_run_that_was_taken_for_dead_ends_as_it_ends(server: Server) -> None:
    """Two runs may begin at once: the one that has not asked for the lease yet looks dead to the other."""

    @flow(retries=0)
    async def late() -> str:
        from prefect.context import FlowRunContext
        from prefect.states import Crashed

        context = FlowRunContext.get()
        assert context and context.flow_run
        async with get_client() as client:
            await client.set_flow_run_state(
                context.flow_run.id, Crashed(message="Taken for dead."), force=True
            )
        return "done"

    state: Any = asyncio.run(late(return_state=True))  # type: ignore[arg-type]
    assert state.is_completed()
