"""What the flows of the tests do: `ask:DIGEST` asks a person, `work` goes on until it is stopped, and so on."""

import asyncio
import signal
from pathlib import Path
from typing import Any

from prefect import State, get_client
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Completed

from patternmill.request import Agreement, Question
from tasks.approval import ask, plan_waits
from tasks.folder import enter
from tasks.page import catalog_tag, end_dead_runs


async def played(file: str, catalog: str, environment: str | None) -> State[Any]:
    context = FlowRunContext.get()
    assert context and context.flow_run
    async with get_client() as client:
        await client.update_flow_run(context.flow_run.id, tags=[catalog_tag(str(environment), catalog)])
    enter()
    verb, _, digest = file.partition(":")
    if verb == "work":
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        Path("working").touch()
        await stopped.wait()
        Path("drained").touch()
        return Cancelled(message="Drained.")
    if verb == "ask":
        question = Question(
            catalog, str(environment), "12 items to make", digest, Agreement(max_items=12, change=1)
        )
        if await plan_waits(question):
            return Cancelled(name="SkippedOverlap", message="The same plan waits.")
        agreed = await ask(question)
        await end_dead_runs(str(environment), catalog)
        return Completed(message=f"Agreed to {agreed!r}")
    return Completed(message=f"{file} of {catalog} in {environment}, from {Path.cwd()}")
