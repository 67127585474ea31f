"""A catalog's own schedule: a deployment that refreshes it, at the Prefect server whose workers run it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cli.terminal import echo, said_yes
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.files import make_home
from patternmill.passwords import mask_passwords
from patternmill.runs.input_mapping import read_input
from patternmill.runs.request import RefreshRequest
from patternmill.runs.safeguards import refuse_secrets
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.settings import Settings
from patternmill.states import EXIT_REFUSED
from prefect_host import client_settings


def make_schedule(request: RefreshRequest, cron: str, timezone: str) -> int:
    """Make or replace the schedule by which workers refresh a catalog; returns the exit code.

    Nothing is bought now. Raises ConfigurationError and InputRefused, and PatternmillError without a server.
    """
    refuse_secrets(request.source)
    spec = run_spec(request)
    if not os.environ.get(client_settings.API_URL):
        # Its worker is on this machine, and reads the same file.
        read_input(spec)
    when = f"at {cron!r} ({timezone})"
    if not _is_confirmed(spec, when):
        echo("No schedule was made.", err=True)
        return EXIT_REFUSED
    # Confirmations are for once.
    parameters = request.model_dump(mode="json", exclude_none=True, exclude={"confirm"})
    parameters |= {"catalog": spec.catalog, "environment": spec.settings.environment}
    with _server(spec.settings) as where:
        from tasks.deployments import schedule_refresh

        name = asyncio.run(schedule_refresh(parameters, cron, timezone))
    echo(f"The deployment catalog-refresh/{name} refreshes it {when}, where a worker serves {where}.")
    echo("In its UI, under Deployments, it is turned off or deleted.")
    return 0


def _is_confirmed(spec: RunSpec, when: str) -> bool:
    """Return whether a service may be paid by a schedule: confirmed as a purchase is, or agreed to on a terminal."""
    settings = spec.settings
    environment = settings.environment
    if settings.service is None or settings.embedded or settings.confirms(environment):
        return True
    if sys.stdin.isatty() and sys.stdout.isatty():
        return said_yes(
            f"Refresh {spec.catalog} in {environment} {when}, and buy what has changed, unattended?"
        )
    raise ConfigurationError(
        f"A schedule buys unattended in {environment}, which has to be confirmed.",
        code="unconfirmed",
        remedy=f"Look at --plan-only, then add `--confirm {environment}`. No schedule was made.",
    )


@contextmanager
def _server(settings: Settings) -> Iterator[str]:
    """Use the configured Prefect server, or serve our own, in this process; yield its name."""
    url = os.environ.get(client_settings.API_URL)
    if url:
        if not client_settings.server_answers(url):
            shown = mask_passwords(url)
            raise PatternmillError(f"The Prefect server at {shown} does not answer.", remedy="Try it again.")
        client_settings.use_server(client_settings.client_environment(url))
        yield mask_passwords(url)
        return
    from prefect_host.own_server import OwnServer

    make_home(settings.home)
    with OwnServer(settings.home).for_this_process() as server:
        server.wait_ready()
        yield f"the home {settings.home.resolve()} (`patternmill up`)"
