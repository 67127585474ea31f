"""The verb `studio`: serves the embedded studio."""

from __future__ import annotations

import click

from cli.terminal import echo


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
def command(port: int, pace: str, environment: str | None) -> int:
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
    from cli.services import EmbeddedStudio
    from patternmill.settings import load_settings
    from prefect_host.stop_signals import until_interrupted

    settings = load_settings(environment=environment)
    stop = until_interrupted()
    place = settings.home / "studio"
    with EmbeddedStudio(settings.home, environment=settings.environment, pace=pace, port=port) as studio:
        echo(f"The embedded studio ({settings.environment}, {pace}): {studio.url}")
        echo(f"Its console: {studio.url.removesuffix('/v1')}/console")
        echo(f"Its key is in {place / 'api-key'}; its log in {studio.log_path}. Ctrl-C stops.")
        studio.wait_end(stop)
    return 0
