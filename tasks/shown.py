"""A request carried out as the flow run that it is called in: named, tagged, and ending in the state that is true."""

from typing import Any

from prefect import State, get_run_logger
from prefect.client.schemas.objects import StateType

from patternmill.pipeline import carry_out
from patternmill.request import End, Request, RowsFailed
from patternmill.states import Outcome
from tasks.make import Shown
from tasks.page import show_end

_TYPES = {
    Outcome.COMPLETED: StateType.COMPLETED,
    Outcome.CANCELLED: StateType.CANCELLED,
    Outcome.PAUSED: StateType.CANCELLED,
    Outcome.SKIPPED_OVERLAP: StateType.CANCELLED,
}


async def carry_out_shown(request: Request) -> State[Any]:
    """Carry out a request. The state's name is the outcome, and the page of the flow run says what came of it."""
    end = await carry_out(request, Shown())
    get_run_logger().info("%s", end.message)
    await show_end(end)
    return state_of(end)


def state_of(end: End) -> State[Any]:
    """Return the state that a flow run ends in, with what a program reads of it as its data."""
    kind = _TYPES.get(end.outcome, StateType.FAILED)
    data = end.summary if kind is StateType.COMPLETED else RowsFailed(end.summary)
    return State(type=kind, name=end.outcome, message=end.message, data=data)
