"""The steps of a run, as Prefect tasks: read, check, plan, begin, write the results; and its pictures, after it."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec

from prefect import State, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from patternmill.errors import ApprovalNeeded, Overlap, PatternmillError
from patternmill.looking.kept_pictures import keep_pictures
from patternmill.runs.pipeline import Pipeline, command
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest
from patternmill.runs.run import Run
from patternmill.runs.safeguards import refuse_secrets
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.settings import Settings, with_service
from patternmill.states import Outcome
from patternmill.text import goods
from prefect_host.stop_signals import stop_on_signals
from tasks.approval_form import await_approval
from tasks.cancellation import final_state, heed_stop, name_flow_run
from tasks.flow_parameters import in_worker_folder
from tasks.left_runs import end_left_runs
from tasks.markup import line, logged
from tasks.prefect_states import ending_message, state_of
from tasks.run_page import show_ending

P = ParamSpec("P")
Request = ImportRequest | RefreshRequest | RetryRequest | RemakeRequest


def with_expected_ends(run: Callable[P, Awaitable[State[Any]]]) -> Callable[P, Awaitable[State[Any]]]:
    """Have refusals and overlaps end a flow run in a state with their message, and no traceback."""

    @functools.wraps(run)
    async def run_to_a_state(*args: P.args, **kwargs: P.kwargs) -> State[Any]:
        try:
            return await run(*args, **kwargs)
        except PatternmillError as error:
            # By a function with a name: the flow is sent to the machines of a cluster with each group.
            return _state_of_refusal(error)

    return run_to_a_state


def _state_of_refusal(error: PatternmillError) -> State[Any]:
    if (asked := command.get()) is not None:
        asked.fault = error
    if isinstance(error, Overlap):
        return state_of(Outcome.SKIPPED_OVERLAP, str(error))
    return Failed(message=line(logged(str(error))))


@asynccontextmanager
async def open_run(request: Request) -> AsyncIterator[Pipeline]:
    """Open what a run of the request needs; while it lasts, signals stop the run instead of ending the process.

    Raises ConfigurationError and InputRefused.
    """
    with stop_on_signals() as stopping:
        asked = command.get()

        def on_begin(run: Run) -> None:
            stopping.attach(run)
            if asked is not None:
                asked.on_begin(run)

        spec = await asyncio.to_thread(spec_of, request)
        await name_flow_run(spec)
        async with Pipeline(spec, on_begin) as work:
            yield work


def spec_of(request: Request) -> RunSpec:
    """Complete a request from the settings and the ledger; a command of this process adds its service and ceiling."""
    if (asked := command.get()) is not None:
        return asked.completed(run_spec(asked.request))
    by_deployment = in_worker_folder()
    if isinstance(request, RefreshRequest):
        refuse_secrets(request.source)
    spec = run_spec(request, by_deployment=by_deployment)
    return replace(spec, settings=with_service(spec.settings))


def _step(
    name: str, task_run_name: str
) -> Callable[[Callable[[Pipeline], Awaitable[str]]], Callable[[Pipeline], Awaitable[None]]]:
    """Make a task of a step; an expected refusal ends its task run with a message and no traceback, and is raised."""

    def make(function: Callable[[Pipeline], Awaitable[str]]) -> Callable[[Pipeline], Awaitable[None]]:
        @task(name=name, task_run_name=task_run_name, retries=0, cache_policy=NO_CACHE, persist_result=False)
        async def step(work: Pipeline) -> State[Any]:
            try:
                return Completed(message=line(logged(await function(work))))
            except PatternmillError as error:
                work.refusal = error
                return Failed(message=line(str(error)))

        @functools.wraps(function)
        async def run_step(work: Pipeline) -> None:
            running: Any = step
            state: State[Any] = await running(work, return_state=True)
            if work.refusal is not None:
                raise work.refusal
            if not state.is_completed():
                result = await state.aresult(raise_on_failure=False)
                raise result if isinstance(result, BaseException) else PatternmillError(state.message or "")

        return run_step

    return make


@_step("read", "read the file")
async def read_sheet(work: Pipeline) -> str:
    """Read the file or source."""
    chosen = work.spec.remake.lines() if work.spec.remake is not None else []
    if work.spec.selection is not None and work.spec.selection.left_out:
        chosen = work.spec.selection.left_out_lines(10)
    return "\n".join([await work.read(), *chosen])


@_step("check", "check every row")
async def check_rows(work: Pipeline) -> str:
    """Check every row against what the environment offers."""
    counts = await work.check()
    for note in work.checked.notes:
        logged(f"Note: {note}")
    return counts


@_step("plan", "plan")
async def make_plan(work: Pipeline) -> str:
    """Plan what is to be made. Writes nothing."""
    return str((await work.preview()).proposal)


async def approve(work: Pipeline) -> None:
    """Return if the plan needs no approval or was decided on; else suspend the flow run for a person."""
    await await_approval(work)


@_step("begin", "begin the run")
async def _begin(work: Pipeline) -> str:
    run = await work.plan(str(flow_run.id))
    await end_left_runs(run)
    if run.plan.sent_once:
        logged(f"Note: {run.plan.sent_once}")
    cost = f" for {run.cost}" if run.cost.worst else ""
    left_out = f". {run.left_out.message}" if run.left_out else ""
    return f"Run {run.record.run_id}: {goods(run.plan.purchases())} to buy{cost}{left_out}"


async def begin(work: Pipeline) -> None:
    """Take the catalog's lease and put the plan on record. Raises Overlap."""
    try:
        await _begin(work)
    except ApprovalNeeded:
        # The plan changed at the last moment; the new one needs an approval too.
        await await_approval(work)
        raise


@_step("results", "write the results")
async def _write_results(work: Pipeline) -> str:
    results = await work.finish()
    return f"Results, failures and gallery: {results.out.resolve()}"


async def write_results(work: Pipeline) -> None:
    """End the run in the ledger and write its results; a run that was suspended ends its process with them."""
    await heed_stop(work)
    await _write_results(work)


async def end(work: Pipeline) -> State[Any]:
    """Complete the run's page, and return the state that is named by the run's outcome."""
    await show_ending(work.begun, work.ended, work.published)
    if work.spec.settings.embedded and work.spec.by_deployment and not work.begun.is_stopped:
        # The command line draws them itself, so that Ctrl-C can skip it.
        draw_pictures(work.published.out, work.spec.settings)
    # In a log line too: Prefect may replace the message of a run that was cancelled in its UI.
    message = logged(ending_message(work.ended, work.published.causes))
    return await final_state(state_of(work.ended.outcome, message))


def draw_pictures(out: Path, settings: Settings) -> None:
    """Have an embedded studio draw a run's pictures; the process ends with the last one, and nothing else waits."""
    assert settings.studio_url is not None, "the embedded studio has an address"
    threading.Thread(
        target=keep_pictures, args=(out, settings.home, settings.studio_url), name="pictures"
    ).start()
