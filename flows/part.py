"""One part of a spread run: a flow run that any worker may run."""

from typing import Annotated

from prefect import State, flow
from pydantic import Field

from flows.shard_runs import drive_shards
from patternmill.errors import LeaseLost
from patternmill.states import Outcome
from prefect_host.internals import batch_events, retry_soon
from prefect_host.stop_signals import stop_on_signals
from tasks.part_runs import begun_part
from tasks.prefect_states import part_state, state_of
from tasks.record_repair import complete_items
from tasks.run_page import progress_shown


# Without a template for its name: the run that starts it names it by its rows.
@flow(name="part", persist_result=False)
async def part(run_id: str, number: Annotated[int, Field(ge=1)], grant: int, environment: str) -> State:
    """Make the patterns and products of one part. Started by a run that is spread, never by hand.

    Args:
        run_id: The run that the part belongs to.
        number: Which of its parts.
        grant: The number of the part's assignment, of which only the latest is valid.
        environment: The run's environment, by which the worker finds address, key and ledger.
    """
    batch_events()
    retry_soon()
    with stop_on_signals() as stopping:
        try:
            begun = begun_part(run_id, number, grant, environment, stopping)
            async with begun as work, progress_shown(work):
                await drive_shards(work)
                await complete_items(work, work.assigned.settings)
            return part_state(work)
        except LeaseLost as fenced:
            return state_of(Outcome.SKIPPED_OVERLAP, str(fenced))
