"""The steps of a run, as Prefect tasks: read, check, plan, begin, write the results; and the states that end it."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from prefect import Flow, State, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import deployment, flow_run
from prefect.states import Completed, Failed
from slugify import slugify

from patternmill.errors import ApprovalNeeded, Overlap, Overtaken, PatternmillError
from patternmill.logs import write_logs
from patternmill.looking.page import gallery
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.command import Command, current_command
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.request import ImportRequest, RefreshRequest, Request
from patternmill.runs.run import Run
from patternmill.runs.run_text import RunSummary
from patternmill.runs.safeguards import refuse_secrets
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.settings import with_service
from patternmill.states import Outcome
from patternmill.text import goods
from prefect_host.client_settings import WORKER_FOLDER
from prefect_host.stop_signals import stop_on_signals
from tasks.approval_form import approve
from tasks.flow_runs import end_left_runs, final_state, heed_stop, name_flow_run
from tasks.markup import line, logged, markdown_lines
from tasks.prefect_states import ending_message, state_of
from tasks.run_page import show_ending, show_text


def state_of_refusal(error: PatternmillError) -> State[Any]:
    """Return the state of a flow run that was refused, or gave way to another one: its message, and no traceback."""
    if (command := current_command.get()) is not None:
        command.fault = error
    if isinstance(error, Overlap):
        return state_of(Outcome.SKIPPED_OVERLAP, str(error))
    if isinstance(error, Overtaken):
        return state_of(Outcome.CANCELLED, str(error))
    return Failed(message=line(logged(str(error))))


@asynccontextmanager
async def open_run(request: Request) -> AsyncIterator[Run]:
    """Run what a request asks for: signals stop it meanwhile, instead of ending the process.

    Raises ConfigurationError and InputRefused.
    """
    command = current_command.get() or Command(request)
    with stop_on_signals() as attach:

        def on_begin(run: Run) -> None:
            attach(run)
            command.on_begin(run)

        spec = await asyncio.to_thread(spec_of_flow, request)
        await name_flow_run(spec)
        async with Run(spec, on_begin, gallery=gallery) as command.run:
            yield command.run


def spec_of_flow(request: Request) -> RunSpec:
    """Complete a request from the settings and the ledger; a caller in this process adds what is its own."""
    if (command := current_command.get()) is not None:
        return command.completed(run_spec(command.request))
    write_logs()
    if by_deployment := deployment.id is not None:
        # Paths are meant from there.
        os.chdir(os.environ.get(WORKER_FOLDER, "."))
    if isinstance(request, ImportRequest | RefreshRequest):
        refuse_secrets(request.file if isinstance(request, ImportRequest) else request.source)
    spec = run_spec(request, by_deployment=by_deployment)
    return replace(spec, settings=with_service(spec.settings))


Step = Callable[[Run], Awaitable[str]]


def _step(name: str, task_run_name: str) -> Callable[[Step], Callable[[Run], Awaitable[None]]]:
    """Make a task of a step, whose message is what the step returns.

    An expected refusal ends its task run with a message and no traceback, and is raised all the same.
    """

    def decorate(function: Step) -> Callable[[Run], Awaitable[None]]:
        @task(name=name, task_run_name=task_run_name, retries=0, cache_policy=NO_CACHE, persist_result=False)
        async def step(run: Run) -> State[Any]:
            try:
                return Completed(message=line(logged(await function(run))))
            except PatternmillError as error:
                return Failed(message=line(str(error)), data=error)

        @functools.wraps(function)
        async def run_step(run: Run) -> None:
            running: Any = step
            state: State[Any] = await running(run, return_state=True)
            await state.aresult()

        return run_step

    return decorate


_ONLY_LOOKED = "Nothing was written or bought."


@_step("read", "read the file")
async def read_sheet(run: Run) -> str:
    """Read the file or source."""
    lines = [await run.read()]
    if run.spec.remake is not None:
        lines += run.spec.remake.lines()
    if run.spec.selection is not None:
        lines += run.spec.selection.left_out_lines(10)
    return "\n".join(lines)


@_step("check", "check every row")
async def check_rows(run: Run) -> str:
    """Check every row against what the environment offers."""
    counts = await run.check()
    for note in run.checked.notes:
        logged(f"Note: {note}")
    return counts


@_step("plan", "plan")
async def make_plan(run: Run) -> str:
    """Make the plan of what is to be made. Writes nothing."""
    return str((await run.preview()).proposal)


@_step("begin", "begin the run")
async def _begin(run: Run) -> str:
    await run.begin(str(flow_run.id))
    await end_left_runs(run)
    if run.plan.sent_once:
        logged(f"Note: {run.plan.sent_once}")
    cost = f" for {run.cost}" if run.cost.worst else ""
    left_out = f". {run.left_out.message}" if run.left_out else ""
    return f"Run {run.record.run_id}: {goods(run.plan.purchases())} to buy{cost}{left_out}"


async def begin(run: Run) -> None:
    """Take the catalog's lease and put the plan on record. Raises Overlap."""
    try:
        await _begin(run)
    except ApprovalNeeded:
        # The plan changed at the last moment; the new one needs an approval too.
        await approve(run)
        raise


