"""The verb `ui`: opens the history of the runs in the Prefect UI."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cli.terminal import echo

if TYPE_CHECKING:
    from prefect_host.own_server import OwnServer


@click.command("ui")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The port to serve on (default: the same as last time)."
)
def command(port: int | None) -> int:
    """Open the history of the runs in the Prefect UI.

    Serves the record that `patternmill import` keeps under PATTERNMILL_HOME (runs, task runs, logs,
    artifacts), prints its address, and stops with Ctrl-C. Imports that run at the same time show up in it.
    Runs on your own Prefect server (PREFECT_API_URL) are in that server's history instead.

    \b
    Example:
      patternmill ui --port 4200

    Exit codes: 0 stopped by Ctrl-C, 1 the server did not start or ended, 2 a setting is wrong.
    """
    from cli.launcher import repair_records
    from patternmill.settings import load_settings
    from prefect_host.own_server import OwnServer
    from prefect_host.stop_signals import until_interrupted

    settings = load_settings()
    with OwnServer(settings.home, port=port).for_this_process() as server:
        echo(f"The history of {settings.home}: {server.ui_url}")
        echo(f"To log in: {login_hint(server)}")
        echo("Ctrl-C stops.")
        repair_records(settings, echo)
        server.wait_end(until_interrupted())
    return 0


def login_hint(server: OwnServer) -> str:
    """The address that logs a browser in; a log does not get it, but where to find it."""
    if sys.stdout.isatty():
        return f"{server.login_url()}  (in each browser, after each start; for nobody else)"
    return "`patternmill ui` on a terminal shows the address"
