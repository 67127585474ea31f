"""A catalog's own schedule: a deployment that refreshes it, at the Prefect server whose workers run it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cli.terminal import echo, said_yes
from patternmill.catalog.remote import file_path, is_remote
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
    if client_settings.API_URL not in os.environ:
        # Its worker is on this machine, and reads the same file.
        read_input(spec)
    if not _is_confirmed(spec, f"at {cron!r} ({timezone})"):
        echo("No schedule was made.", err=True)
        return EXIT_REFUSED
    with _server(spec.settings) as (where, hint):
        from tasks.deployments import schedule_refresh

        name = asyncio.run(schedule_refresh(_parameters(request, spec), cron, timezone))
    echo(f"The deployment catalog-refresh/{name} refreshes it at {cron!r} ({timezone}).")
    echo(f"It is at {where}: {hint}. There, under Deployments, it is turned off or deleted.")
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


def _parameters(request: RefreshRequest, spec: RunSpec) -> dict[str, Any]:
    """Return what its runs are asked for: with the environment, and without confirmations, which are for once."""
    given = request.model_dump(mode="json", exclude_none=True, exclude={"confirm"})
    if client_settings.API_URL not in os.environ:
        for name in {"source", "mapping", "out"} & given.keys():
            if not is_remote(given[name]) and given[name] not in spec.settings.sources:
                given[name] = str(file_path(given[name]).absolute())
    return given | {"catalog": spec.catalog, "environment": spec.settings.environment}


@contextmanager
def _server(settings: Settings) -> Iterator[tuple[str, str]]:
    """Serve the configured Prefect server, or our own; yield where it is, and who runs what it has."""
    url = os.environ.get(client_settings.API_URL)
    if url:
        shown = mask_passwords(url)
        if not client_settings.server_answers(url):
            raise PatternmillError(
                f"The Prefect server at {shown} does not answer.", remedy="Try again when it does."
            )
        client_settings.use_server(client_settings.client_environment(url))
        yield shown, "its workers run it (`patternmill up --worker`)"
        return
    from prefect_host.own_server import OwnServer

    make_home(settings.home)
    with OwnServer(settings.home).for_this_process() as server:
        server.wait_ready()
        yield f"the Prefect server of {settings.home.resolve()}", "`patternmill up` runs it, while it is up"
