"""A run from the command line: its own servers where none are configured, the flow, the display, the summary."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cli.approval_prompt import approved
from cli.mapping_prompt import confirmed_input
from cli.plan_text import plan_lines
from cli.run_display import Display, ending_lines
from cli.run_options import command_line
from cli.terminal import echo
from patternmill.catalog.changes import Changes
from patternmill.catalog.remote import shown_address
from patternmill.errors import ConfigurationError, Overlap, PatternmillError
from patternmill.results.gallery import keep_pictures, share_pictures
from patternmill.runs.approval import may_need_approval
from patternmill.runs.pipeline import Launch, Pipeline, launched
from patternmill.runs.refresh_changes import change_lines, counts_line
from patternmill.runs.request import RefreshRequest, RetryRequest, RunRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import duration
from prefect_host.connection import PrefectConnection, incomplete_records, mark_incomplete
from prefect_host.stop_signals import run_in_thread

if TYPE_CHECKING:
    from prefect import Flow, State

    from prefect_host.record import KnownEnds

_INTERRUPTED = EXIT_CODES[Outcome.CANCELLED]
_MOST_CHANGES = 60


def show_plan(spec: RunSpec) -> int:
    """Print what a run would change and make now; writes and spends nothing."""
    spec = replace(spec, file=confirmed_input(spec))
    with available_service(spec.settings) as settings:
        for line in asyncio.run(_planned(replace(spec, settings=settings))):
            echo(line)
    return 0


async def _planned(spec: RunSpec) -> list[str]:
    async with Pipeline(spec) as work:
        await work.read()
        await work.check()
        preview = await work.preview()
        changes = _change_lines(await work.changes(preview.plan)) if spec.refresh is not None else ()
        return [*changes, *plan_lines(preview, work.checked, work.proposal(preview.plan).digest())]


def _change_lines(changes: Changes) -> Iterator[str]:
    yield f"The source: {counts_line(changes.counts())}"
    yield from change_lines(changes, _MOST_CHANGES)
    yield ""


def run_request(request: RunRequest, spec: RunSpec, approve: str | None = None) -> int:
    """Run a request to its end and print the summary; returns the exit code.

    `spec` is made from `request`; `approve` is a plan's digest, or its beginning. Raises InputRefused for an
    unusable input, before any server is started.
    """
    spec = replace(spec, file=confirmed_input(spec))
    _refuse_spread_over_embedded_studio(spec)
    if not _is_approved(spec, approve):
        return EXIT_REFUSED
    watched = _WatchedRun()
    with PrefectConnection(spec.settings.home, watched.display.print) as connection:
        watched.display.print("Starting …")
        with available_service(spec.settings) as settings:
            connection.wait()
            flow = _flow_of(request) if connection.is_available else None
            work = watched.run(replace(spec, settings=settings), flow, _parameters(request))
            recorded = _recorded_when_refused(watched, connection)
            with recorded, connection.circuit_breaker(), watched.display.showing():
                code = run_in_thread(work, watched.on_signal)
            watched.keep_pictures()
            flow_run_id = watched.flow_run_id
            complete = connection.complete_record(flow_run_id, watched.known_ends)
            if complete:
                repair_records(settings, watched.display.print)
            elif watched.begun is not None and flow_run_id is not None:
                mark_incomplete(settings.home, watched.begun.record.run_id, settings.environment)
        address = connection.run_address(flow_run_id) if complete and flow_run_id else None
        for line in ending_lines(
            watched.begun, watched.state_message, address, connection.outlives_run, watched.command
        ):
            echo(line)
    if not connection.delivered:
        # Prefect's client would try for minutes to reach a server that is gone.
        sys.stdout.flush()
        os._exit(code)
    return code


def repair_records(settings: Settings, print_line: Callable[[str], None]) -> None:
    """Complete what the Prefect UI lacks of earlier runs. Call it when Prefect is pointed at a server."""
    if not incomplete_records(settings.home):
        return
    from tasks.record_repair import complete_earlier_records

    for run_id in asyncio.run(complete_earlier_records(settings)):
        print_line(f"The record of run {run_id} in the Prefect UI is complete now.")


@contextmanager
def _recorded_when_refused(watched: _WatchedRun, connection: PrefectConnection) -> Iterator[None]:
    """Else Prefect's client would keep sending at exit, to a server that has ended by then."""
    try:
        yield
    except PatternmillError:
        connection.complete_record(watched.flow_run_id)
        raise


def _refuse_spread_over_embedded_studio(spec: RunSpec) -> None:
    if spec.spread is not None and spec.settings.studio_url is None:
        raise ConfigurationError(
            "A run can be spread only where every worker reaches the service, and its address is not set.",
            remedy="Set PATTERNMILL_STUDIO_URL, or leave --spread out.",
        )


def _is_approved(spec: RunSpec, digest: str | None) -> bool:
    if digest is None and not may_need_approval(spec):
        return True
    with available_service(spec.settings) as settings:
        return asyncio.run(approved(replace(spec, settings=settings), digest))


