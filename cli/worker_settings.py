"""The first lines of a worker: what it works with, so that a wrong one is seen before it buys anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from socket import gethostname

from patternmill import __version__
from patternmill.ledger.ledger import ledger_place
from patternmill.money import money
from patternmill.passwords import mask_passwords
from patternmill.settings import Settings
from patternmill.text import plural
from prefect_host.client_settings import API_URL


def first_lines(settings: Settings, limit: int | None) -> Iterator[str]:
    """Name version, server, ledger, services by environment, and limits; no secrets."""
    most = plural(limit, "run") if limit else "any number of runs"
    yield f"Patternmill {__version__}, a worker on {gethostname()}: {most} at once"
    yield f"Prefect: {mask_passwords(os.environ.get(API_URL, 'the server of its profile'))}"
    yield f"Ledger: {ledger_place(settings)}"
    for environment in sorted({settings.environment, *settings.profiles}):
        profile = settings.profiles.get(environment)
        default = " (where a run names none)" if environment == settings.environment else ""
        service = profile.url if profile else "the embedded studio of `up`, or none"
        yield f"Environment {environment}{default}: {service}"
    yield f"Limits: {', '.join(_limits(settings))}"
    if settings.sources:
        yield f"Sources: {', '.join(sorted(settings.sources))}"


def _limits(settings: Settings) -> Iterator[str]:
    def amount(value: int) -> str:
        return money(value, settings.currency)

    yield f"{settings.max_in_flight} jobs in flight"
    if settings.has_prices:
        yield f"prices {amount(settings.pattern_price)} a pattern and {amount(settings.product_price)} a product"
    else:
        yield "no prices"
    yield "no day budget" if settings.day_budget is None else f"{amount(settings.day_budget)} a day"
    if settings.approve_above_items is not None:
        yield f"approval above {plural(settings.approve_above_items, 'item')}"
    if settings.approve_above_cost is not None:
        yield f"approval above {amount(settings.approve_above_cost)}"
    yield f"confirmation above {plural(settings.confirm_above, 'item')}"
    if settings.confirm:
        yield f"confirmed: {settings.confirm}"
