"""A catalog's own schedule: a deployment that refreshes it, at the Prefect server whose workers run it."""

from __future__ import annotations

import asyncio
import os
from typing import NoReturn

from cli.approval_prompt import is_paid_for
from cli.terminal import can_ask, echo, said_yes
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.runs.input import read_input
from patternmill.runs.request import RefreshRequest
from patternmill.runs.safeguards import refuse_secrets
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.states import EXIT_REFUSED
from prefect_host.client_settings import API_URL
from prefect_host.connection import PrefectConnection


def make_schedule(request: RefreshRequest, cron: str, timezone: str) -> int:
    """Make or replace the schedule by which workers refresh a catalog; returns the exit code.

    Nothing is bought now. Raises ConfigurationError and InputRefused, and PatternmillError without a server.
    """
    refuse_secrets(request.source)
    spec = run_spec(request)
    if not os.environ.get(API_URL):
        # Its worker is on this machine, and reads the same file.
        read_input(spec)
    when = f"at {cron!r} ({timezone})"
    if not _is_confirmed(spec, when):
        echo("No schedule was made.", err=True)
        return EXIT_REFUSED
    # Confirmations are for once.
    parameters = request.model_dump(
        mode="json", exclude_none=True, exclude={"confirm"}, exclude_defaults=True
    )
    parameters |= {"catalog": spec.catalog, "environment": spec.settings.environment}
    home, given = spec.settings.home, os.environ.get(API_URL)
    with PrefectConnection(home, _refuse) as connection:
        connection.wait()
        from tasks.deployments import schedule_refresh

        name = asyncio.run(schedule_refresh(parameters, cron, timezone))
    where = given or f"the home {home.resolve()} (`patternmill up`)"
    echo(f"The deployment catalog-refresh/{name} refreshes it {when}, where a worker serves {where}.")
    echo("In its UI, under Deployments, it is turned off or deleted.")
    return 0


def _refuse(why: str) -> NoReturn:
    raise PatternmillError(why, remedy="No schedule was made: try it again.")


def _is_confirmed(spec: RunSpec, when: str) -> bool:
    """Return whether a service may be paid by a schedule: confirmed as a purchase is, or agreed to on a terminal."""
    settings, environment = spec.settings, spec.settings.environment
    if not is_paid_for(settings) or settings.confirms(environment):
        return True
    if not can_ask():
        raise ConfigurationError(
            f"A schedule buys unattended in {environment}, which has to be confirmed.",
            code="unconfirmed",
            remedy=f"Look at --plan-only, then add `--confirm {environment}`. No schedule was made.",
        )
    return said_yes(f"Refresh {spec.catalog} in {environment} {when}, and buy what has changed, unattended?")