def _flow_of(request: RunRequest) -> Flow[..., Any]:
    """Imported late: Prefect reads its server's address on import."""
    if isinstance(request, RetryRequest):
        from flows.retry_failed import retry_failed

        return retry_failed
    if isinstance(request, RefreshRequest):
        from flows.catalog_refresh import catalog_refresh

        return catalog_refresh
    from flows.bulk_import import bulk_import

    return bulk_import


def _parameters(request: RunRequest) -> dict[str, Any]:
    """A request as a flow's parameters, which are stored in clear: addresses without their secrets."""
    values = dict(request)
    if isinstance(request, RefreshRequest):
        values["source"] = shown_address(request.source)
        values["out"] = request.out and shown_address(request.out)
    return values


@contextmanager
def available_service(settings: Settings) -> Iterator[Settings]:
    """The settings with a service: the one they name, or an embedded studio while the context lasts."""
    if settings.studio_url is not None:
        yield settings
        return
    from cli.embedded_studio import embedded_studio

    with embedded_studio(settings.home, environment=settings.environment) as studio:
        yield settings.model_copy(update={"studio_url": studio.url, "api_key": studio.key, "embedded": True})


class _WatchedRun:
    """One run of this process: its flow, its outcome, and its reaction to signals."""

    def __init__(self) -> None:
        self.display = Display()
        #: What resumes the run.
        self.command = command_line()
        self.begun: Run | None = None
        self.state_message = ""
        self._flow_run_id: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def flow_run_id(self) -> str | None:
        return self.begun.record.prefect_flow_run_id if self.begun else self._flow_run_id

    async def run(self, spec: RunSpec, flow: Flow[..., Any] | None, parameters: dict[str, Any]) -> int:
        """Run it, as a flow unless that is None; returns the exit code.

        Raises what the steps before the first purchase raise.
        """
        self._loop = asyncio.get_running_loop()
        if flow is not None:
            launched.set(Launch(spec, self._on_begin))
            try:
                running: Any = flow(**parameters, return_state=True)
                state: State[Any] = await running
            except PatternmillError:
                raise
            except Exception as error:
                # The server was lost at the start or at the end; the run itself does not depend on it.
                self.display.print(f"The Prefect server does not answer ({type(error).__name__}).")
            else:
                await self._read_state(state)
        if self.begun is None and not self.state_message:
            try:
                async with Pipeline(spec, self._on_begin) as work:
                    await work.run_through()
            except Overlap as overlap:
                self.state_message = str(overlap)
        return self._exit_code()

    async def _read_state(self, state: State[Any]) -> None:
        """What a flow that did not end a run came to. Raises what stopped it before the first purchase."""
        if state.state_details.flow_run_id is not None:
            self._flow_run_id = str(state.state_details.flow_run_id)
        if self.begun is None or self.begun.ending is None:
            if state.is_failed() or state.is_crashed():
                result = await state.aresult(raise_on_failure=False)
                raise result if isinstance(result, BaseException) else PatternmillError(state.message or "")
            self.state_message = state.message or state.name or ""

    def _exit_code(self) -> int:
        if self.begun is None:
            return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
        if self.begun.ending is None:
            return EXIT_CODES[Outcome.FAILED]
        return EXIT_CODES[self.begun.ending.outcome]

    def _on_begin(self, run: Run) -> None:
        self.begun = run
        if run.spec.origin is not None:
            self.display.print(run.spec.origin.sentence())
        self.display.watch(run)

    def known_ends(self) -> KnownEnds | None:
        """What the Prefect server should show of an ended run."""
        if self.begun is None or self.begun.ending is None:
            return None
        from tasks.item_records import known_ends
        from tasks.prefect_states import ending_message, state_of, step_states

        ending, inside = self.begun.ending, known_ends(self.begun)
        top = state_of(ending.outcome, ending_message(ending))
        return replace(inside, top=top, inside={**inside.inside, **step_states(self.begun)})

    def keep_pictures(self) -> None:
        """Copy the pictures of an embedded studio, which ends with this command, next to the gallery."""
        run = self.begun
        if run is not None and run.results is not None and run.spec.settings.embedded:
            settings = run.spec.settings
            assert settings.studio_url is not None, "the embedded studio has an address"
            out, cache = run.results.out, settings.home / "pictures"
            keep_pictures(out, cache, settings.studio_url, self.display.print)
            if run.results.whole is not None:
                share_pictures(run.results.whole, cache)

    def on_signal(self, name: str) -> None:
        """The first one drains the run; a second one, or one before the run has begun, ends the process at once."""
        run = self.begun
        if run is None or self._loop is None or run.ending is not None or run.is_stopped:
            self.display.print(f"Ended at once. To go on: {self.command}")
            os._exit(_INTERRUPTED)
        drain = duration(run.spec.options.drain)
        self.display.print(
            f"Stopping: jobs in flight are followed for {drain}. A second signal ends it at once."
        )
        self._loop.call_soon_threadsafe(run.stop, f"Stopped by {name}.")
