"""A run's page in the Prefect UI: progress, then a summary and the failures by cause."""

from __future__ import annotations

import asyncio
import csv
import json
import logging
import shlex
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from patternmill.engine.groups import Group
from patternmill.results.changes_csv import CHANGES_FILE
from patternmill.results.results_files import EXACT, FAILURES_FILE, Results
from patternmill.results.summary import FAILURES
from patternmill.runs.plan_record import LINT
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.run_text import progress_line, summary_lines
from patternmill.states import RowStatus
from tasks.cancellation import heed_state
from tasks.markup import cell, logged, markdown, markdown_lines
from tasks.prefect_states import counts_message

T = TypeVar("T")
logger = logging.getLogger(__name__)

_BEAT_SECONDS = 5.0
_PATIENCE = 10.0
_MOST_CAUSES = 50
#: Rows of a table for people; the rest are in its file.
_MOST = 200
#: Up to so many rows each item has a task run: nobody reads a page of many thousands.
MOST_ROWS_AS_ITEMS = 500
#: Columns of the table of failed rows, by the field of results.jsonl.
_FAILED_ROW = {"sku": "sku", "status": "status", "code": "error_code", "what": "error", "remedy": "remedy"}
#: Columns of changes.csv.
_CHANGES_SHOWN = ("sku", "change", "fields", "old_and_new", "status", "old_product_id", "new_product_id")


@asynccontextmanager
async def progress_shown(run: Run) -> AsyncIterator[None]:
    """Update a progress artifact on the flow run's page while the context lasts, and once at its end."""
    page = _ProgressPage(run)
    beating = asyncio.create_task(page.keep_beating())
    try:
        yield
    finally:
        # In a loop: Python 3.11's `wait_for` loses a cancellation that comes with its result.
        while not beating.done():
            beating.cancel()
            await asyncio.wait({beating}, timeout=0.5)
        await page.show()


class _ProgressPage:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._artifact: UUID | None = None
        self._waiting = ""

    async def keep_beating(self) -> None:
        while True:
            self._log_waiting()
            await self.show()
            await asyncio.sleep(_BEAT_SECONDS)
            await heed_state(self._run)

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
    """Put the summary on the flow run's page, with tables of what failed, of a refresh's changes, and of the groups."""
    out, key = results.out.resolve(), f"run-{ending.record.run_id}"
    title = f"{ending.outcome.words}: {counts_message(ending.rows)}"
    summary = summary_text(run, ending, results)
    await _if_possible(acreate_markdown_artifact(key=f"{key}-summary", markdown=summary, description=title))
    rows = await asyncio.to_thread(_rows, out)
    failed = [row for row in rows if row["status"] != RowStatus.SUCCEEDED]
    await _show_table(
        f"{key}-failures",
        [
            {name: cell(str(row[field] or "")) for name, field in _FAILED_ROW.items()}
            for row in failed[:_MOST]
        ],
        f"{_first(failed)} that failed or were not made. As a file: {out / FAILURES_FILE}",
    )
    changes = await asyncio.to_thread(_changes, out)
    await _show_table(
        f"{key}-changes",
        changes[:_MOST],
        f"{_first(changes)} that differ from the catalog as it was. As a file: {out / CHANGES_FILE}",
    )
    if len(rows) > MOST_ROWS_AS_ITEMS:
        names = {row.entry.record.line: name for name, group in _named(run) for row in group.rows}
        groups = [
            {"sku": cell(row["sku"]), "group": names[row["line"]], "status": row["status"]}
            for row in rows
            if row["line"] in names
        ]
        await _show_table(f"{key}-groups", groups, "The task run in which each row was driven.")


async def _show_table(key: str, table: Sequence[Mapping[str, object]], text: str) -> None:
    if table:
        made = acreate_table_artifact(key=key, table=[*map(dict, table)], description=markdown(text))
        await _if_possible(made)


def _named(run: Run) -> Iterator[tuple[str, Group]]:
    return ((cell(group.describe()), group) for group in run.engine.groups)


def _first(rows: Sequence[object]) -> str:
    return f"The first {_MOST} of {len(rows):,} rows" if len(rows) > _MOST else "All rows"


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


def _rows(out: Path) -> list[dict[str, Any]]:
    with (out / EXACT).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _changes(out: Path) -> list[dict[str, str]]:
    """The lines of changes.csv, if there is one."""
    place = out / CHANGES_FILE
    if not place.exists():
        return []
    with place.open(encoding="utf-8-sig", newline="") as file:
        return [{name: cell(line[name]) for name in _CHANGES_SHOWN} for line in csv.DictReader(file)]


async def _if_possible(making: Awaitable[T]) -> T | None:
    """None when the page cannot be written: the run does not stop for it."""
    try:
        return await asyncio.wait_for(making, _PATIENCE)
    except Exception as error:
        logger.info("The run's page could not be written: %s", type(error).__name__)
        return None
