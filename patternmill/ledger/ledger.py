"""The ledger: what was asked of the service, under which request ID, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from patternmill.errors import ConfigurationError
from patternmill.ledger.attempts import AttemptTables
from patternmill.ledger.catalog_rows import CatalogRowTables, OfferTable
from patternmill.ledger.database import LEDGER_FILE, open_database
from patternmill.ledger.leases import PartTable
from patternmill.ledger.records import Lease
from patternmill.ledger.run_rows import RunRowTable
from patternmill.ledger.runs import RunTables
from patternmill.settings import Settings


class Ledger(AttemptTables, CatalogRowTables, OfferTable, PartTable, RunRowTable, RunTables):
    """Every write to one database, and what a run reads back; what people read is in `reports/`.

    Each base has the operations on the tables that it is named after. Attempts come with spending and approvals, which
    an intent reserves from; parts come with leases, under which they are assigned.

    Writes are called inside `transaction()`. Not safe for several threads at once: writes belong to one (see
    `writer.py`), reads to a ledger of their own. A context manager, which closes it.
    """

    @contextmanager
    def transaction(self, lease: Lease | None = None) -> Iterator[None]:
        """All or nothing. With `lease`, raises LeaseLost when another run took the catalog over."""
        with self.database.transaction():
            if lease is not None:
                self.check_fence(lease)
            yield

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_ledger(settings: Settings, *, must_exist: bool = False) -> Ledger:
    """The ledger that the settings name, brought up to this version: `with open_ledger(settings) as ledger`.

    It is made where none exists; with `must_exist` ConfigurationError is raised instead.
    """
    if must_exist and not has_ledger(settings):
        raise ConfigurationError(
            f"There is no ledger in {settings.home}: nothing was imported from here yet.",
            remedy="Go to the folder of the import, or set PATTERNMILL_HOME or PATTERNMILL_LEDGER_URL.",
        )
    url = settings.ledger_url.get_secret_value() if settings.ledger_url else None
    return Ledger(open_database(url, _folder(settings)))


@contextmanager
def ledger_if_any(settings: Settings) -> Iterator[Ledger | None]:
    """The ledger that the settings name, or None where none exists; a reader makes none."""
    if not has_ledger(settings):
        yield None
        return
    with open_ledger(settings) as ledger:
        yield ledger


def has_ledger(settings: Settings) -> bool:
    """Whether a ledger exists; opening one would make it."""
    return settings.ledger_url is not None or (_folder(settings) / LEDGER_FILE).exists()


def _folder(settings: Settings) -> Path:
    """Where SQLite's file is. The embedded studio has another one: no real service made its products."""
    embedded = settings.home / "embedded"
    if settings.embedded:
        return embedded
    is_read_only = settings.studio_url is None and (embedded / LEDGER_FILE).exists()
    return embedded if is_read_only else settings.home
