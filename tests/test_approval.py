"""A deployment's run that asks a person, on a real Prefect server with a real worker."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect import flow, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import Suspended

from cli.server import Server
from cli.worker import DrainingWorker
from patternmill.request import Agreement, Question
from tasks.approval import ask
from tasks.deployments import POOL, register_deployments
from tasks.page import end_dead_runs


async def begun(digest: str, catalog: str) -> UUID:
    """Begin a run that asks about a plan, and carry it out until it waits or ends."""
    async with get_client() as client:
        deployment = await client.read_deployment_by_name("bulk-import/bulk-import")
        parameters = {"file": f"ask:{digest}", "catalog": catalog}
        run = await client.create_flow_run_from_deployment(deployment.id, parameters=parameters)
    await work()
    return run.id


async def work() -> None:
    await DrainingWorker(work_pool_name=POOL).start(run_once=True, printer=lambda text: None)


async def read(run: UUID) -> FlowRun:
    async with get_client() as client:
        return await client.read_flow_run(run)


async def state(run: UUID) -> str:
    return (await read(run)).state_name or ""


async def resume(run: UUID, answer: dict[str, Any] | None) -> str:
    """Answer a question as the form does, and return what the server says to that."""
    async with get_client() as client:
        result = await client.resume_flow_run(run, run_input=answer)
        return result.status.value


async def form(run: UUID) -> dict[str, Any]:
    from prefect.input import aread_flow_run_input, keyset_from_paused_state

    flow_run = await read(run)
    assert flow_run.state
    keys = keyset_from_paused_state(flow_run.state)
    schema = await aread_flow_run_input(keys["schema"], flow_run_id=run)
    return {"schema": schema, "text": await aread_flow_run_input(keys["description"], flow_run_id=run)}


def registered(case: Callable[[], Awaitable[None]]) -> Callable[[Path], None]:
    """Run a test that is a coroutine where the deployments are registered."""

    async def asked() -> None:
        await register_deployments("studio")
        await case()

    def test(deployed: Path) -> None:
        asyncio.run(asked())

    return test


@registered
async def test_a_plan_is_shown_with_a_form_and_the_same_run_goes_on_with_the_answer() -> None:
    run = await begun("one", "approved")
    assert await state(run) == "Suspended"
    shown = await form(run)
    assert shown["text"] == "12 items to make"
    fields = shown["schema"]["properties"]
    assert fields["max_items"]["default"] == 12
    assert all(fields[name]["description"] for name in ("max_items", "budget", "change", "retire", "rename"))
    assert await resume(run, {"max_items": -1}) == "REJECT"
    assert await resume(run, {"max_items": 10, "budget": "a lot"}) == "REJECT"
    assert await resume(run, {"max_items": 10, "budget": "500.00", "retire": 3}) == "ACCEPT"
    await work()
    ended = await read(run)
    assert ended.state_name == "Completed"
    agreed = Agreement(max_items=10, budget="500.00", change=1, retire=3)
    assert ended.state and ended.state.message == f"Agreed to {agreed!r}"


@pytest.mark.soak
@registered
async def test_resume_without_an_answer_agrees_to_nothing() -> None:
    run = await begun("one", "unanswered")
    await resume(run, None)
    await work()
    ended = await read(run)
    assert ended.state and ended.state.message == "Agreed to None"


@registered
async def test_a_firing_whose_plan_waits_is_skipped_and_a_newer_plan_ends_the_question() -> None:
    first = await begun("one", "newest")
    other = await begun("one", "another-catalog")
    again = await begun("one", "newest")
    assert (await state(first), await state(again)) == ("Suspended", "SkippedOverlap")
    newer = await begun("two", "newest")
    assert [await state(one) for one in (first, newer, other)] == ["Cancelled", "Suspended", "Suspended"]


@pytest.mark.soak
@registered
async def test_a_question_that_has_expired_is_asked_again() -> None:
    first = await begun("one", "expired")
    async with get_client() as client:
        gone = Suspended(timeout_seconds=-1, pause_key="one")
        gone.state_details.run_input_keyset = (await read(first)).state.state_details.run_input_keyset  # type: ignore[union-attr]
        await client.set_flow_run_state(first, gone, force=True)
    again = await begun("one", "expired")
    assert (await state(first), await state(again)) == ("Failed", "Suspended")


@registered
async def test_a_run_that_begins_ends_the_open_question_of_its_catalog() -> None:
    @flow(retries=0)
    async def begins() -> None:
        await end_dead_runs("studio", "overtaken")

    run = await begun("one", "overtaken")
    await begins()
    ended = await read(run)
    assert (ended.state_name, ended.state and "newest" in str(ended.state.message)) == ("Cancelled", True)


def test_a_run_of_no_deployment_cannot_ask(server: Server) -> None:
    question = Question("spring", "studio", "12 items", "one", Agreement(max_items=12))

    @flow(retries=0)
    async def asks() -> Agreement | None:
        return await ask(question)

    assert asyncio.run(asks()) is None
    assert asyncio.run(ask(question)) is None