@_step("results", "write the results")
async def _write_results(run: Run) -> str:
    results = await run.finish()
    copied = f"; copied to {results.copied_to}" if results.copied_to else ""
    return f"Results, failures and gallery: {results.out.resolve()}{copied}"


async def write_results(run: Run) -> None:
    """End the run in the ledger and write its results; a run that was suspended ends its process with them."""
    await heed_stop(run)
    try:
        await _write_results(run)
    except PatternmillError:
        # Where they are written, and only not copied, the run's page comes first.
        if run.results is None:
            raise


def nothing_to_retry(run: Run) -> State[Any]:
    """Return the state of a retry that has no rows: why, and what may be done about the others."""
    chosen = run.spec.selection
    assert chosen is not None, "a retry has a selection"
    return state_of(Outcome.COMPLETED, " ".join((chosen.nothing_to_retry, *chosen.left_out_lines(0))))


async def end_checked(run: Run) -> State[Any]:
    """Show what is wrong with the rows; the state has their numbers."""
    from patternmill.tables.report import report_lines, summary

    text = markdown_lines(report_lines(run.checked, everything=True))
    await show_text(f"check-{slugify(run.spec.catalog)}", f"## Check\n\n{text}", summary(run.checked))
    outcome = Outcome.COMPLETED_WITH_FAILURES if run.checked.refused_count else Outcome.COMPLETED
    return state_of(outcome, f"{summary(run.checked)} {_ONLY_LOOKED}")


async def end_planned(run: Run) -> State[Any]:
    """Show the plan; the state has what it would cost."""
    preview = await run.preview()
    proposal, scope = preview.proposal, preview.plan.scope
    text = markdown_lines(plan_lines(preview, is_whole=preview.is_whole))
    await show_text(f"plan-{proposal.digest[:LEAST_DIGEST]}", f"## Plan\n\n{text}", str(proposal))
    what = str(proposal) if proposal.items else "nothing"
    would = f"The plan for catalog {scope.catalog} ({scope.environment}) would buy {what}."
    return state_of(Outcome.COMPLETED, f"{would} {_ONLY_LOOKED}")


async def end(run: Run) -> State[Any]:
    """Complete the run's page, and return the state that is named by the run's outcome."""
    await show_ending(run, run.ended, run.published)
    # In a log line too: Prefect may replace the message of a run that was cancelled in its UI.
    message = logged(ending_message(run.ended, run.published.causes))
    if run.unpublished is not None:
        raise run.unpublished
    return await final_state(state_of(run.ended.outcome, message))


async def summary_of(flow: Flow[..., Any], request: Request) -> RunSummary:
    """Run a flow for a request, and return what came of it.

    Raises the PatternmillError that refused it, or that kept the results of an ended run from being written. A Prefect
    server that is lost once the run has its results changes nothing.
    """
    command = Command(request)
    before = current_command.set(command)
    try:
        running: Any = flow(**command.parameters, return_state=True)
        state: State[Any] = await running
    except Exception:
        if command.run is None or command.run.results is None:
            raise
        return RunSummary.of(command.run, str(command.run.ended.outcome.words))
    finally:
        current_command.reset(before)
    if command.fault is not None:
        raise command.fault
    if command.run is None or (command.run.ending is not None and command.run.results is None):
        result = await state.aresult(raise_on_failure=False)
        raise result if isinstance(result, BaseException) else PatternmillError(state.message or "")
    return RunSummary.of(command.run, state.message or "")
