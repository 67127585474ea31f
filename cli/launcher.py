"""A run from the command line: its own servers where none are configured, the flow, the display, the summary."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cli.available_service import available_service
from cli.run_display import Display, ending_lines
from cli.run_options import command_line
from cli.terminal import echo, echo_lines, report_error, steps
from patternmill.catalog.changes import Changes, change_counts
from patternmill.catalog.remote import shown_address
from patternmill.errors import Overlap, PatternmillError
from patternmill.files import make_home
from patternmill.ledger.ledger import ledger_if_any
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.looking.kept_pictures import keep_pictures
from patternmill.looking.takes import pictures_of_takes
from patternmill.runs.approval import may_need_approval
from patternmill.runs.input_mapping import read_input
from patternmill.runs.refresh_changes import change_lines, counts_line
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest, RunRequest
from patternmill.runs.results_input import origin_note
from patternmill.runs.safeguards import refuse_new_ledger
from patternmill.runs.spec import RunSpec
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import duration
from prefect_host.connection import UNRECORDED, PrefectConnection
from prefect_host.stop_signals import run_in_thread

if TYPE_CHECKING:
    from prefect import Flow, State

    from patternmill.runs.run import Run
    from tasks.ahead import PipelineAhead

#: Each in the module of its name.
_FLOWS: dict[type[RunRequest], str] = {
    ImportRequest: "bulk_import",
    RefreshRequest: "catalog_refresh",
    RetryRequest: "retry_failed",
    RemakeRequest: "remake_patterns",
}
_INTERRUPTED = EXIT_CODES[Outcome.CANCELLED]
_MOST_CHANGES = 60
_UNSHOWN = "Nothing was to be done, so no Prefect server was started; `patternmill status` shows this run."


def show_plan(spec: RunSpec) -> int:
    """Print what a run would change and make now; writes and spends nothing."""
    spec = replace(spec, file=read_input(spec))
    with available_service(spec.settings) as settings:
        echo_lines(asyncio.run(_planned(replace(spec, settings=settings))))
    return 0


async def _planned(spec: RunSpec) -> list[str]:
    from patternmill.runs.pipeline import Pipeline
    from patternmill.runs.plan_text import plan_lines

    async with Pipeline(spec) as work:
        preview = await work.preview()
        changes = _change_lines(await work.changes(preview.plan)) if spec.retire_limit is not None else ()
        first, *rest = plan_lines(preview)
        return [first, *changes, *rest]


def _change_lines(changes: Changes) -> Iterator[str]:
    yield f"The source: {counts_line(change_counts(changes))}"
    yield from change_lines(changes, _MOST_CHANGES)


def run_request(request: RunRequest, spec: RunSpec, approve: str | None = None, *, asks: bool = False) -> int:
    """Run a request to its end and print the summary; returns the exit code.

    `spec` is made from `request`; `approve` is a plan's digest, or its beginning. `asks`: on a terminal, before a real
    service is paid for anything. Raises InputRefused for an unusable input, and ConfigurationError for a ledger that
    lacks the runs of the results here, before any server is started.
    """
    refuse_new_ledger(spec.settings, spec.catalog_folder)
    spec = replace(spec, file=read_input(spec))
    if spec.settings.ledger_url is None:
        make_home(spec.settings.home)
    asks = asks and approve is None and _is_paid_on_a_terminal(spec)
    if not _is_agreed(spec, approve, asks=asks):
        return EXIT_REFUSED
    if asks:
        spec = replace(spec, settings=spec.settings.confirming(spec.settings.environment))
    if spec.settings.service is None:
        echo("PATTERNMILL_STUDIO_URL is not set: the embedded studio makes what is asked for.", err=True)
    watched = _WatchedRun(request)
    with PrefectConnection(spec.settings.home, watched.display.print) as connection:
        if connection.configured or not _had_run(spec):
            connection.start()
        with available_service(spec.settings) as settings:
            running = _run_watched(watched, replace(spec, settings=settings), connection)
            watched.print_ending()
            watched.keep_pictures()
            has_ended = _has_ended(running, watched, connection)
            _complete_record(watched, connection, has_ended=has_ended)
    if not connection.delivered:
        # Prefect's client would try for minutes to reach a server that is gone.
        sys.stdout.flush()
        os._exit(watched.exit_code())
    return watched.exit_code()


def _had_run(spec: RunSpec) -> bool:
    """Whether it is worth a look if there is anything to do, before a server is started: not in a first run."""
    with ledger_if_any(spec.settings) as ledger:
        return ledger is not None and any(runs_with_lease(ledger, spec.scope.catalog, spec.scope.environment))


def _run_watched(watched: _WatchedRun, spec: RunSpec, connection: PrefectConnection) -> Future[None]:
    """Run it until its results are there; what shows it in the Prefect UI may go on."""
    try:
        with watched.display.showing():
            return run_in_thread(
                lambda: watched.run(spec, connection), watched.on_signal, watched.is_finished
            )
    except PatternmillError:
        # Else Prefect's client would keep sending at exit, to a server that has ended by then.
        connection.finish(watched.flow_run_id, watched.task_runs)
        raise


def _has_ended(running: Future[None], watched: _WatchedRun, connection: PrefectConnection) -> bool:
    """Whether a run with results came to its end in the Prefect UI too. Ctrl-C waits no longer."""
    steps.clear()
    if not watched.is_unshown:
        watched.display.step("Completing the run's page in the Prefect UI …")
    try:
        return connection.wait_for(running) and running.exception() is None
    except KeyboardInterrupt:
        connection.delivered = False
        return False


def _complete_record(watched: _WatchedRun, connection: PrefectConnection, *, has_ended: bool) -> None:
    """Wait, after all is said, for the run's record in the Prefect UI. Ctrl-C leaves it at what it has."""
    steps.clear()
    if watched.is_unshown:
        echo(_UNSHOWN)
    if not connection.is_available and connection.delivered:
        return
    watched.display.step("Completing the run's record in the Prefect UI …")
    try:
        is_recorded = has_ended and connection.finish(watched.flow_run_id, watched.task_runs)
    except KeyboardInterrupt:
        is_recorded = False
    if not is_recorded:
        connection.delivered = False
        watched.display.print(UNRECORDED)
    elif watched.flow_run_id:
        echo(connection.run_line(watched.flow_run_id))


