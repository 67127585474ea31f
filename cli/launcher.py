"""Takes a run from the command line to its end: a first look, a person's agreement, the flow, the summary.

`run_request` reads the file, takes a first look (checks and plans, and writes nothing), asks, and runs. If there is
something to make or to follow, the flow checks and plans again in this process, with the file as it was read, and a
Prefect server shows it.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cli.approval_prompt import agreed, is_paid_for
from cli.json_output import fields_of, show, write_before_exit
from cli.mapping_questions import MappingQuestions
from cli.run_display import Display, ending_lines
from cli.services import available_service
from cli.terminal import can_ask, command_line, echo, report_error, steps
from patternmill.addresses import source_name
from patternmill.errors import Overlap, PatternmillError
from patternmill.files import make_home
from patternmill.ledger.ledger import ledger_to_read
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.planning.changes import change_counts
from patternmill.runs.command import Command, current_command
from patternmill.runs.input import read_input
from patternmill.runs.origin import origin_note
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.preview import Preview
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest, RunRequest
from patternmill.runs.run import Run
from patternmill.runs.run_text import RunSummary
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import duration
from prefect_host.connection import UNRECORDED, PrefectConnection
from prefect_host.stop_signals import run_in_thread

if TYPE_CHECKING:
    from prefect import Flow, State

#: The name of the flow of each request, and of its module.
_FLOWS: dict[type[RunRequest], str] = {
    ImportRequest: "bulk_import",
    RefreshRequest: "catalog_refresh",
    RetryRequest: "retry_failed",
    RemakeRequest: "remake_patterns",
}
#: Seconds after which a server that does not answer yet is mentioned.
_SLOW_START = 5.0


def run_request(
    request: RunRequest,
    spec: RunSpec,
    approve: str | None = None,
    *,
    asks: bool = False,
    questions: MappingQuestions | None = None,
) -> int:
    """Run a request to its end, or only show its plan; print what came of it, and return the exit code.

    `spec` is made from `request`; `approve` is a plan's digest, or its beginning. `asks`: on a terminal, ask before
    money is spent or rows are left out. `questions`: those about columns and words. Raises InputRefused for an unusable
    input, and ConfigurationError for a ledger that lacks what the results beside it name.
    """
    if request.plan_only:
        return _show_plan(spec)
    spec = questions.read(spec) if questions is not None else replace(spec, file=read_input(spec))
    if spec.settings.ledger_url is None:
        make_home(spec.settings.home)
    if spec.settings.service is None:
        echo("PATTERNMILL_STUDIO_URL is not set: the embedded studio makes what is asked for.", err=True)
    asks = asks and approve is None and can_ask()
    launch = Launch(request, spec)
    with launch.connection as connection:
        if _is_first(spec):
            # The first run of a catalog has something to do, so its server starts in the meantime.
            connection.start()
        with available_service(spec.settings) as settings:
            launch.look(replace(spec, settings=settings), questions)
            if not agreed(launch.spec, launch.preview, approve, asks=asks):
                return EXIT_REFUSED
            launch.told_of_refused = asks and bool(launch.preview.proposal.to_buy)
            if asks and is_paid_for(settings):
                launch.limit_to_the_plan()
            launch.run()
    if not connection.delivered:
        # Prefect's client would try for minutes to reach a server that is gone.
        write_before_exit(launch.exit_code)
        sys.stdout.flush()
        os._exit(launch.exit_code)
    return launch.exit_code


def _is_first(spec: RunSpec) -> bool:
    """Return whether nothing was made in the catalog before."""
    with ledger_to_read(spec.settings) as ledger:
        return not any(runs_with_lease(ledger, spec.scope.catalog, spec.scope.environment))


class Launch:
    """A run of this process, from its first look to its record in the Prefect UI."""

    #: The plan of the first look.
    preview: Preview
    #: Whether there is something to make or to follow, as of the first look.
    _has_work: bool

    def __init__(self, request: Any, spec: RunSpec) -> None:
        self.spec = spec
        self.display = Display()
        self.connection = PrefectConnection(spec.settings.home, self._say_without)
        #: The run, once its plan is on record.
        self.begun: Run | None = None
        #: Whether a person has read why rows are refused.
        self.told_of_refused = False
        self._request = request
        #: Whether the Prefect UI shows the run.
        self._is_shown = False
        self._state_message = ""
        self._flow_run_id: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False

    # -- before anything is written

    def look(self, spec: RunSpec, questions: MappingQuestions | None) -> None:
        """Read, check and plan, again after each round of answers; write nothing but the answers."""
        answered: RunSpec | None = spec
        while answered is not None:
            self.spec = answered
            run_in_thread(self._plan, self.on_signal)
            steps.clear()
            answered = questions.ask_about(self.spec, self.preview.checked) if questions is not None else None

    async def _plan(self) -> None:
        self.display.step(f"Finding what is to be done for {source_name(self.spec.source)} …")
        self.preview = await _previewed(self.spec)

    def limit_to_the_plan(self) -> None:
        """Take the plan that a person agreed to as confirmed and as the most that is bought, if it is not paused."""
        settings = self.spec.settings.confirming(self.spec.settings.environment)
        ceiling = frozenset(self.preview.proposal.to_buy if self.preview.pause is None else ())
        self.spec = replace(self.spec, settings=settings, ceiling=ceiling)

    # -- the run

    def run(self) -> None:
        """Run until the results are there, print the summary, and wait until the Prefect UI has all of it."""
        self._has_work = self.preview.has_work
        # The run plans anew, and a plan of many rows takes much memory.
        del self.preview
        self.display.doing = ""
        try:
            with self.display.showing():
                running = run_in_thread(self._drive, self.on_signal, self._is_finished)
        except PatternmillError:
            # Otherwise Prefect's client would keep sending at exit, to a server that has ended by then.
            self.connection.finish(*self._in_prefect())
            raise
        self.print_ending()
        self._complete_record(running)

    async def _drive(self) -> None:
        """Run it as a flow, where there is work and a Prefect server. Raises what ends it before a run begins."""
        self._loop = asyncio.get_running_loop()
        try:
            flow = await self._flow_to_run() if self._has_work else None
            await (self._run_flow(flow) if flow is not None else self._run_alone())
        except Overlap as overlap:
            self._state_message = str(overlap)
        except PatternmillError:
            if self.begun is None or self.begun.unpublished is None:
                raise

    async def _flow_to_run(self) -> Flow[..., Any] | None:
        """Return the flow once a Prefect server answers, else None. Raises ConfigurationError if it rejects us."""
        reaching = asyncio.create_task(asyncio.to_thread(self._reach_server))
        if not (await asyncio.wait({reaching}, timeout=_SLOW_START))[0]:
            self.display.step("Waiting for the Prefect server …")
        flow = await reaching
        self.display.doing = ""
        return flow

    def _reach_server(self) -> Flow[..., Any] | None:
        if not self.connection.start():
            return None
        # This loads Prefect, which reads its server's address as it is imported, while our own server still starts.
        name = _FLOWS[type(self._request)]
        flow: Flow[..., Any] = getattr(importlib.import_module(f"flows.{name}"), name)
        return flow if self.connection.wait() else None

    async def _run_alone(self) -> None:
        spec = Command(self._request, self.spec).completed(run_spec(self._request))  # anew, as its flow does
        async with Run(spec, self._on_begin) as work:
            await work.run_through()

    async def _run_flow(self, flow: Any) -> None:
        command = Command(self._request, self.spec, self._on_begin)
        current_command.set(command)
        self._is_shown = True
        try:
            state: State[Any] = await flow(**command.parameters, return_state=True)
        except Exception as error:
            # The server was lost at the start or at the end; the run itself does not depend on it.
            if self.begun is not None:
                self.connection.delivered = False
                return
            self.connection.require_accepted(error)
            self._is_shown = False
            self._say_without(f"The Prefect server was lost ({type(error).__name__}).")
            await self._run_alone()
            return
        self._flow_run_id = str(state.state_details.flow_run_id or "") or None
        if command.fault is not None:
            raise command.fault
        await self._read_state(state)

    async def _read_state(self, state: State[Any]) -> None:
        """Read the state of a flow that has no run, or a run without results. Raises what kept a run from ending."""
        message = state.message or state.name or ""
        if self.begun is None or self.begun.ending is None:
            if state.is_failed() or state.is_crashed():
                result = await state.aresult(raise_on_failure=False)
                raise result if isinstance(result, BaseException) else PatternmillError(message)
            self._state_message = message
        elif self.begun.results is None and self.begun.unpublished is None:
            self.begun.unpublished = PatternmillError(
                f"The results were not written: {message}",
                remedy=f"Nothing is lost: `patternmill results {self.begun.record.run_id}` writes them.",
            )

    def _on_begin(self, run: Run) -> None:
        if self._is_stopping:
            # A signal came first, and is ending the process.
            raise PatternmillError("Ended before anything was bought.", code="stopped")
        self.begun = self.display.run = run
        if run.spec.origin is not None:
            self.display.print(origin_note(source_name(run.spec.source), run.spec.origin))

    def _is_finished(self) -> bool:
        """Return whether the run has its results, or cannot have them: only the Prefect server is left to wait for."""
        return self.begun is not None and bool(self.begun.results or self.begun.unpublished)

    def on_signal(self, reason: str) -> None:
        """Drain the run at the first signal; end the process at once at a second, or before the run has begun.

        Once the results are written, only the Prefect server is left to wait for, so the run's own end is shown.
        """
        run = self.begun
        if run is not None and run.results is not None:
            self.display.end(UNRECORDED)
            self.print_ending()
            write_before_exit(self.exit_code)
            os._exit(self.exit_code)
        is_second, self._is_stopping = self._is_stopping, True
        if run is None or self._loop is None or run.ending is not None or run.is_stopped or is_second:
            self.display.end(f"Ended at once. To go on: {command_line()}")
            os._exit(EXIT_CODES[Outcome.CANCELLED])
        drain = duration(run.spec.options.drain)
        self.display.print(
            f"Stopping: jobs in flight are followed for {drain}. A second Ctrl-C ends it at once."
        )
        self._loop.call_soon_threadsafe(run.stop, reason)

    # -- what came of it

    @property
    def exit_code(self) -> int:
        """Return the exit code of the process, once the run has ended."""
        if self.begun is None:
            return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
        if self.begun.ending is None or self.begun.unpublished is not None:
            return EXIT_CODES[Outcome.FAILED]
        return EXIT_CODES[self.begun.ending.outcome]

    def print_ending(self) -> None:
        """Print the summary, and why results are missing."""
        if not self._has_work:
            echo("Nothing to do.")
        told = self.told_of_refused
        lines = list(ending_lines(self.begun, self._state_message, command_line(), told_of_refused=told))
        show(lambda: self._report(lines), lines)
        if self.begun is not None and self.begun.unpublished is not None:
            report_error(self.begun.unpublished.message, self.begun.unpublished.remedy)

    def _report(self, lines: Sequence[str]) -> Mapping[str, object]:
        """Return what came of the run for programs; `lines` say it to people."""
        run = self.begun
        fault = run.unpublished if run is not None else None
        error = {"error": fields_of(fault, "code", "message", "remedy")} if fault is not None else {}
        if run is None or run.ending is None or run.results is None:
            return {"message": " ".join(lines), **error}
        names = ("code", "count", "skus", "message", "remedy")
        causes = [fields_of(cause, *names) for cause in run.results.causes]
        return {**dict(RunSummary.of(run, lines[0])), "causes": causes, **error}

    def _complete_record(self, running: Future[None]) -> None:
        """Wait, after all is printed, until the Prefect UI has the run's end and its record. Ctrl-C ends the wait."""
        steps.clear()
        if self._is_shown:
            self.display.step("Completing the run's page in the Prefect UI …")
        flow_run_id, task_runs = self._in_prefect()
        try:
            is_recorded = self.connection.finish(flow_run_id, task_runs, running)
        except KeyboardInterrupt:
            is_recorded = self.connection.delivered = False
        if not self._is_shown:
            return
        if not is_recorded:
            self.connection.delivered = False
            self.display.print(UNRECORDED)
        elif flow_run_id:
            echo(self.connection.run_line(flow_run_id))

    def _in_prefect(self) -> tuple[str | None, int]:
        """Return the ID of its flow run, and how many task runs made its items and groups."""
        if self.begun is None:
            return self._flow_run_id, 0
        return self.begun.record.prefect_flow_run_id or self._flow_run_id, self.begun.progress.task_runs

    def _say_without(self, why: str) -> None:
        """Say why the run is driven without Prefect."""
        self.display.print(
            f"{why}\nThe run is driven without Prefect: results and ledger do not depend on it, "
            "and `patternmill status` shows it."
        )


def _show_plan(spec: RunSpec) -> int:
    """Print what a run would change and make now; write and spend nothing."""
    spec = replace(spec, file=read_input(spec))
    with available_service(spec.settings) as settings:
        preview = asyncio.run(_previewed(replace(spec, settings=settings)))
    show(lambda: {"plan": _plan_fields(preview)}, plan_lines(preview, is_whole=preview.is_whole))
    return EXIT_CODES[Outcome.COMPLETED]


async def _previewed(spec: RunSpec) -> Preview:
    async with Run(spec) as work:
        return await work.preview()


def _plan_fields(preview: Preview) -> dict[str, object]:
    plan, cost = preview.plan, preview.proposal.cost
    return {
        **fields_of(plan.scope, "catalog", "environment"),
        "digest": preview.proposal.digest,
        "rows": len(plan.rows),
        "refused": plan.refused(),
        "items": {stage: plan.reasons_of(stage) for stage in plan.stages},
        "to_buy": plan.purchases(),
        "cost": fields_of(cost, "expected", "worst", "currency") if cost is not None else None,
        "changes": change_counts(preview.changes),
    }
