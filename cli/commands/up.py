"""The verbs `up` and `studio`: serve the Prefect UI with a worker and the deployments, a worker alone, or a studio."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from cli.services import EmbeddedStudio
from cli.terminal import echo, echo_lines, login_hint
from cli.worker import STOP_SECONDS, serve_worker
from patternmill.env_file import PREFIX, read_env_file, set_variables
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.files import make_home
from patternmill.ledger.ledger import ledger_url
from patternmill.profiles import EMBEDDED, NOT_STARTED
from patternmill.settings import Settings, in_force, load_settings
from prefect_host import shared_process
from prefect_host.client_settings import API_URL, WORKER_FOLDER, WORKER_LOG
from prefect_host.own_server import LEDGER_URL, METRICS_PATH, OwnServer
from prefect_host.stop_signals import Interruption, until_interrupted

_CHECKOUT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.3


@click.command("up")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the Prefect UI (default: a new one).")
@click.option("--limit", type=click.IntRange(1), help="The most runs at once.")
@click.option("--worker", is_flag=True, help="A worker alone, for the Prefect server at PREFECT_API_URL.")
def command(port: int | None, limit: int | None, worker: bool) -> int:
    """Serve all that runs need in one terminal: Prefect's server and UI, a worker, the deployments.

    Serves the embedded studio too if PATTERNMILL_STUDIO_URL is not set. Runs of `patternmill import` appear in the same
    UI. Crashed runs of deployments are begun again, once. Ctrl-C lets the runs drain and write their results, and then
    stops everything; a second Ctrl-C stops at once.

    With --worker it serves a worker alone, with the service and key of its own environment or home. A run may choose
    its parameters, but no command, environment variables or folder.

    \b
    Examples (then: Run -> Custom run of `bulk-import` in the UI):
      patternmill up --port 4200
      PREFECT_API_URL=http://prefect.example:4200/api patternmill up --worker

    Exit codes: 0 stopped by a signal; 1 something did not start or ended by itself (a supervisor should start a worker
    again); 2 a setting is wrong.
    """
    has_server = bool(os.environ.get(API_URL))
    if worker and port is not None:
        raise click.UsageError("A worker alone (--worker) has no --port.")
    if worker and not has_server:
        raise ConfigurationError(
            "PREFECT_API_URL is not set.",
            remedy="Set it, or leave --worker out: `up` has a server of its own.",
        )
    # Each run of a worker names its environment.
    settings = load_settings(unknown_too=worker)
    if worker:
        serve_worker(settings, limit)
        return 0
    stop = until_interrupted()
    if has_server:
        echo("PREFECT_API_URL is set; this serves another server. With --worker it serves that one.")
    with (
        _lasting_server(settings, port) as server,
        _environment(settings) as environment,
        _worker(settings, environment, limit, stop) as process,
    ):
        if not stop.is_set():
            _deploy(environment)
        if not stop.is_set():
            _show_addresses(server, settings)
        while not stop.wait(_POLL_SECONDS):
            if process.poll() is not None:
                raise PatternmillError("The worker ended.", code="worker", remedy="See its worker.log.")
    return 0


@contextmanager
def _lasting_server(settings: Settings, port: int | None) -> Iterator[OwnServer]:
    served = settings if settings.profiles else settings.at(NOT_STARTED)
    server = OwnServer(settings.home, port=port, settings={LEDGER_URL: ledger_url(served)})
    echo("Starting the Prefect server …")
    with server.for_this_process():
        if server.child is None:
            echo("It was running already: schedules, automations and metrics are off until it is restarted.")
        yield server


@contextmanager
def _environment(settings: Settings) -> Iterator[dict[str, str]]:
    """Yield the environment of the worker and its runs, with the settings of this folder's file and a service."""
    # The worker runs in another folder and would read the file there, without the limits and prices of this one.
    here = in_force(set_variables(os.environ), read_env_file())
    environment = {
        **os.environ,
        **{name: text for name, text in here.items() if name.startswith(PREFIX)},
        "PATTERNMILL_HOME": str(settings.home.resolve()),
        "PATTERNMILL_ENVIRONMENT": settings.environment,
        WORKER_FOLDER: str(Path.cwd()),
    }
    if settings.profiles:
        yield environment
        return
    with EmbeddedStudio(settings.home, environment=settings.environment) as studio:
        yield environment | {EMBEDDED["url"]: studio.url, EMBEDDED["key"]: studio.key.get_secret_value()}


