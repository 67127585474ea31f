"""A deployment's run that asks a person: it is suspended with a form, and goes on in the same run when answered."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, get_type_hints

from prefect import get_client
from prefect.context import FlowRunContext
from prefect.flow_runs import asuspend_flow_run
from prefect.input import RunInput, aread_flow_run_input, keyset_from_paused_state
from prefect.states import Suspended
from pydantic import Field, create_model

from patternmill.request import Agreement, Question
from tasks.page import end_questions, markdown_lines, open_questions

#: A question that nobody answers ends by then.
_PATIENCE = timedelta(days=14)
_AMOUNT = r"^(\D{0,4}\d+([.,](\d{1,2}|\d{4}))?\D{0,4})?$"
_EMPTY = "Empty: as many as the settings allow."


class Answer(RunInput):
    """The form. Its help and limits are in the types: Prefect's own way to set defaults drops those of fields."""

    max_items: Annotated[int, Field(ge=0, description="The most items that this run may buy.")]
    budget: Annotated[str | None, Field(pattern=_AMOUNT, description="The most money, such as 500.00.")] = (
        None
    )
    change: Annotated[int | None, Field(ge=0, description=f"Replaced products. {_EMPTY}")] = None
    retire: Annotated[int | None, Field(ge=0, description=f"Retired rows. {_EMPTY}")] = None
    rename: Annotated[int | None, Field(ge=0, description=f"Renamed rows that are bought. {_EMPTY}")] = None


async def ask(question: Question) -> Agreement | None:
    """Return what a person agreed to; None where nobody can be asked, or the run was resumed without an answer.

    Suspends the flow run by raising Prefect's `Pause`, which has to pass through the flow. Asks once for each digest.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or context.flow_run.deployment_id is None:
        return None
    async with get_client() as client:
        await end_questions(client, await open_questions(client, question.environment, question.catalog))
    types = get_type_hints(Answer, include_extras=True)
    fields: Any = {name: (types[name], value) for name, value in question.proposed}
    form = create_model("Answer", __base__=Answer, **fields).with_initial_data(
        description=markdown_lines(question.text)
    )
    answer = await asuspend_flow_run(
        wait_for_input=form, timeout=round(_PATIENCE.total_seconds()), key=question.digest
    )
    keys = keyset_from_paused_state(Suspended(pause_key=question.digest))
    if await aread_flow_run_input(keys["response"]) is None:
        return None  # Resume without an answer, which is no agreement
    return Agreement(**answer.model_dump() | {"budget": answer.budget or None})


async def plan_waits(question: Question) -> bool:
    """Return whether another run of the catalog waits for an answer about the same plan, and can still have one."""
    async with get_client() as client:
        waiting = await open_questions(client, question.environment, question.catalog)
    details = [run.state.state_details for run in waiting if run.state]
    until = [one.pause_timeout for one in details if one.pause_key == question.digest]
    return any(end is None or end > datetime.now(UTC) for end in until)
