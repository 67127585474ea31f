"""Refusals of what is most likely a mistake: paths, passwords, services, purchases without confirmation."""

from __future__ import annotations

from pathlib import Path

from patternmill.catalog.remote import shown_address
from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import asked_services
from patternmill.ledger.reports.unsettled import open_attempt, run_of
from patternmill.parameters import DUPLICATES
from patternmill.planning.plan import Plan
from patternmill.planning.proposal import Proposal
from patternmill.settings import Settings, load_settings, other_environment
from patternmill.text import plural


def require_allowed_paths(settings: Settings, *paths: Path | None) -> None:
    """Raise ConfigurationError when a deployment's run may not read or write there, wherever links lead."""
    folders = [folder.resolve() for folder in (settings.home, Path())]
    for path in paths:
        if path is not None and not any(path.resolve().is_relative_to(folder) for folder in folders):
            raise ConfigurationError(
                f"{path} is outside of the folders that a deployment's runs may use.",
                code="folder_not_allowed",
                remedy="Name a file below the folder that the worker was started in, or start a worker where it is.",
            )


def refuse_other_service(settings: Settings) -> None:
    """Raise ConfigurationError when an environment's products are at another service than the one that is named.

    What is in the ledger of an environment was made by the service of its last run that asked for anything. Not for an
    embedded studio, which has a ledger of its own; without a ledger nothing is refused, and none is made.
    """
    if settings.embedded or settings.studio_url is None:
        return
    with ledger_if_any(settings) as ledger:
        asked = asked_services(ledger) if ledger is not None else []
    here = settings.service_at(settings.studio_url)
    own = next((run for run in asked if run.environment == settings.environment), None)
    if own is not None and settings.service_at(own.studio_url) == here:
        return
    for run in asked:
        if run.environment != settings.environment and settings.service_at(run.studio_url) == here:
            raise other_environment(settings.studio_url, run.environment, settings.environment)
    if own is not None:
        raise _other_service(own, settings.studio_url)


def require_machines(settings: Settings) -> None:
    """Raise ConfigurationError where several machines are to drive a run that only this one can see."""
    if settings.dask is None:
        return
    url = settings.ledger_url.get_secret_value() if settings.ledger_url else ""
    if settings.embedded or not url.startswith(("postgresql://", "postgres://")):
        missing = "a service of its own" if settings.embedded else "a ledger in PostgreSQL"
        setting = "PATTERNMILL_STUDIO_URL" if settings.embedded else "PATTERNMILL_LEDGER_URL"
        raise ConfigurationError(
            f"PATTERNMILL_DASK is set, and several machines need {missing}, which all of them reach.",
            code="dask",
            remedy=f"Set {setting}, or unset PATTERNMILL_DASK. Nothing was bought.",
        )


def _other_service(asked: RunRecord, url: str) -> ConfigurationError:
    return ConfigurationError(
        f"The environment {asked.environment!r} has asked {asked.studio_url} so far (run {asked.run_id}), "
        f"and {url} is named.",
        code="other_service",
        remedy="Name that address, or the environment of this one (--environment). If it is the same service, which "
        f'has moved, add `formerly` to its profile: {{"url": "{url}", "key": ..., "formerly": '
        f'["{asked.studio_url}"]}}. Nothing was asked for.',
    )


def settings_for_request(ledger: Ledger, request_id: RequestId) -> Settings:
    """Those of the service that a recorded request went to. Raises ConfigurationError when they are not set here."""
    item = open_attempt(ledger, request_id)
    assert item is not None, "it is on record"
    settings = load_settings(environment=item.environment)
    run, here = run_of(ledger, request_id), settings.studio_url
    asked = run.studio_url if run is not None and run.studio_url else None
    if (asked and settings.service_at(asked)) != (here and settings.service_at(here)):
        raise ConfigurationError(
            f"The request went to {asked or 'an embedded studio'}, and {here or 'no service'} is set here: another "
            "service knows nothing of it, and may have a job of the same name.",
            code="other_service",
            remedy="Set PATTERNMILL_STUDIO_URL and PATTERNMILL_API_KEY as they were, or list the address as `formerly` "
            "in the profile of the service that has moved. Nothing was sent or changed.",
        )
    return settings


def require_confirmation(
    settings: Settings, plan: Plan, duplicates: ConfigurationError | None = None
) -> None:
    """Raise ConfigurationError when much would be bought of a real service, or something once more, unconfirmed.

    Not for a plan that a person has approved.
    """
    items, environment = plan.purchases().total(), settings.environment
    if not settings.embedded and items > settings.confirm_above and not settings.confirms(environment):
        raise ConfigurationError(
            f"{plural(items, 'item')} would be bought in {environment}; more than {settings.confirm_above:,} have to "
            "be confirmed.",
            code="unconfirmed",
            remedy=f"Look at --plan-only, then add `--confirm {environment}`. Nothing was bought.",
        )
    if duplicates is not None and not settings.confirms(DUPLICATES):
        raise duplicates


def require_agreed(ceiling: frozenset[ItemKey] | None, proposal: Proposal) -> None:
    """Raise ConfigurationError when the plan buys what was not in the plan that a person agreed to."""
    more = proposal.to_buy.keys() - ceiling if ceiling is not None else ()
    if more:
        raise ConfigurationError(
            f"The plan has changed since you agreed to it: {plural(len(more), 'item')} would be bought that it did "
            "not have.",
            code="another_plan",
            remedy="Run the same command again, and look at the plan. Nothing was bought.",
        )


def refuse_secrets(address: str) -> None:
    """Raise ConfigurationError for a user, a password or a query: Prefect stores parameters in clear."""
    if shown_address(address) != address:
        raise ConfigurationError(
            f"The address {shown_address(address)} has a user, a password or a query in it, which Prefect would show.",
            remedy="Give it a name in PATTERNMILL_SOURCES (JSON: name to address), and name that.",
        )
