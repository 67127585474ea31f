"""The verbs that serve: `up` for what scheduled and clicked runs need, and `studio`."""

import asyncio
import contextlib
import os
import signal
import threading
from pathlib import Path

import click

from cli.server import prefect_server
from cli.shared import environment
from cli.studio import embedded_studio, is_meant
from patternmill.errors import Refusal
from patternmill.settings import PREFIX, Settings, read_settings

#: How often the worker looks for runs; Prefect's own ten seconds are long for who has just clicked on Run.
_WORKER = {"PREFECT_WORKER_QUERY_SECONDS": "3"}
_PORT = click.IntRange(1, 65535)


@click.command()
@click.option("--port", type=_PORT, default=None, help="The port of the Prefect UI. Default: any free one.")
@click.option("--limit", type=click.IntRange(1), help="The most runs at once.")
def up(port: int | None, limit: int | None) -> None:
    """Serve the Prefect UI with the deployments, and carry out what is scheduled or begun there.

    Uses the Prefect server of PREFECT_API_URL, or of Prefect's profile, where there is one. Serves the embedded studio
    where no service was ever configured. Ctrl-C stops everything: runs follow their jobs for some seconds and write
    their results. A second Ctrl-C ends them at once.
    """
    settings = read_settings()
    with contextlib.ExitStack() as serving:
        if is_meant(settings):
            serving.enter_context(embedded_studio(settings.folder))
            settings = read_settings()
        elif not settings.studio_url:
            raise Refusal("no_service", f"{PREFIX}STUDIO_URL is not set.", "Set it, and its key.")
        own = {f"{PREFIX}HOME": str(settings.folder.resolve()), f"{PREFIX}ENVIRONMENT": settings.service}
        serving.enter_context(environment(own | {n: t for n, t in _WORKER.items() if n not in os.environ}))
        asyncio.run(_up(settings, port or 0, limit))


async def _up(settings: Settings, port: int, limit: int | None) -> None:
    click.echo("Starting the Prefect server …")
    async with prefect_server(settings.folder, click.echo, port) as server:
        if not server.answers:
            raise Refusal("no_server", f"The Prefect server at {server.address} does not answer.")
        if port and server.is_shared and not server.ui.endswith(f":{port}"):
            raise Refusal("port", f"This home is served at {server.ui}.", "Leave --port out.")
        from cli.worker import work
        from tasks.deployments import register_deployments

        names = await register_deployments(settings.service)
        click.echo(f"Prefect UI:   {server.ui}/deployments  ({', '.join(names)})")
        click.echo(f"Service:      {settings.service}, {settings.studio_url}")
        click.echo(f"Files:        relative to {Path.cwd()}")
        click.echo("Ctrl-C stops.")
        await work(limit)
        click.echo("Stopped.")


@click.command()
@click.option("--port", type=_PORT, default=8321, show_default=True)
@click.option(
    "--pace", type=click.Choice(["quick", "realistic", "instant"]), default="quick", show_default=True
)
def studio(port: int, pace: str) -> None:
    """Serve the embedded studio, for trials; its console is at /console. Ctrl-C stops it.

    Commands find it with PATTERNMILL_STUDIO_URL, and the key in the file that this names.
    """
    folder = read_settings().folder
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with embedded_studio(folder, pace, port) as address:
        click.echo(f"The embedded studio: {address}; its console: {address.removesuffix('/v1')}/console")
        click.echo(f"Its key: {folder / 'studio' / 'api-key'}. Ctrl-C stops.")
        while not stop.wait(0.5):
            pass
