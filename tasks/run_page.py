"""A run's page in the Prefect UI: progress, then a summary and the failures by cause."""

from __future__ import annotations

import asyncio
import csv
import logging
import shlex
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from patternmill.results.changes_csv import CHANGES_FILE
from patternmill.results.results_files import FAILURES_FILE, Results
from patternmill.results.summary import FAILURES
from patternmill.runs.plan_record import LINT
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.run_text import progress_line, summary_lines
from patternmill.states import RowStatus
from tasks.markup import cell, logged, markdown, markdown_lines
from tasks.prefect_states import counts_message

T = TypeVar("T")
logger = logging.getLogger(__name__)

_EVERY = 3.0
_PATIENCE = 10.0
_MOST_CAUSES = 50
_MOST_CHANGES = 200
#: Columns of changes.csv; the rest are in the file.
_CHANGES_SHOWN = ("sku", "change", "fields", "old_and_new", "status", "old_product_id", "new_product_id")
#: In the table, whose columns do not wrap; the summary has more.
_FIRST_SKUS = 3


@asynccontextmanager
async def progress_shown(run: Run) -> AsyncIterator[None]:
    """Update a progress artifact on the flow run's page while the context lasts, and once at its end."""
    page = _ProgressPage(run)
    showing = asyncio.create_task(page.keep_moving())
    try:
        yield
    finally:
        # In a loop: Python 3.11's `wait_for` loses a cancellation that comes with its result.
        while not showing.done():
            showing.cancel()
            await asyncio.wait({showing}, timeout=0.5)
        await page.show()


class _ProgressPage:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._artifact: UUID | None = None
        self._waiting = ""

    async def keep_moving(self) -> None:
        while True:
            self._log_waiting()
            await self.show()
            await asyncio.sleep(_EVERY)

    def _log_waiting(self) -> None:
        """Log once when the run begins to wait for the ledger or the service, and once when that is over."""
        before, self._waiting = self._waiting, self._run.waiting
        if self._waiting and not before:
            logged(f"The run is {self._waiting}.")
        elif before and not self._waiting:
            logged(f"The run was {before}.")

    async def show(self) -> None:
        share, text = _share(self._run), markdown(progress_line(self._run))
        if self._artifact is None:
            key = f"run-{self._run.record.run_id}-progress"
            making = acreate_progress_artifact(progress=share, key=key, description=text)
            self._artifact = await _if_possible(making)
        else:
            await _if_possible(aupdate_progress_artifact(self._artifact, progress=share, description=text))


async def show_ending(run: Run, ending: RunEnding, results: Results) -> None:
    """Put the summary, and any failures and changes, on the flow run's page."""
    out, key = results.out.resolve(), f"run-{ending.record.run_id}"
    title = f"{ending.outcome.words}: {counts_message(ending.rows)}"
    summary = summary_text(run, ending, results)
    await _if_possible(acreate_markdown_artifact(key=f"{key}-summary", markdown=summary, description=title))
    if results.causes:
        description = markdown(f"What went wrong, by cause. Every row: {out / FAILURES_FILE}")
        table = _failures(results)
        await _if_possible(
            acreate_table_artifact(key=f"{key}-failures", table=table, description=description)
        )
    if changes := await asyncio.to_thread(_changes, out):
        first = f"The first {_MOST_CHANGES} rows" if len(changes) == _MOST_CHANGES else "All rows"
        description = markdown(
            f"{first} that differ from the catalog as it was. As a file: {out / CHANGES_FILE}"
        )
        await _if_possible(
            acreate_table_artifact(key=f"{key}-changes", table=changes, description=description)
        )


async def show_plan(digest: str, markdown: str) -> None:
    await _if_possible(
        acreate_markdown_artifact(
            key=f"plan-{digest}", markdown=markdown, description="Waits for a person's approval."
        )
    )


def _share(run: Run) -> float:
    """Percent of the rows of this run that have ended."""
    progress = run.progress
    return 100.0 * progress.ended / progress.to_do if progress.to_do else 100.0


def summary_text(run: Run, ending: RunEnding, results: Results) -> str:
    """The summary as markdown."""
    said = [*ending.record.options.get("notes", ()), ending.record.options.get(LINT)]
    notes = "".join(f"> {markdown(note)}  \n" for note in said if note)
    lines = summary_lines(run, ending, replace(results, out=results.out.resolve()), _MOST_CAUSES)
    return f"{markdown_lines(lines)}\n\n{notes}" + "\n".join(_next_steps(ending))


def _next_steps(ending: RunEnding) -> Iterator[str]:
    catalog = ending.record.catalog
    left = {status for status, count in ending.rows.items() if count} - {RowStatus.SUCCEEDED}
    if left:
        yield "\n### What next\n"
    if left - {RowStatus.REFUSED}:
        yield (
            f"- Retry what failed, was stopped or is in doubt with the deployment `retry-failed` and the "
            f"catalog {markdown(catalog)}, or with {markdown(f'patternmill retry --catalog {shlex.quote(catalog)}')}."
        )
    if left & FAILURES:
        yield f"- Rows that have to be corrected: correct `{FAILURES_FILE}`, and import it as it is."


def _failures(results: Results) -> list[dict[str, object]]:
    return [
        {
            "rows": cause.count,
            "code": cell(cause.code),
            "skus": cell(", ".join(cause.skus[:_FIRST_SKUS]) + (" …" if cause.count > _FIRST_SKUS else "")),
            "what": cell(cause.message),
            "remedy": cell(cause.remedy),
        }
        for cause in results.causes[:_MOST_CAUSES]
    ]


def _changes(out: Path) -> list[dict[str, object]]:
    """The first lines of changes.csv, if there is one."""
    place = out / CHANGES_FILE
    if not place.exists():
        return []
    with place.open(encoding="utf-8-sig", newline="") as file:
        lines = islice(csv.DictReader(file), _MOST_CHANGES)
        return [{name: cell(line[name]) for name in _CHANGES_SHOWN} for line in lines]


async def _if_possible(making: Awaitable[T]) -> T | None:
    """None when the page cannot be written: the run does not stop for it."""
    try:
        return await asyncio.wait_for(making, _PATIENCE)
    except Exception as error:
        logger.info("The run's page could not be written: %s", type(error).__name__)
        return None
