"""Refusals of what is most likely a mistake: paths, passwords, services, purchases without confirmation or twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from patternmill.addresses import is_below, shown_address
from patternmill.errors import ConfigurationError
from patternmill.files import make_folder
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.ledger import Ledger, ledger_to_read
from patternmill.ledger.reports.requests import find_request, run_of
from patternmill.ledger.reports.run_lookup import asked_services
from patternmill.parameters import DUPLICATES
from patternmill.planning.items import ItemMaker, Scope
from patternmill.planning.plan import Plan, Reason
from patternmill.planning.proposal import Proposal
from patternmill.planning.rows import sku_key
from patternmill.settings import Settings, load_settings, other_environment
from patternmill.text import plural

_FIRST_PURCHASES = frozenset({Reason.NEW, Reason.CHANGED})


def require_allowed_paths(settings: Settings, *paths: Path | None) -> None:
    """Raise ConfigurationError when a deployment's run may not use a path, or where its links lead."""
    folders = [folder.resolve() for folder in (settings.home, Path())]
    for path in paths:
        if path is not None and not any(path.resolve().is_relative_to(folder) for folder in folders):
            raise ConfigurationError(
                f"{path} is outside of the folders that a deployment's runs may use.",
                code="folder_not_allowed",
                remedy="Name a file below the folder that the worker was started in, or start a worker where it is.",
            )


def require_allowed_store(settings: Settings, address: str | None) -> None:
    """Raise ConfigurationError when a deployment's run may not copy its results to a store's address."""
    if address is None or (settings.out_below is not None and is_below(address, settings.out_below)):
        return
    allowed = f"below {settings.out_below}" if settings.out_below is not None else "nowhere"
    raise ConfigurationError(
        f"The results are to be copied to {address}; the worker allows that {allowed}.",
        code="address_not_allowed",
        remedy="Name an address below it, or start the worker with another PATTERNMILL_OUT_BELOW.",
    )


def refuse_other_service(settings: Settings) -> None:
    """Raise ConfigurationError when an environment's products are at another service than the one that is named.

    What is in the ledger of an environment was made by the service of its last run that asked for anything. An
    embedded studio is not checked, as it has a ledger of its own.
    """
    if settings.embedded or settings.studio_url is None:
        return
    with ledger_to_read(settings) as ledger:
        asked = asked_services(ledger)
    here = settings.service_at(settings.studio_url)
    own = next((run for run in asked if run.environment == settings.environment), None)
    if own is not None and settings.service_at(own.studio_url) == here:
        return
    for run in asked:
        if run.environment != settings.environment and settings.service_at(run.studio_url) == here:
            raise other_environment(settings.studio_url, run.environment, settings.environment)
    if own is not None:
        url = settings.studio_url
        raise ConfigurationError(
            f"The environment {own.environment!r} has asked {own.studio_url} so far (run {own.run_id}), "
            f"and {url} is named.",
            code="other_service",
            remedy="Name that address, or the environment of this one (--environment). If it is the same service, "
            f'which has moved, add `formerly` to its profile: {{"url": "{url}", "key": ..., "formerly": '
            f'["{own.studio_url}"]}}. Nothing was asked for.',
        )


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


def settings_for_request(ledger: Ledger, request_id: RequestId) -> Settings:
    """Return the settings of the service that a request went to. Raises ConfigurationError without them."""
    settings = load_settings(environment=find_request(ledger, request_id).environment)
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
    """Raise ConfigurationError for a large purchase from a real service, or a repeated one, that nobody confirmed.

    Not to be called for a plan that a person has approved.
    """
    items, environment = plan.purchases().total(), settings.environment
    if not settings.embedded and items > settings.confirm_above and not settings.confirms(environment):
        raise ConfigurationError(
            f"{plural(items, 'item')} would be bought in {environment}; more than {settings.confirm_above:,} have to "
            "be confirmed.",
            code="unconfirmed",
            remedy="Look at the plan (--plan-only, or plan_only in a form), then add "
            f"`--confirm {environment}`. Nothing was bought.",
        )
    if duplicates is not None and not settings.confirms(DUPLICATES):
        raise duplicates


def find_duplicates(ledger: Ledger, plan: Plan) -> ConfigurationError | None:
    """Return the refusal of a plan that would buy the sku and content of another catalog's product; None for any other.

    Within the transaction that records the plan this is final: of two such plans one comes first.
    """
    environment = plan.scope.environment
    others = ledger.catalogs.products_of_others(environment, plan.scope.catalog)
    if not others:
        return None
    # Retries do not count: they were decided on before.
    rows = [(row.entry.row, row.product) for row in plan.to_do()]
    bought = {
        sku_key(row.sku): row
        for row, product in rows
        if row is not None and product is not None and plan.items[product].reason in _FIRST_PURCHASES
    }
    items_in = cache(lambda catalog: ItemMaker(Scope(environment, catalog)))
    # The key of an item has its catalog in it: the same content is looked for under the other's name.
    repeated = [
        (catalog, sku_key(sku))
        for catalog, sku, key in others
        if (row := bought.get(sku_key(sku))) is not None
        and items_in(catalog).chain(replace(row, sku=sku))[-1].key == key
    ]
    if not repeated:
        return None
    ((most, _),) = Counter(catalog for catalog, _ in sorted(repeated)).most_common(1)
    return ConfigurationError(
        f"{len({sku for _, sku in repeated}):,} of {plural(len(bought), 'row')} to buy have the sku and the content of "
        f"products that catalog {most!r} has, had or is making: they would be bought once more.",
        code="duplicates",
        remedy=f"Add `--catalog {most}` if it is that catalog, or `--confirm duplicates` if the same products are "
        "wanted once more. Nothing was bought.",
    )


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


def require_writable(folder: Path) -> None:
    """Raise ConfigurationError, before anything is spent, when the results cannot be written to a folder."""
    try:
        make_folder(folder)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigurationError(
            f"The results cannot be written to {folder}: {error.strerror or type(error).__name__}.",
            remedy="Name another folder with --out.",
        ) from error


def refuse_secrets(address: str) -> None:
    """Raise ConfigurationError for a user, a password or a query: Prefect stores parameters in clear."""
    if shown_address(address) != address:
        raise ConfigurationError(
            f"The address {shown_address(address)} has a user, a password or a query in it, which Prefect would show.",
            remedy="Give it a name in PATTERNMILL_SOURCES (JSON: name to address), and name that.",
        )