def _is_paid_on_a_terminal(spec: RunSpec) -> bool:
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and spec.settings.service is not None and not spec.settings.embedded


def _is_agreed(spec: RunSpec, digest: str | None, *, asks: bool) -> bool:
    if digest is None and not asks and not may_need_approval(spec):
        return True
    from cli.approval_prompt import agreed

    with available_service(spec.settings) as settings:
        return asyncio.run(agreed(replace(spec, settings=settings), digest, asks=asks))


def _flow_of(request: RunRequest) -> Flow[..., Any]:
    """Imported late: Prefect reads its server's address on import."""
    name = _FLOWS[type(request)]
    flow: Flow[..., Any] = getattr(importlib.import_module(f"flows.{name}"), name)
    return flow


def _parameters(request: RunRequest) -> dict[str, Any]:
    """A request as a flow's parameters, which are stored in clear: the address without its secrets."""
    values = dict(request)
    if isinstance(request, RefreshRequest):
        values["source"] = shown_address(request.source)
    return values


class _WatchedRun:
    """One run of this process: its flow, its outcome, and its reaction to signals."""

    def __init__(self, request: RunRequest) -> None:
        self.display = Display()
        #: What resumes the run.
        self.command = command_line()
        self.begun: Run | None = None
        self.state_message = ""
        #: Whether it had nothing to do, and no server was started for it.
        self.is_unshown = False
        self._request = request
        self._work: PipelineAhead | None = None
        self._flow_run_id: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False

    @property
    def flow_run_id(self) -> str | None:
        return (self.begun.record.prefect_flow_run_id if self.begun else None) or self._flow_run_id

    @property
    def unpublished(self) -> PatternmillError | None:
        """Why an ended run has no results where they were to be."""
        return self.begun.unpublished if self.begun is not None else None

    async def run(self, spec: RunSpec, connection: PrefectConnection) -> None:
        """Run it, as a flow where a Prefect server answers. Raises what the steps before the first purchase raise."""
        from tasks.ahead import PipelineAhead

        self._loop = asyncio.get_running_loop()
        try:
            async with PipelineAhead(spec, self._on_begin) as self._work:
                await self._run(self._work, connection)
        except Overlap as overlap:
            self.state_message = str(overlap)
        except PatternmillError:
            if self.unpublished is None:
                raise

    async def _run(self, work: PipelineAhead, connection: PrefectConnection) -> None:
        def load() -> asyncio.Task[Flow[..., Any]]:
            return asyncio.create_task(asyncio.to_thread(_flow_of, self._request))

        loading = load() if connection.is_chosen else None
        if not connection.configured:
            self.display.step(f"Finding what is to be done for {work.spec.source.name} …")
            await work.read()
            await work.check()
            if not connection.is_started and await work.has_nothing_to_do():
                self.is_unshown = True
                await work.carry_out()
                return
            await work.go_ahead()
        self.display.step(f"{'Asking' if connection.configured else 'Starting'} the Prefect server …")
        connection.start()
        if connection.is_chosen:
            # To ask a server loads Prefect too, and Prefect fails to load in two threads at once.
            flow = await (loading or load())
            if await asyncio.to_thread(connection.wait):
                await self._run_flow(flow, work)
        await work.come_to_its_end()
        if self.begun is None and not self.state_message:
            await work.run_through()

    async def _run_flow(self, flow: Flow[..., Any], work: PipelineAhead) -> None:
        from patternmill.runs.pipeline import launched

        launched.set(work)
        try:
            running: Any = flow(**_parameters(self._request), return_state=True)
            state: State[Any] = await running
        except PatternmillError:
            raise
        except Exception as error:
            # The server was lost at the start or at the end; the run itself does not depend on it.
            went = "ended" if self._work is not None and self._work.is_finished else "continues"
            self.display.print(
                f"The Prefect server does not answer ({type(error).__name__}); the run {went} without it."
            )
        else:
            self._flow_run_id = str(state.state_details.flow_run_id or "") or None
            await work.come_to_its_end()
            await self._read_state(state)

    async def _read_state(self, state: State[Any]) -> None:
        """What a flow came to that did not end a run, or has no results of it. Raises what kept a run from ending."""
        if self.begun is None or self.begun.ending is None:
            if state.is_failed() or state.is_crashed():
                result = await state.aresult(raise_on_failure=False)
                raise result if isinstance(result, BaseException) else PatternmillError(state.message or "")
            self.state_message = state.message or state.name or ""
        elif self.begun.results is None and self.begun.unpublished is None:
            self.begun.unpublished = PatternmillError(
                f"The results were not written: {state.message or state.name}",
                remedy=f"Nothing is lost: `patternmill results {self.begun.record.run_id}` writes them.",
            )

    def exit_code(self) -> int:
        if self.begun is None:
            return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
        if self.begun.ending is None or self.unpublished is not None:
            return EXIT_CODES[Outcome.FAILED]
        return EXIT_CODES[self.begun.ending.outcome]

    def _on_begin(self, run: Run) -> None:
        if self._is_stopping:
            # A signal came before, and is ending the process.
            raise PatternmillError("Ended before anything was bought.", code="stopped")
        self.begun = run
        if run.spec.origin is not None:
            self.display.print(origin_note(run.spec.source.name, run.spec.origin))
        self.display.watch(run)

    @property
    def task_runs(self) -> int:
        """How many task runs show its rows."""
        return self.begun.progress.shown if self.begun is not None else 0

    def keep_pictures(self) -> None:
        """Have the pictures of an embedded studio, which ends with this command, next to the gallery."""
        run = self.begun
        settings = run.spec.settings if run is not None else None
        if run is None or run.results is None or settings is None or not settings.embedded:
            return
        assert settings.studio_url is not None, "the embedded studio has an address"
        # After a person's stop nothing more is waited for.
        for line in keep_pictures(
            run.results.out,
            settings.home,
            settings.studio_url,
            takes=pictures_of_takes(settings, run.record.environment, run.record.catalog),
            step=self.display.step,
            is_stopped=lambda: run.is_stopped,
        ):
            self.display.print(line)

    def print_ending(self) -> None:
        echo_lines(ending_lines(self.begun, self.state_message, self.command))
        if self.unpublished is not None:
            report_error(self.unpublished.message, self.unpublished.remedy)

    def is_finished(self) -> bool:
        """Whether it has its results, or cannot have them: nothing but the Prefect server is waited for."""
        return self._work is not None and self._work.is_finished

    def on_signal(self, reason: str) -> None:
        """The first one drains the run; a second one, or one before the run has begun, ends the process at once.

        Once the results are written, all that is left is the Prefect server, and the run's own end is shown.
        """
        run = self.begun
        if run is not None and run.results is not None:
            self.display.end(UNRECORDED)
            self.print_ending()
            os._exit(self.exit_code())
        if run is None or self._loop is None or run.ending is not None or run.is_stopped or self._is_stopping:
            # Meanwhile the run's own thread must not begin to buy.
            self._is_stopping = True
            self.display.end(f"Ended at once. To go on: {self.command}")
            os._exit(_INTERRUPTED)
        # Not only once the loop has come to it: the second one may follow at once.
        self._is_stopping = True
        drain = duration(run.spec.options.drain)
        self.display.print(
            f"Stopping: jobs in flight are followed for {drain}. A second Ctrl-C ends it at once."
        )
        self._loop.call_soon_threadsafe(run.stop, reason)