@contextmanager
def _worker(
    settings: Settings, environment: Mapping[str, str], limit: int | None, stop: Interruption
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a worker that ends when this process does, even if that is killed.

    It inherits the locks of the users of server and studio, so that both outlast its runs.
    """
    locks = [os.open(path, os.O_RDWR) for path in sorted(settings.home.resolve().glob("*/users.lock"))]
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_SH)
    make_home(settings.home)
    echo("Starting a worker …")
    with shared_process.private_log(settings.home / WORKER_LOG) as log:
        command = ["cli.worker", *([str(limit)] if limit else [])]
        streams = {"stdin": subprocess.PIPE, "stdout": log, "stderr": subprocess.STDOUT}
        worker = _start(command, environment, **streams, pass_fds=locks)
    for lock in locks:
        os.close(lock)
    try:
        yield worker
    finally:
        _end(worker, stop)


def _start(command: Sequence[str], environment: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
    """Start one of our modules out of reach of Ctrl-C: this process ends it in order, with no work half done."""
    program = [sys.executable, "-P", "-m", *command]
    return shared_process.start_process(
        program, cwd=_CHECKOUT, env=dict(environment), start_new_session=True, **options
    )


def _end(worker: subprocess.Popen[bytes], stop: Interruption) -> None:
    """Let the runs drain; a second Ctrl-C ends them at once."""
    if worker.poll() is None:
        echo("Stopping: runs drain, and write their results. A second Ctrl-C stops at once.")
    # If no signal led here, the first one ends the runs at once.
    most = min(stop.count, 1)
    assert worker.stdin is not None, "the worker's lifeline"
    worker.stdin.close()
    deadline = time.monotonic() + STOP_SECONDS + 10
    while worker.poll() is None and time.monotonic() < deadline and stop.count <= most:
        time.sleep(_POLL_SECONDS)
    worker.terminate()
    try:
        worker.wait(timeout=5)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def _deploy(environment: Mapping[str, str]) -> None:
    """Register the deployments; schedules and parameters that people set stay."""
    echo("Registering the deployments …")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    registering = _start(["tasks.deployments"], environment, **pipes)
    lines, errors = (text.decode() for text in registering.communicate())
    if registering.returncode:
        why = f"The deployments could not be registered:\n{(errors or lines)[-2000:]}"
        remedy = "See that the Prefect server answers, and start again."
        raise PatternmillError(why, code="deploy", remedy=remedy)
    echo_lines(lines.splitlines())


def _show_addresses(server: OwnServer, settings: Settings) -> None:
    echo(f"Prefect UI:   {server.ui_url}")
    echo(f"Deployments:  {server.ui_url}/deployments")
    if server.child is not None:
        credential = server.directory / "credential"
        echo(f"Metrics:      {server.ui_url}{METRICS_PATH}, with the credential in {credential}")
    echo(f"To log in:    {login_hint(server.login_url())}")
    echo(f"Service:      {settings.studio_url or 'the embedded studio'}")
    echo(f"Paths of files are relative to {Path.cwd()}; the worker's log is in {settings.home.resolve()}.")
    echo("Ctrl-C stops.")


@click.command("studio")
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0: a free one.")
@click.option(
    "--pace",
    type=click.Choice(["quick", "realistic", "instant"]),
    default="quick",
    show_default=True,
    help="How long jobs take; realistic: one to two minutes.",
)
@click.option(
    "--environment", help="Category IDs differ by it (default: PATTERNMILL_ENVIRONMENT, or staging)."
)
def studio(port: int, pace: str, environment: str | None) -> int:
    """Serve the embedded studio, for trials; its console is at /console.

    `patternmill import` starts the same service when PATTERNMILL_STUDIO_URL is not set. Its jobs, pictures and key are
    kept in the `studio` directory under PATTERNMILL_HOME; the key is a new one at each start.

    \b
    Example, in two terminals:
      patternmill studio --pace realistic
      export PATTERNMILL_STUDIO_URL=http://127.0.0.1:8321/v1
      export PATTERNMILL_API_KEY="$(cat .patternmill/studio/api-key)"
      patternmill import inputs/spring_catalog.csv

    Exit codes: 0 stopped by Ctrl-C; 1 it did not start (a port in use) or ended; 2 a setting is wrong.
    """
    settings = load_settings(environment=environment)
    stop = until_interrupted()
    with EmbeddedStudio(settings.home, environment=settings.environment, pace=pace, port=port) as served:
        echo(f"The embedded studio ({settings.environment}, {pace}): {served.url}")
        echo(f"Its console: {served.url.removesuffix('/v1')}/console")
        echo(
            f"Its key is in {settings.home / 'studio' / 'api-key'}; its log in {served.log_path}. Ctrl-C stops."
        )
        served.wait_end(stop)
    return 0
