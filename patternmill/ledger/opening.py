"""Opens the ledger that the settings name; those who only look at it must not make an empty one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patternmill.errors import ConfigurationError
from patternmill.ledger.database import LEDGER_FILE, open_database
from patternmill.ledger.ledger import Ledger
from patternmill.settings import Settings

EMBEDDED = "embedded"


@contextmanager
def existing_ledger(settings: Settings) -> Iterator[Ledger]:
    """The ledger that the settings name, while the context lasts. Raises ConfigurationError when there is none."""
    if not has_ledger(settings):
        raise ConfigurationError(
            f"There is no ledger in {settings.home}: nothing was imported from here yet.",
            remedy="Go to the folder of the import, or set PATTERNMILL_HOME or PATTERNMILL_LEDGER_URL.",
        )
    ledger = open_ledger(settings)
    try:
        yield ledger
    finally:
        ledger.database.close()


@contextmanager
def ledger_if_any(settings: Settings) -> Iterator[Ledger | None]:
    """The ledger that the settings name, or None where there is none yet: who only reads makes none."""
    if not has_ledger(settings):
        yield None
        return
    with existing_ledger(settings) as ledger:
        yield ledger


def open_ledger(settings: Settings) -> Ledger:
    """The ledger that the settings name, brought up to this version."""
    url = settings.ledger_url.get_secret_value() if settings.ledger_url else None
    return Ledger(open_database(url, _folder(settings)))


def has_ledger(settings: Settings) -> bool:
    """Whether there is something to remember; opening a ledger would make one."""
    return settings.ledger_url is not None or (_folder(settings) / LEDGER_FILE).exists()


def _folder(settings: Settings) -> Path:
    """Where SQLite's file is: that of the embedded studio apart, because a real service never made its products."""
    embedded = settings.home / EMBEDDED
    if settings.embedded:
        return embedded
    looked_at = settings.studio_url is None and (embedded / LEDGER_FILE).exists()
    return embedded if looked_at else settings.home
