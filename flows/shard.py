"""The rows of one shard: a flow run of its own, so that the page of a large import stays usable."""

from prefect import State, flow

from patternmill.runs.context import driven
from tasks.item_tasks import task_step
from tasks.prefect_states import shard_state


@flow(name="shard", validate_parameters=False, persist_result=False)
async def shard(run_id: str, number: int) -> State:
    """Make the patterns and products of the rows of one shard of a run, or of a part of one, of this process."""
    run = driven.get()
    assert run.name == run_id, "a shard is driven inside its run"
    rows = run.engine.shard(number)
    await run.engine.drive(rows, task_step(run))
    return shard_state(run.engine, rows)
