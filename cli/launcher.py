"""A run from the command line: a first look, its own servers where none are configured, the flow, the summary."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace

from cli.approval_prompt import agreed
from cli.available_service import available_service
from cli.terminal import echo, echo_lines, steps
from cli.watched_run import WatchedRun
from patternmill.catalog.changes import Changes, change_counts
from patternmill.errors import PatternmillError
from patternmill.files import make_home
from patternmill.ledger.ledger import ledger_if_any
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.runs.approval import may_need_approval
from patternmill.runs.input_mapping import read_input
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.refresh_changes import change_lines, counts_line
from patternmill.runs.request import RunRequest
from patternmill.runs.spec import RunSpec
from patternmill.states import EXIT_REFUSED
from prefect_host.connection import UNRECORDED, PrefectConnection
from prefect_host.stop_signals import run_in_thread

_MOST_CHANGES = 60


def show_plan(spec: RunSpec) -> int:
    """Print what a run would change and make now; writes and spends nothing."""
    spec = replace(spec, file=read_input(spec))
    with available_service(spec.settings) as settings:
        echo_lines(asyncio.run(_planned(replace(spec, settings=settings))))
    return 0


async def _planned(spec: RunSpec) -> list[str]:
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

    It first reads, checks, plans and asks, and writes nothing. Where something is to be made or followed, its flow then
    does all of it again from the input as it was read, in this process; else the run needs no server.
    `spec` is made from `request`; `approve` is a plan's digest, or its beginning. `asks`: on a terminal, before a real
    service is paid for anything. Raises InputRefused for an unusable input, and ConfigurationError for a ledger that
    lacks what the results beside it name.
    """
    spec = replace(spec, file=read_input(spec))
    if spec.settings.ledger_url is None:
        make_home(spec.settings.home)
    if spec.settings.service is None:
        echo("PATTERNMILL_STUDIO_URL is not set: the embedded studio makes what is asked for.", err=True)
    asks = asks and approve is None and _is_paid_on_a_terminal(spec)
    watched = WatchedRun(request)
    with PrefectConnection(spec.settings.home, watched.display.print) as connection:
        if not _had_run(spec):
            # It will have something to do: its server starts meanwhile.
            connection.start()
        with available_service(spec.settings) as settings:
            spec = replace(spec, settings=settings)
            run_in_thread(lambda: watched.look(spec), watched.on_signal)
            if not _is_agreed(watched, spec, approve, asks=asks):
                return EXIT_REFUSED
            if asks:
                spec = _agreed_spec(watched, spec)
            running = _run_watched(watched, spec, connection)
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
    """Return whether the catalog had a run, so that there may be nothing to do for it."""
    with ledger_if_any(spec.settings) as ledger:
        return ledger is not None and any(runs_with_lease(ledger, spec.scope.catalog, spec.scope.environment))


def _is_paid_on_a_terminal(spec: RunSpec) -> bool:
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and spec.settings.service is not None and not spec.settings.embedded


def _is_agreed(watched: WatchedRun, spec: RunSpec, digest: str | None, *, asks: bool) -> bool:
    if digest is None and not asks and not may_need_approval(spec):
        return True
    steps.clear()
    return asyncio.run(agreed(spec, watched.preview, digest, asks=asks))


def _agreed_spec(watched: WatchedRun, spec: RunSpec) -> RunSpec:
    """Return the spec with what was agreed to on the terminal: its environment, and the plan as a ceiling."""
    settings = spec.settings.confirming(spec.settings.environment)
    return replace(spec, settings=settings, ceiling=frozenset(watched.preview.proposal.to_buy))


def _run_watched(watched: WatchedRun, spec: RunSpec, connection: PrefectConnection) -> Future[None]:
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


def _has_ended(running: Future[None], watched: WatchedRun, connection: PrefectConnection) -> bool:
    """Return whether a run with results came to its end in the Prefect UI too. Ctrl-C waits no longer."""
    steps.clear()
    if watched.is_shown:
        watched.display.step("Completing the run's page in the Prefect UI …")
    try:
        return connection.wait_for(running) and running.exception() is None
    except KeyboardInterrupt:
        connection.delivered = False
        return False


def _complete_record(watched: WatchedRun, connection: PrefectConnection, *, has_ended: bool) -> None:
    """Wait, after all is printed, for the run's record in the Prefect UI. Ctrl-C leaves it at what it has."""
    steps.clear()
    if not watched.is_shown or (not connection.is_available and connection.delivered):
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
