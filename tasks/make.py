"""A request carried out as a flow run: tasks do the work, and a task run lasts as long as what it makes."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

from prefect import State, get_client, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.context import FlowRunContext
from prefect.exceptions import Pause
from prefect.states import Cancelled, Completed, Failed

from patternmill.errors import Halted, Overlap, Refusal
from patternmill.fanout import Fanout, Group, Maker, Work
from patternmill.items import Row
from patternmill.ledger.attempts import ends_of, find_attempts
from patternmill.pipeline import carry_out
from patternmill.plan import Plan
from patternmill.request import Agreement, End, Question, Request, RowsFailed, end_of
from patternmill.run import Run
from patternmill.service.sources import check_reach
from patternmill.settings import read_settings
from patternmill.states import OPEN, Attempt, Outcome
from patternmill.states import State as AttemptState
from tasks.approval import ask, plan_waits
from tasks.folder import enter
from tasks.page import catalog_tag, end_dead_runs, show_end, watching

#: The ledger remembers and the service client sends again: not Prefect, whatever its own defaults are.
_LOOKING = 5.0
_CUT_OFF = "The run ended first; the next one goes on with what the ledger has of it."
_PLAIN: Any = {"retries": 0, "cache_policy": NO_CACHE, "persist_result": False}
# Prefect writes a failed state that a task returns twice; left out is the line with the traceback of no exception.
logging.getLogger("prefect.task_runs").addFilter(lambda record: record.exc_info != (None, None, None))


@task(task_run_name="{work.label}", **_PLAIN)
async def make_item(work: Work) -> State[Any]:
    """Make one item: intent in the ledger, request, job, result in the ledger."""
    try:
        return _state_of(await work.do())
    except Refusal as reason:
        return Cancelled(name="NotStarted", message=f"Not begun: {reason.message}")
    except asyncio.CancelledError:
        return Cancelled(name="Waiting", message=_CUT_OFF)


@task(task_run_name="{group.label}", **_PLAIN)
async def make_group(group: Group) -> State[Any]:
    """Make a group of rows, as they have their turn."""
    try:
        ends = [_state_of(attempt) for attempt in await group.do() if attempt]
    except asyncio.CancelledError:
        return Cancelled(name="Waiting", message=_CUT_OFF)
    for kind in ("FAILED", "CANCELLED"):
        if found := [end for end in ends if end.type.value == kind]:
            message = "\n".join(str(end.message) for end in found[:20])
            return found[0].model_copy(update={"message": message})
    return Completed(message=f"{len(ends):,} rows")


def _state_of(attempt: Attempt) -> State[Any]:
    """Return what became of an item. Only a failure is red: a job that goes on is followed by the next run."""
    if attempt.state is AttemptState.SUCCEEDED:
        return Completed(message=attempt.result_id)
    words = f"{attempt.label}: {attempt.state} {attempt.code} {attempt.message}".strip()
    message = f"{words} (request {attempt.request_id})"
    return Cancelled(name="Waiting", message=message) if attempt.state in OPEN else Failed(message=message)


class Shown(Maker):
    """Shows work as task runs of the flow run that it is called in, and asks by that run's form."""

    run: Run | None = None

    async def item(self, work: Work) -> object:
        """Make an item as a task run whose input is that of the item which it is built on."""
        make: Any = make_item
        below = [work.built_on] if isinstance(work.built_on, State) else None
        return await self._unless_suspended(make(work, return_state=True, wait_for=below))

    async def group(self, group: Group) -> object:
        make: Any = make_group
        return await self._unless_suspended(make(group, return_state=True))

    async def _unless_suspended(self, call: Awaitable[Any]) -> Any:
        """Await a task. Once the flow run is suspended, Prefect raises Pause where any task begins or ends."""
        try:
            return await call
        except Pause:
            if self.run:
                _pause(self.run)
            return None

    async def elsewhere(self, run: Run, plan: Plan, rows: list[Row], here: Fanout) -> list[Row]:
        from tasks.dask import spread

        return await spread(run, plan, rows, here)

    def step(self, step: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Return a step of the run as a task, without its arguments as parameters: they hold whole sheets."""
        name = step.__name__.replace("_", " ")

        async def taken(*arguments: Any) -> Any:
            result: list[Any] = []

            async def take() -> State[Any] | None:
                try:
                    result.append(await step(*arguments))
                except Refusal as refusal:
                    result.append(refusal)
                    return Cancelled(name="Refused", message=str(refusal))
                return None

            shown: Any = task(name=name, task_run_name=name, **_PLAIN)(take)
            await self._unless_suspended(shown(return_state=True))
            if not result:  # it was not begun there
                return await step(*arguments)
            if isinstance(result[0], Refusal):
                raise result[0]
            return result[0]

        return taken

    async def named(self, run: Run) -> None:
        """Tag the flow run with its environment and catalog, by which the runs of a catalog are found."""
        self.run, about = run, (run.settings.service, run.catalog)
        await _tag(*about, catalog_tag(*about))

    async def begun(self, run: Run, plan: str) -> None:
        """Log the plan, and close what dead runs of the catalog left open."""
        get_run_logger().info("%s", plan)
        assert run.lease
        await _tag(run.lease.driver)
        await end_dead_runs(run.settings.service, run.catalog, partial(_on_record, run))

    async def ask(self, question: Question) -> Agreement | None:
        """Ask by the form of a suspended run, unless another run of the catalog asks the same already."""
        if _flow_run().deployment_id and await plan_waits(question):
            message = f"Another run of {question.catalog} already waits for an answer about this very plan."
            raise Overlap("plan_waits", message, "Answer that one in the Prefect UI.")
        return await ask(question)

    @contextlib.asynccontextmanager
    async def watching(self, run: Run) -> AsyncIterator[None]:
        """Show how far a run is, and stop it once somebody cancels it on the screen."""
        cancelled = asyncio.create_task(_stop_if_cancelled(run, _flow_run().id))
        try:
            async with watching(run):
                yield
        finally:
            cancelled.cancel()


async def _tag(*tags: str) -> None:
    """Add tags to the flow run."""
    flow_run = _flow_run()
    flow_run.tags = sorted({*flow_run.tags, *tags})
    with contextlib.suppress(Exception):  # whatever the client raises: a tag is no reason to stop
        async with get_client() as client:
            await client.update_flow_run(flow_run.id, tags=flow_run.tags)


def _on_record(run: Run, tags: list[str]) -> tuple[State[Any] | None, dict[str, State[Any]]]:
    """Return how the run whose ID is a tag ended by the ledger, and its items by the names of their task runs."""
    state, items = None, dict[str, State[Any]]()
    for id_, outcome, message in ends_of(run.database, tags):
        if outcome in list(Outcome):
            state = State(type=_TYPES.get(outcome, StateType.FAILED), name=outcome, message=message)
            items |= dict.fromkeys(("check sheet", "finish"), Completed())
        for attempt in find_attempts(run.database, run.settings.service, "driver = :id", id=id_):
            items[f"{attempt.stage} {attempt.label}"] = _state_of(attempt)
    return state, items


def _flow_run() -> FlowRun:
    context = FlowRunContext.get()
    assert context and context.flow_run
    return context.flow_run


def _pause(run: Run) -> None:
    """Halt a run that was paused or suspended on the screen."""
    message = "It was paused on the screen; what was in flight was followed to its end."
    run.halt.set(Halted(Outcome.PAUSED, "paused", message, "Resume it there, or run it again."))


async def _stop_if_cancelled(run: Run, flow_run_id: UUID) -> None:
    while True:
        await asyncio.sleep(_LOOKING)
        with contextlib.suppress(Exception):  # whatever the client raises
            async with get_client() as client:
                state = (await client.read_flow_run(flow_run_id)).state
            if state is not None and state.is_cancelling():
                run.halt.stop()
            if state is not None and state.is_paused():
                _pause(run)


_TYPES = {
    Outcome.COMPLETED: StateType.COMPLETED,
    Outcome.CANCELLED: StateType.CANCELLED,
    Outcome.PAUSED: StateType.CANCELLED,
    Outcome.SKIPPED_OVERLAP: StateType.CANCELLED,
}


async def carry_out_shown(request: Request) -> State[Any]:
    """Carry out a request. The state's name is the outcome, and the page of the flow run says what came of it."""
    try:
        if _flow_run().deployment_id:
            enter()
            check_reach(request, read_settings())
        end = await carry_out(request, Shown())
    except Refusal as refusal:
        end = end_of(refusal)
    get_run_logger().info("%s", end.message)
    await show_end(end)
    return state_of(end)


def state_of(end: End) -> State[Any]:
    """Return the state that a flow run ends in, with what a program reads of it as its data."""
    kind = _TYPES.get(end.outcome, StateType.FAILED)
    data = end.summary if kind is StateType.COMPLETED else RowsFailed(end.summary)
    return State(type=kind, name=end.outcome, message=end.message, data=data)
