"""One run of this process: what it has to do, its flow, its outcome, and its reaction to signals."""

from __future__ import annotations

import asyncio
import importlib
import os
from typing import TYPE_CHECKING, Any

from cli.run_display import Display, ending_lines
from cli.run_options import command_line
from cli.terminal import echo, echo_lines, report_error
from patternmill.catalog.remote import shown_address
from patternmill.errors import Overlap, PatternmillError
from patternmill.looking.kept_pictures import keep_pictures
from patternmill.looking.takes import pictures_of_takes
from patternmill.results.file_origin import origin_note
from patternmill.runs.pipeline import Command, Pipeline, command
from patternmill.runs.preview import Preview
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest, RunRequest
from patternmill.runs.spec import RunSpec
from patternmill.states import EXIT_CODES, Outcome
from patternmill.text import duration
from prefect_host.connection import UNRECORDED, PrefectConnection

if TYPE_CHECKING:
    from prefect import Flow, State

    from patternmill.runs.run import Run

#: Each in the module of its name.
_FLOWS: dict[type[RunRequest], str] = {
    ImportRequest: "bulk_import",
    RefreshRequest: "catalog_refresh",
    RetryRequest: "retry_failed",
    RemakeRequest: "remake_patterns",
}
_INTERRUPTED = EXIT_CODES[Outcome.CANCELLED]
#: Seconds after which a server that does not answer yet is mentioned.
_SLOW_START = 5.0


class WatchedRun:
    """Follows a run from its first look to its end."""

    def __init__(self, request: Any) -> None:
        self.display = Display()
        #: What resumes the run.
        self.command = command_line()
        self.begun: Run | None = None
        self.state_message = ""
        #: Whether there is something to make or to follow, as of the first look.
        self.has_work = True
        #: Whether the Prefect UI shows it.
        self.is_shown = False
        self._request = request
        self._preview: Preview | None = None
        self._flow_run_id: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False

    @property
    def preview(self) -> Preview:
        """Return the plan of the first look."""
        assert self._preview is not None, "looked at before it is asked about"
        return self._preview

    @property
    def flow_run_id(self) -> str | None:
        return (self.begun.record.prefect_flow_run_id if self.begun else None) or self._flow_run_id

    @property
    def task_runs(self) -> int:
        """Count the task runs that made its items and groups."""
        return self.begun.progress.task_runs if self.begun is not None else 0

    @property
    def unpublished(self) -> PatternmillError | None:
        """Why an ended run has no results where they were to be."""
        return self.begun.unpublished if self.begun is not None else None

    async def look(self, spec: RunSpec) -> None:
        """Read, check and plan; writes nothing. Raises what these steps raise."""
        self.display.step(f"Finding what is to be done for {spec.source.name} …")
        async with Pipeline(spec) as work:
            self._preview = await work.preview()
            self.has_work = not await work.has_nothing_to_do()

    async def run(self, spec: RunSpec, connection: PrefectConnection) -> None:
        """Run it as a flow, where there is work and a Prefect server. Raises what ends it before a run begins."""
        self._loop = asyncio.get_running_loop()
        try:
            if self.has_work and await self._is_answered(connection):
                await self._run_flow(spec, connection)
            else:
                await self._run_alone(spec)
        except Overlap as overlap:
            self.state_message = str(overlap)
        except PatternmillError:
            if self.unpublished is None:
                raise

    async def _is_answered(self, connection: PrefectConnection) -> bool:
        """Wait for the Prefect server. Raises ConfigurationError when a configured one rejects this process."""
        connection.start()
        if not connection.is_chosen:
            return False
        # Before the server is asked, which loads Prefect too: it fails to load in two threads at once.
        await asyncio.to_thread(self._flow)
        slow = asyncio.get_running_loop().call_later(
            _SLOW_START, self.display.print, "Waiting for the Prefect server …"
        )
        try:
            return await asyncio.to_thread(connection.wait)
        finally:
            slow.cancel()

    def _flow(self) -> Flow[..., Any]:
        """Import the flow, and so Prefect, which reads its server's address as it is imported."""
        name = _FLOWS[type(self._request)]
        flow: Flow[..., Any] = getattr(importlib.import_module(f"flows.{name}"), name)
        return flow

    async def _run_alone(self, spec: RunSpec) -> None:
        async with Pipeline(spec, self._on_begin) as work:
            await work.run_through()

    async def _run_flow(self, spec: RunSpec, connection: PrefectConnection) -> None:
        asked = Command(self._request, spec.settings, self._on_begin, spec.file, spec.ceiling)
        command.set(asked)
        self.is_shown = True
        try:
            running: Any = self._flow()(**_parameters(self._request), return_state=True)
            state: State[Any] = await running
        except Exception as error:
            # The server was lost at the start or at the end; the run itself does not depend on it.
            if self.begun is not None:
                connection.delivered = False
                return
            connection.require_accepted(error)
            self.is_shown = False
            connection.go_without(f"The Prefect server was lost ({type(error).__name__}).")
            await self._run_alone(spec)
            return
        self._flow_run_id = str(state.state_details.flow_run_id or "") or None
        if asked.fault is not None:
            raise asked.fault
        await self._read_state(state)

    async def _read_state(self, state: State[Any]) -> None:
        """Read what a flow came to that has no run, or no results of it. Raises what kept a run from ending."""
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

    def _on_begin(self, run: Run) -> None:
        if self._is_stopping:
            # A signal came before, and is ending the process.
            raise PatternmillError("Ended before anything was bought.", code="stopped")
        self.begun = run
        if run.spec.origin is not None:
            self.display.print(origin_note(run.spec.source.name, run.spec.origin))
        self.display.watch(run)

    def exit_code(self) -> int:
        if self.begun is None:
            return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
        if self.begun.ending is None or self.unpublished is not None:
            return EXIT_CODES[Outcome.FAILED]
        return EXIT_CODES[self.begun.ending.outcome]

    def is_finished(self) -> bool:
        """Return whether it has its results, or cannot have them: only the Prefect server is waited for."""
        return self.begun is not None and (self.begun.results is not None or self.unpublished is not None)

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
        """Print the summary, and where results are missing."""
        if not self.has_work:
            echo("Nothing to do.")
        echo_lines(ending_lines(self.begun, self.state_message, self.command))
        if self.unpublished is not None:
            report_error(self.unpublished.message, self.unpublished.remedy)

    def on_signal(self, reason: str) -> None:
        """Drain the run at the first signal; end the process at once at a second, or before the run has begun.

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


def _parameters(request: RunRequest) -> dict[str, Any]:
    """Return a request as a flow's parameters, which are stored in clear: the address without its secrets."""
    values = dict(request)
    if isinstance(request, RefreshRequest):
        values["source"] = shown_address(request.source)
    return values
