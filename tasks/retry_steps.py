"""The steps before a retry: the rows that it takes up, and the order that does so."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from patternmill.catalog.rows import tidy
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.row_results import input_file
from patternmill.ledger.reports.run_lookup import find_run
from patternmill.runs.pipeline import import_spec
from patternmill.runs.request import RunSpec
from patternmill.runs.retry import RetrySelection, RowFilter, choose, statuses_of
from patternmill.runs.row_selection import write_selection
from patternmill.settings import load_settings
from tasks.run_log import logged

_MOST_LEFT_OUT = 10


@dataclass(frozen=True)
class Wish:
    """Which rows of which run, in the words of the form."""

    run: str
    catalog: str | None
    environment: str
    status: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    sku: tuple[str, ...] = ()

    def choice(self) -> RowFilter:
        return RowFilter(
            statuses_of(",".join(self.status)),
            frozenset(self.code),
            frozenset(tidy(category).casefold() for category in self.category),
            frozenset(tidy(sku) for sku in self.sku),
        )


@task(name="choose", task_run_name="choose the rows", cache_policy=NO_CACHE, persist_result=False)
async def choose_rows(wish: Wish) -> RetrySelection:
    """Raises ConfigurationError when the run, or one of the rows, is not known."""
    return await asyncio.to_thread(_chosen, wish)


def _chosen(wish: Wish) -> RetrySelection:
    with open_ledger(load_settings(environment=wish.environment), must_exist=True) as ledger:
        record = find_run(ledger, wish.run, catalog=wish.catalog, environment=wish.environment)
        chosen = choose(ledger, record, input_file(ledger, record), wish.choice())
    if chosen.left_out:
        logged("\n".join(chosen.left_out_lines(_MOST_LEFT_OUT)))
    return chosen


@contextmanager
def laid_out(chosen: RetrySelection, limits: Mapping[str, Any]) -> Iterator[RunSpec]:
    """The order that takes the rows up; the file's bytes and the selection lie beside the ledger meanwhile."""
    settings = load_settings(environment=chosen.record.environment)
    place = settings.home / "retries"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=place))
    try:
        file = folder / "input" / (Path(chosen.record.source).name or "input.csv")
        file.parent.mkdir()
        with open_ledger(settings, must_exist=True) as ledger:
            file.write_bytes(ledger.input_of(chosen.record))
        write_selection(chosen.selection(), folder / "selection.json")
        yield import_spec(
            file,
            catalog=chosen.record.catalog,
            environment=chosen.record.environment,
            encoding=chosen.record.input_encoding,
            edition=chosen.record.options.get("edition"),
            only=folder / "selection.json",
            **limits,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
