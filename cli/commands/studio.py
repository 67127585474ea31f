"""The verb `studio`: serves the embedded studio, and checks a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.terminal import confirmed, echo
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.settings import Settings


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
@click.option(
    "--check",
    "url",
    metavar="URL",
    help="Serve nothing; check whether the service at URL is safe to import to.",
)
@click.option(
    "--spend",
    type=click.IntRange(0, 1000),
    default=0,
    show_default=True,
    metavar="N",
    help="With --check: the most patterns and products to buy for it, together; 14 are enough for all.",
)
@click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation of --spend; needed without a terminal."
)
def command(port: int, pace: str, environment: str | None, url: str | None, spend: int, yes: bool) -> int:
    """Serve the embedded studio, for trials; or check a service.

    `patternmill import` starts the same service when PATTERNMILL_STUDIO_URL is not set. Its jobs, pictures and key
    are kept in the `studio` directory under PATTERNMILL_HOME, also after Ctrl-C stops it.

    \b
    Example, in two terminals:
      patternmill studio --pace realistic      # its api-key is a new one at each start
      export PATTERNMILL_STUDIO_URL=http://127.0.0.1:8321/v1
      export PATTERNMILL_API_KEY="$(cat .patternmill/studio/api-key)"
      patternmill import inputs/spring_catalog.csv

    What it has is shown in a browser: its console, to log in to with a key, is at /console.

    With --check it asks the service at URL, which ends with its version (/v1), about all that an import relies on,
    with the key of an import: a line for each check. Nothing is bought unless --spend allows it, and never more than N.

    Exit codes: 0 stopped by Ctrl-C, 1 the studio did not start (a port in use) or ended, 2 a setting is wrong.
    With --check: 0 no check failed, 1 one failed, 2 the service could not be asked, or the spending was not confirmed.
    """
    if url is not None:
        return _check(url, environment, spend, yes)
    from cli.embedded_studio import EmbeddedStudio
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


def _check(url: str, environment: str | None, spend: int, yes: bool) -> int:
    import asyncio

    settings = _settings_for(url, environment)
    question = f"Buy up to {spend} patterns and products at {settings.studio_url}?"
    if spend and not yes and not confirmed(question, "Not begun"):
        return EXIT_REFUSED
    return EXIT_CODES[Outcome.FAILED if asyncio.run(_has_failed(settings, spend)) else Outcome.COMPLETED]


def _settings_for(url: str, environment: str | None) -> Settings:
    """Those of the environment that has this address: no other key is sent to it. Raises ConfigurationError."""
    from patternmill.addresses import is_web_address, service_identity
    from patternmill.errors import ConfigurationError
    from patternmill.settings import in_environment, read_settings

    settings = read_settings()
    service = service_identity(url) if is_web_address(url) else None
    names = [name for name, profile in settings.profiles.items() if service in profile.services]
    if not names or environment not in (None, *names):
        raise ConfigurationError(
            f"--check names another address than that of {environment or 'any environment'}: no key is sent to it.",
            code="key_at_new_address",
            remedy="Set PATTERNMILL_STUDIO_URL to it, and PATTERNMILL_API_KEY. Nothing was sent.",
        )
    return in_environment(settings, names[0])


async def _has_failed(settings: Settings, spend: int) -> bool:
    """Show a line for each check."""
    from patternmill.conformance.checks import CHECKS, CheckOutcome, check_lines
    from patternmill.conformance.session import Session
    from patternmill.planning.unstated import read_unstated
    from patternmill.service.client import StudioClient
    from patternmill.text import plural

    failed, width = 0, max(map(len, CHECKS))
    unstated = read_unstated(settings.operations_file, settings.environment)
    async with StudioClient.from_settings(settings) as client:
        session = Session(client.request, spend, settings.job_timeout, unstated)
        async for name, outcome, detail in check_lines(session):
            echo(f"{outcome:<8} {name:<{width}}  {detail}")
            failed += outcome is CheckOutcome.FAILED
    bought = f"at most {session.bought} bought" if session.bought else "nothing bought"
    echo(f"{client.base_url}: {plural(failed, 'check')} of {len(CHECKS)} failed; {bought}")
    return failed > 0
