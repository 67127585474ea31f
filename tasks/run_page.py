"""A run's page in the Prefect UI: progress, then a summary, pictures, the rows that failed, and where each was driven.

A page that cannot be written stops nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    acreate_image_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from slugify import slugify

from patternmill.engine.progress import Progress
from patternmill.looking.contact_sheet import MOST, contact_sheet
from patternmill.planning.plan import TO_DO
from patternmill.runs.results_files import EXACT, Results
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.run_text import progress_line, summary_lines
from patternmill.states import COMPLETE_ROWS, RowStatus
from patternmill.text import plural
from tasks.flow_runs import heed_state
from tasks.markup import cell, markdown, markdown_lines
from tasks.prefect_states import counts_message

logger = logging.getLogger(__name__)

_BEAT_SECONDS = 5.0
_PATIENCE = 10.0
_MOST_CAUSES = 50
_MOST_FAILED = 200
#: Columns of the table of failed rows, by the field of results.jsonl.
_FAILED_ROW = {
    "row": "line",
    "sku": "sku",
    "status": "status",
    "code": "error_code",
    "what": "error",
    "remedy": "remedy",
}


@asynccontextmanager
async def progress_shown(run: Run) -> AsyncIterator[None]:
    """Update a progress artifact with each beat, and heed the flow run's state; update it once more at the end."""
    artifact: UUID | None = None
    items = run.plan.counts(TO_DO).total()

    async def show() -> None:
        nonlocal artifact
        share, text = 100.0 * share_done(run.progress, items), markdown(progress_line(run))
        if artifact is None:
            key = f"run-{run.record.run_id}-progress"
            artifact = await _if_possible(acreate_progress_artifact(share, key=key, description=text))
        else:
            await _if_possible(aupdate_progress_artifact(artifact, share, description=text))

    async def beat() -> None:
        while True:
            await show()
            await asyncio.sleep(_BEAT_SECONDS)
            await heed_state(run)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        # In a loop: Python 3.11's `wait_for` loses a cancellation that comes with its result.
        while not beating.done():
            beating.cancel()
            await asyncio.wait({beating}, timeout=0.5)
        await show()


def share_done(progress: Progress, items: int) -> float:
    """Return the share of the rows that have ended; as long as it is more, that of the items that are made."""
    rows = progress.ended / progress.to_do if progress.to_do else 1.0
    return max(rows, progress.made.total() / max(items, 1))


async def show_ending(run: Run, ending: RunEnding, results: Results) -> None:
    """Put the summary with the rows that failed on the page, then pictures, and of large runs a table of the groups."""
    key = f"run-{ending.record.run_id}"
    title = f"{ending.outcome.words}: {counts_message(ending.rows)}"
    failed = await asyncio.to_thread(_failed_rows, results, ending)
    await show_text(f"{key}-summary", f"{_summary(run, ending, results)}\n\n{failed}", title)
    # A person who ran a command gets the prompt back sooner, and looks with `patternmill look`.
    if run.spec.by_deployment:
        await _show_pictures(run, results)
    if run.is_by_groups:
        table = await asyncio.to_thread(_driven_rows, run, results)
        text = "The task run in which each row was driven."
        await _if_possible(acreate_table_artifact(table, key=f"{key}-groups", description=text))


def _lines(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the rows of results.jsonl, which may be large."""
    with (results.out / EXACT).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _driven_rows(run: Run, results: Results) -> list[dict[str, str]]:
    """Return the group of each row, as cells of a table artifact."""
    rows = {row["line"]: (row["sku"], row["status"]) for row in _lines(results)}
    return [
        {"sku": cell(rows[number][0]), "group": cell(group), "status": rows[number][1]}
        for group, numbers in run.driven.items()
        for number in numbers
    ]


def _failed_rows(results: Results, ending: RunEnding) -> str:
    """Return a markdown table of the first rows that were refused, failed or not made."""
    failed = list(
        islice((row for row in _lines(results) if row["status"] not in COMPLETE_ROWS), _MOST_FAILED)
    )
    if not failed:
        return ""
    count = sum(count for status, count in ending.rows.items() if status not in COMPLETE_ROWS)
    first = f"The first {len(failed)} of {count:,}" if count > len(failed) else "All"
    cells = ([markdown(str(row[field] or "")) for field in _FAILED_ROW.values()] for row in failed)
    lines = "\n".join(f"| {' | '.join(line)} |" for line in [_FAILED_ROW, ["---"] * len(_FAILED_ROW), *cells])
    where = markdown(str(results.failures.resolve()))
    return f"{first} rows that failed or were not made, which are in {where}:\n\n{lines}"


async def _show_pictures(run: Run, results: Results) -> None:
    """Show pictures by a key of the catalog: Prefect shows those of its earlier runs as their history."""
    record = run.record
    rows = (row for row in _lines(results) if row["status"] != RowStatus.DISCARDED and row["product"])
    urls = list(islice(filter(None, (row["product"]["picture_url"] for row in rows)), MOST))
    if sheet := await _if_possible(asyncio.to_thread(contact_sheet, urls, run.spec.settings)):
        look = f"patternmill look {shlex.quote(record.catalog)}"
        text = f"{record.catalog} ({record.environment}). To look at all of them and decide: {look}"
        key = slugify(f"pictures-{record.environment}-{record.catalog}")
        await _if_possible(acreate_image_artifact(sheet, key=key, description=markdown(text)))


def _summary(run: Run, ending: RunEnding, results: Results) -> str:
    """Return the run's summary as markdown, with its notes and what may be done next."""
    notes = ending.record.options.get("notes", ())
    catalog = results.catalog.resolve() if results.catalog is not None else None
    resolved = replace(results, out=results.out.resolve(), catalog=catalog)
    lines = summary_lines(run, ending, resolved, _MOST_CAUSES)
    shown = [markdown_lines(lines), "".join(f"> {markdown(note)}  \n" for note in notes)]
    return "\n\n".join([*shown, *next_steps(ending, results)])


def next_steps(ending: RunEnding, results: Results) -> Iterator[str]:
    """Yield, as markdown, what a person may do about the rows that were not made: only what does something."""
    if to_choose := ending.rows.get(RowStatus.TO_CHOOSE):
        look = markdown(f"patternmill look {shlex.quote(ending.record.catalog)}")
        yield f"{plural(to_choose, 'row')} to choose: {look} shows the takes; then run the same again."
    if any(results.to_retry.values()):
        scope = shlex.join(["--catalog", ending.record.catalog, "--environment", ending.record.environment])
        retry = markdown(f"patternmill retry {scope}")
        yield f"Next: the deployment `retry-failed`, or {retry}, retries what failed, was stopped or is in doubt."
    if ending.rows.get(RowStatus.REFUSED) or ending.rows.get(RowStatus.FAILED):
        yield f"Rows that have to be corrected: correct `{results.failures.name}`, and import it."


async def show_text(key: str, text: str, description: str) -> None:
    """Put a text in markdown on the page."""
    await _if_possible(acreate_markdown_artifact(key=key, markdown=text, description=description))


async def _if_possible(making: Awaitable[Any]) -> Any:
    try:
        return await asyncio.wait_for(making, _PATIENCE)
    except Exception as error:
        logger.info("The run's page could not be written: %s", type(error).__name__)
        return None
