"""The verb `studio`: serves the embedded studio, and manages its API keys."""

from __future__ import annotations

import click

from cli.terminal import echo


@click.group("studio", invoke_without_command=True)
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
@click.pass_context
def command(context: click.Context, port: int, pace: str, environment: str | None) -> int:
    """Serve the embedded studio, for trials.

    `patternmill import` starts the same service when PATTERNMILL_STUDIO_URL is not set. Its jobs, pictures and key
    are kept in the `studio` directory under PATTERNMILL_HOME, also after Ctrl-C stops it.

    \b
    Example, in two terminals:
      patternmill studio --pace realistic
      export PATTERNMILL_STUDIO_URL=http://127.0.0.1:8321/v1
      export PATTERNMILL_API_KEY="$(cat .patternmill/studio/api-key)"
      patternmill import inputs/spring_catalog.csv
      patternmill studio keys create "nightly run"

    What it has is shown in a browser: its console, to log in to with a key, is at /console.

    Exit codes: 0 stopped by Ctrl-C, 1 the studio did not start (a port in use) or ended, 2 a setting is wrong.
    """
    if context.invoked_subcommand is not None:
        return 0
    from cli.embedded_studio import embedded_studio
    from patternmill.settings import load_settings
    from prefect_host.stop_signals import until_interrupted

    settings = load_settings(environment=environment)
    stop = until_interrupted()
    place = settings.home / "studio"
    with embedded_studio(settings.home, environment=settings.environment, pace=pace, port=port) as studio:
        echo(f"The embedded studio ({settings.environment}, {pace}): {studio.url}")
        echo(f"Its console: {studio.url.removesuffix('/v1')}/console")
        echo(f"Its key is in {place / 'api-key'}; its log in {studio.process.log_path}. Ctrl-C stops.")
        while not stop.wait(0.5):
            if not studio.process.is_alive():
                echo("The studio ended by itself; see its log.", err=True)
                return 1
    return 0


@command.command(
    "keys",
    short_help="Create, list and revoke API keys of it.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def keys(arguments: tuple[str, ...]) -> int:
    """`keys create NAME`, `keys list`, `keys revoke KEY_ID`: also while the studio runs."""
    from patternmill.files import private_folder
    from patternmill.settings import load_settings
    from studio import key_commands

    home = load_settings().home.resolve() / "studio"
    private_folder(home)
    return key_commands.main(["--home", str(home), *arguments], "patternmill studio keys")
