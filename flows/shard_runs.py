"""Drives rows, by shards as nested flow runs."""

from typing import Any

from prefect import State, flow

from patternmill.engine.shards import Shard
from patternmill.runs.pipeline import Pipeline
from tasks.item_tasks import current_screen, screen_of
from tasks.prefect_states import shard_state
from tasks.run_page import progress_shown


@flow(name="shard", validate_parameters=False, persist_result=False)
async def shard(run_id: str, number: int) -> State[Any]:
    """Show one shard of this process's run; nested, so that the page of a large import stays usable."""
    screen = current_screen.get()
    assert screen.run.record.run_id == run_id, "a shard is shown inside its run"
    return shard_state(screen.run.engine, await screen.show_shard(number))


async def make_rows(work: Pipeline) -> None:
    run = work.begun
    async with progress_shown(run), screen_of(run, show_shard) as screen:
        await run.engine.drive(screen)
        if not run.is_stopped:
            # Before the server has been shown all: it may not answer for a while.
            work.finish()


async def show_shard(rows: Shard) -> object:
    """Show a shard as a nested flow run of its own, until its rows have ended."""
    # A function, because a text would be a template, and a sku may have braces.
    as_flow = shard.with_options(flow_run_name=rows.describe)
    # As a state, because one that is not completed would be raised.
    return await as_flow(current_screen.get().run.record.run_id, rows.number, return_state=True)
