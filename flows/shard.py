"""One shard as a nested flow run, so that the page of a large import stays usable."""

from prefect import State, flow

from patternmill.runs.context import driven
from tasks.item_tasks import task_step
from tasks.prefect_states import shard_state


@flow(name="shard", validate_parameters=False, persist_result=False)
async def shard(run_id: str, number: int) -> State:
    """Make the patterns and products of one shard of this process's run or part."""
    run = driven.get()
    assert run.name == run_id, "a shard is driven inside its run"
    rows = run.engine.shard(number)
    await run.engine.drive(rows, task_step(run))
    return shard_state(run.engine, rows)
