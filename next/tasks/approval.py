"""A deployment's run that asks a person: it is suspended with a form, and goes on in the same run when answered."""

from datetime import timedelta

from prefect import get_client
from prefect.context import FlowRunContext
from prefect.flow_runs import asuspend_flow_run
from prefect.input import RunInput, aread_flow_run_input, keyset_from_paused_state
from prefect.states import Suspended
from pydantic import Field

from patternmill.request import Agreement, Question
from tasks.dead_runs import end_questions, open_questions
from tasks.page import markdown

#: A question that nobody answers ends by then.
_PATIENCE = timedelta(days=14)
_AMOUNT = r"^(\D{0,4}\d+([.,](\d{1,2}|\d{4}))?\D{0,4})?$"
_EMPTY = "Empty: as many as the settings allow."


class Answer(RunInput):
    """The form, which proposes what the plan needs."""

    max_items: int = Field(ge=0, description="The most patterns and products that this run may buy.")
    budget: str | None = Field(
        None, pattern=_AMOUNT, description="The most that it may spend, such as 500.00."
    )
    change: int | None = Field(None, ge=0, description=f"How many rows may get another product. {_EMPTY}")
    retire: int | None = Field(
        None, ge=0, description=f"How many rows that are gone may be retired. {_EMPTY}"
    )
    rename: int | None = Field(None, ge=0, description=f"How many products may get another sku. {_EMPTY}")


async def ask(question: Question) -> Agreement | None:
    """Return what a person agreed to; None where nobody can be asked, or the run was resumed without an answer.

    Suspends the flow run by raising Prefect's `Pause`, which has to pass through the flow. Asks once for each digest.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or context.flow_run.deployment_id is None:
        return None
    async with get_client() as client:
        await end_questions(client, await open_questions(client, question.environment, question.catalog))
    text = "  \n".join(map(markdown, question.text.splitlines()))
    form = Answer.with_initial_data(description=text, **question.proposed.model_dump())
    answer = await asuspend_flow_run(
        wait_for_input=form, timeout=round(_PATIENCE.total_seconds()), key=question.digest
    )
    keys = keyset_from_paused_state(Suspended(pause_key=question.digest))
    if await aread_flow_run_input(keys["response"]) is None:
        return None  # Resume without an answer, which is no agreement
    return Agreement(**answer.model_dump() | {"budget": answer.budget or None})


async def plan_waits(question: Question) -> bool:
    """Return whether another run of the catalog waits for an answer about the same plan."""
    async with get_client() as client:
        waiting = await open_questions(client, question.environment, question.catalog)
    return any(run.state and run.state.state_details.pause_key == question.digest for run in waiting)
