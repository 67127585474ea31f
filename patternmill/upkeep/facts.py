"""Facts about an installation, each with a level and, where something is wrong, a remedy. Nothing is written.

What Prefect's server has to say is in `prefect_host.server_facts`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryFile

from patternmill import __version__
from patternmill.errors import LedgerError, PatternmillError
from patternmill.ledger.ledger import Ledger, has_ledger, ledger_folder, ledger_place, open_ledger
from patternmill.ledger.reports.backups import last_backup, older_schema, unsaved_purchases
from patternmill.ledger.reports.requests import open_items, unsettled
from patternmill.ledger.spending import day_of
from patternmill.money import money
from patternmill.runs.results_files import read_manifest
from patternmill.runs.safeguards import refuse_other_service
from patternmill.settings import Settings, in_environment
from patternmill.text import duration, moment, plural

#: The free bytes on a disk below which runs may fail, and below which a person should make room.
NO_ROOM, LITTLE_ROOM = 100 * 1024**2, 1024**3
#: The share of a day's budget from which a person is warned.
MOST_OF_BUDGET = 0.8
#: How long to wait for the service.
_PATIENCE = timedelta(seconds=10)
#: Seconds that a purchase may be without a backup.
UNSAVED_FOR = 86_400.0


class Level(StrEnum):
    """The severity of a fact, from least to most severe."""

    OK = "ok"
    #: Something waits for a person, or soon will.
    WARNING = "warning"
    #: Runs are refused, or fail, until somebody puts it right.
    FAULT = "fault"


@dataclass(frozen=True)
class Fact:
    """A statement about an installation, with a remedy where something is wrong."""

    about: str
    level: Level
    text: str
    remedy: str = ""

    @property
    def lines(self) -> list[str]:
        """Return the fact, and below it the remedy, as lines for people."""
        line = f"{self.level:<8} {self.about}: {self.text.rstrip('.')}"
        return [line, f"{'':<8}   {self.remedy}"] if self.remedy else [line]


def ok(about: str, text: str) -> Fact:
    return Fact(about, Level.OK, text)


def warning(about: str, text: str, remedy: str) -> Fact:
    return Fact(about, Level.WARNING, text, remedy)


def fault(about: str, text: str, remedy: str) -> Fact:
    return Fact(about, Level.FAULT, text, remedy)


def refused(about: str, error: PatternmillError, remedy: str = "") -> Fact:
    """Return an error as a fact; `remedy` is used if the error has none."""
    return fault(about, error.message, error.remedy or remedy)


def own_facts(settings: Settings, folder: Path) -> Iterator[Fact]:
    """Yield what this machine, the ledger and the services show, each fact once it is known.

    `folder` contains the folder `results`.
    """
    yield from _local_facts(settings, folder / "results")
    yield from asyncio.run(_service_facts(settings))


def _local_facts(settings: Settings, results: Path) -> Iterator[Fact]:
    yield ok("version", f"Patternmill {__version__} on {gethostname()}")
    yield _folder_fact("home", settings.home, "Set PATTERNMILL_HOME to a folder that you may write.")
    yield _folder_fact(
        "results", Path("results"), "Go to a folder that you may write, or name one with --out."
    )
    yield from _disk_facts(settings.home, results)
    if not has_ledger(settings):
        yield ok("ledger", f"none yet: the first import makes {ledger_place(settings)}")
        yield _limits_fact(settings, None)
        return
    schema = older_schema(ledger_folder(settings)) if settings.ledger_url is None else None
    if schema is not None:
        text = f"{ledger_place(settings)} is of an older version (schema {schema})"
        yield warning("ledger", text, "The next command copies it, and brings it up, while nothing runs.")
        return
    try:
        with open_ledger(settings, must_exist=True) as ledger:
            yield from _ledger_facts(ledger, settings, results)
            yield _limits_fact(settings, ledger)
            yield _requests_fact(settings, ledger)
            for pause in ledger.brake.pauses():
                text, lifted = pause.message.split("`", 1)
                yield warning("brake", text.strip(), f"`{lifted}")
    except PatternmillError as error:
        yield refused("ledger", error)


async def _service_facts(settings: Settings) -> list[Fact]:
    """Ask the service of each environment whether it takes the key."""
    if not settings.profiles:
        return [ok(f"service {settings.environment}", "the embedded studio: no address is set")]
    quick = settings.model_copy(update={"request_timeout": min(settings.request_timeout, _PATIENCE)})
    return await asyncio.gather(
        *(_service_fact(in_environment(quick, name)) for name in sorted(settings.profiles))
    )


async def _service_fact(settings: Settings) -> Fact:
    from patternmill.service.studio_api import StudioApi

    about = f"service {settings.environment}"
    try:
        # A fault of the ledger is reported as a fact of its own.
        with suppress(LedgerError):
            refuse_other_service(settings)
        async with StudioApi.from_settings(settings) as api:
            await api.require_access()
    except PatternmillError as error:
        return refused(about, error)
    return ok(about, f"{settings.studio_url} answers, and takes the key")


def _folder_fact(about: str, folder: Path, remedy: str) -> Fact:
    """Return whether files can be written to a folder, or to where it would be made."""
    place = _existing(folder)
    try:
        with TemporaryFile(dir=place) as file:
            file.write(b"\0")
    except OSError as error:
        return fault(about, f"{folder.resolve()} cannot be written: {error.strerror}", remedy)
    return ok(about, f"{folder.resolve()} can be written")


def _existing(folder: Path) -> Path:
    """Return a folder, or else the nearest one above it that exists."""
    folder = folder.resolve()
    return next(place for place in (folder, *folder.parents) if place.exists())


def _disk_facts(*folders: Path) -> Iterator[Fact]:
    """Yield the free space on each disk that the folders are on."""
    places = {os.stat(place).st_dev: place for place in map(_existing, reversed(folders))}  # noqa: PTH116
    for place in reversed(places.values()):
        free = shutil.disk_usage(place).free
        text, remedy = f"{_size(free)} free at {place}", "Make room: a full disk stops runs."
        if free >= LITTLE_ROOM:
            yield ok("disk", text)
        else:
            yield (fault if free < NO_ROOM else warning)("disk", text, remedy)


def _size(count: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GB"


def _ledger_facts(ledger: Ledger, settings: Settings, results: Path) -> Iterator[Fact]:
    size = _size(ledger.database.size())
    text = f"{ledger_place(settings)}: {ledger.identity}, schema {ledger.schema}, {size}"
    is_real = settings.service is not None and not settings.embedded
    manifests = {folder: read_manifest(folder) for folder in sorted(results.glob("*/latest*"))}
    others = [
        folder
        for folder, manifest in manifests.items()
        if manifest and manifest["studio_url"] and manifest["ledger"] != ledger.identity
    ]
    if is_real and others:
        remedy = "Use the ledger of these results: PATTERNMILL_HOME, PATTERNMILL_LEDGER_URL."
        yield fault("ledger", f"{text}; {others[0]} was written from another ledger", remedy)
    else:
        yield ok("ledger", text)
    if is_real and settings.ledger_url is None:
        yield _backup_fact(ledger, ledger_folder(settings))


def _backup_fact(ledger: Ledger, folder: Path) -> Fact:
    """Return whether what was bought more than a day ago is in a backup."""
    saved_at = last_backup(folder, ledger.identity)
    unsaved = unsaved_purchases(ledger, saved_at or 0.0, ledger.now() - UNSAVED_FOR)
    text = f"the last one is of {moment(saved_at)} UTC" if saved_at else f"none in {folder / 'backups'}"
    if not unsaved:
        return ok("backup", text)
    remedy = "docs/operations.md has the command; keep a copy on another disk too."
    return warning("backup", f"{text}; {plural(unsaved, 'purchase')} of more than a day ago in none", remedy)


def _limits_fact(settings: Settings, ledger: Ledger | None) -> Fact:
    """Return what limits purchases, and whether today's budget is used up."""
    text = ", ".join(_limits(settings))
    budget = settings.day_budget
    if budget is None or ledger is None:
        return ok("limits", text)
    spent = ledger.purchases.spent_on(day_of(ledger.now())).get(settings.environment)
    amounts = spent.amounts if spent is not None else {}
    amount = amounts.get(settings.currency or "", 0)
    text = f"{text}; {money(amount, settings.currency)} spent or reserved today in {settings.environment}"
    if any(value for unit, value in amounts.items() if unit != (settings.currency or "")):
        remedy = "Set PATTERNMILL_CURRENCY as it was, or leave out PATTERNMILL_DAY_BUDGET."
        return fault("limits", f"{text}, and more in another unit: nothing is bought", remedy)
    remedy = "Raise PATTERNMILL_DAY_BUDGET, or wait for midnight (UTC)."
    if amount >= budget:
        return fault("limits", f"{text}: today's budget is used up, and nothing is bought", remedy)
    return warning("limits", text, remedy) if amount >= MOST_OF_BUDGET * budget else ok("limits", text)


def _limits(settings: Settings) -> Iterator[str]:
    amount = partial(money, currency=settings.currency)
    yield f"{settings.max_in_flight} jobs in flight"
    if any(settings.prices.values()):
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
    if settings.sources:
        yield f"sources {', '.join(sorted(settings.sources))}"


def _requests_fact(settings: Settings, ledger: Ledger) -> Fact:
    """Return how many requests have no end, and how many of them wait for a person."""
    count, for_people = sum(1 for _ in open_items(ledger)), unsettled(ledger, settings.in_doubt_limit)
    text = f"{count} open"
    if not for_people:
        return ok("requests", text)
    oldest = duration(ledger.now() - min(item.attempt.since for item in for_people))
    text = f"{text}; {len(for_people)} for a person to decide, the oldest for {oldest}"
    return warning("requests", text, "See `patternmill settle`.")
