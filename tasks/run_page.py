"""What a run shows on its page in the Prefect UI: progress, then a summary and the failures by cause."""

from __future__ import annotations

import asyncio
import csv
import logging
import shlex
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
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

from patternmill.ledger.reports.overview import Spent
from patternmill.planning.forecast import Cost
from patternmill.results.changes_csv import CHANGES_FILE
from patternmill.results.results_files import FAILURES_FILE, GALLERY, RESULTS, Results
from patternmill.results.summary import FAILURES, joined
from patternmill.runs.refresh_changes import counts_line, counts_of
from patternmill.runs.run import ActiveRun, Run, RunEnding
from patternmill.states import RowStatus
from tasks.markup import cell, markdown
from tasks.prefect_states import counts_message
from tasks.run_log import noted

T = TypeVar("T")
logger = logging.getLogger(__name__)

_EVERY = 3.0
_PATIENCE = 10.0
_MOST_CAUSES = 50
_MOST_CHANGES = 200
#: Columns of changes.csv; the rest are in the file.
_CHANGES_SHOWN = ("sku", "change", "fields", "status", "old_product_id", "new_product_id")
#: In the table, whose columns do not wrap; the summary has more.
_FIRST_SKUS = 3


@asynccontextmanager
async def progress_shown(run: ActiveRun) -> AsyncIterator[None]:
    """Keep a progress artifact on the flow run's page moving while the run goes on; the last word is the end's."""
    page = _ProgressPage(run)
    showing = asyncio.create_task(page.keep_moving())
    try:
        yield
    finally:
        # More than once: of one that comes with an answer, Python 3.11's `wait_for` makes nothing.
        while not showing.done():
            showing.cancel()
            await asyncio.wait({showing}, timeout=0.5)
        await page.show()


class _ProgressPage:
    """The progress artifact of one run."""

    def __init__(self, run: ActiveRun) -> None:
        self._run = run
        self._artifact: UUID | None = None
        self._waiting = ""

    async def keep_moving(self) -> None:
        while True:
            self._note_waiting()
            await self.show()
            await asyncio.sleep(_EVERY)

    def _note_waiting(self) -> None:
        """That the ledger is waited for stands in the run's log too, once as it begins and once as it is over."""
        before, self._waiting = self._waiting, self._run.writer.waiting
        if self._waiting and not before:
            noted(f"The run is {self._waiting}.")
        elif before and not self._waiting:
            noted(f"The run was {before}.")

    async def show(self) -> None:
        share, text = _share(self._run), markdown(_progress_text(self._run))
        if self._artifact is None:
            key = f"run-{self._run.name.replace('/', '-')}-progress"
            making = acreate_progress_artifact(progress=share, key=key, description=text)
            self._artifact = await _tried(making)
        else:
            await _tried(aupdate_progress_artifact(self._artifact, progress=share, description=text))


async def show_ending(run: Run, ending: RunEnding, results: Results) -> None:
    """Put the summary, the failures and the changes, where there are some, on the flow run's page."""
    out, key = results.out.resolve(), f"run-{ending.record.run_id}"
    title = f"{ending.outcome}: {counts_message(ending.rows)}"
    summary = summary_text(run, ending, results)
    await _tried(acreate_markdown_artifact(key=f"{key}-summary", markdown=summary, description=title))
    if results.causes:
        told = markdown(f"What went wrong, by cause. Every row: {out / FAILURES_FILE}")
        table = _failures(results)
        await _tried(acreate_table_artifact(key=f"{key}-failures", table=table, description=told))
    if changes := await asyncio.to_thread(_changes, out):
        first = f"The first {_MOST_CHANGES} rows" if len(changes) == _MOST_CHANGES else "All rows"
        told = markdown(f"{first} that differ from the catalog as it was. As a file: {out / CHANGES_FILE}")
        await _tried(acreate_table_artifact(key=f"{key}-changes", table=changes, description=told))


async def show_plan(digest: str, markdown: str) -> None:
    """Put a plan that waits for a person on the flow run's page."""
    await _tried(
        acreate_markdown_artifact(
            key=f"plan-{digest}", markdown=markdown, description="Waits for a person's approval."
        )
    )


def _share(run: ActiveRun) -> float:
    """Percent of the rows of this run that have ended."""
    progress = run.progress
    return 100.0 * progress.ended / progress.to_do if progress.to_do else 100.0


def _progress_text(run: ActiveRun) -> str:
    progress = run.progress
    left = progress.seconds_left
    parts = [
        *([f"about {duration(left)} left"] if left else []),
        f"{progress.ended} of {progress.to_do} rows ended: {progress.patterns} patterns and "
        f"{progress.products} products made, {progress.failed} rows failed, {progress.in_flight} jobs in flight",
    ]
    if progress.refused:
        parts.append(f"{progress.refused} rows refused before")
    if progress.done_before:
        parts.append(f"{progress.done_before} rows were there already")
    if progress.notice:
        parts.append(progress.notice)
    if run.writer.waiting:
        parts.append(run.writer.waiting)
    return "; ".join(parts)


def summary_text(run: Run, ending: RunEnding, results: Results) -> str:
    """The summary as markdown: counts, money beside what was expected, where the files are, and what went wrong."""
    record = ending.record
    lines = [
        f"## {ending.outcome}: {counts_message(ending.rows)}",
        *([f"**{markdown(record.reason)}**"] if record.reason else []),
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {markdown(text)} |" for name, text in _facts(run, ending, results)),
        "",
        *(f"> {markdown(note)}" for note in record.options.get("notes", [])),
        *_causes(results),
        *_next_steps(ending),
    ]
    return "\n".join(lines)


def _facts(run: Run, ending: RunEnding, results: Results) -> Iterator[tuple[str, str]]:
    record, out = ending.record, results.out.resolve()
    took = (record.ended_at - record.started_at).total_seconds() if record.ended_at else 0.0
    yield "catalog", f"{record.catalog} ({record.environment})"
    yield "input", record.source
    yield "made", f"{_goods(run.progress.patterns, run.progress.products)} in {duration(took)}"
    yield "money", money_text(ending.spent, run.forecast)
    changes = counts_of(record)
    if changes is not None:
        yield "changes", counts_line(changes)
        yield "changes, row by row", str(out / CHANGES_FILE)
    yield "gallery", str(out / GALLERY)
    yield "results", str(out / RESULTS)
    if results.causes:
        yield "failures", str(out / FAILURES_FILE)
    yield "run", record.run_id


def money_text(spent: Spent, forecast: Cost) -> str:
    """What a run spent beside what it was expected to; in minor units, as prices are given."""
    bought = f"{_goods(spent.patterns, spent.products)} bought"
    if not forecast.worst and not spent.amount:
        return f"not counted, as no prices are set; {bought}"
    expected = f"{forecast.expected:,} was expected, {forecast.worst:,} at worst"
    return f"{spent.amount:,} spent; {expected} (minor units); {bought}"


def _goods(patterns: int, products: int) -> str:
    return f"{patterns:,} pattern{'s'[: patterns != 1]} and {products:,} product{'s'[: products != 1]}"


def _causes(results: Results) -> Iterator[str]:
    if not results.causes:
        return
    yield "\n### What went wrong\n"
    for cause in results.causes[:_MOST_CAUSES]:
        skus = ", ".join(cause.skus) + (" …" if cause.count > len(cause.skus) else "")
        yield (
            f"- **{cause.count} × {markdown(cause.code)}** {markdown(joined(cause.message, cause.remedy))}  \n"
            f"  {markdown(skus)}"
        )
    if len(results.causes) > _MOST_CAUSES:
        yield f"- and {len(results.causes) - _MOST_CAUSES} more causes"


def _next_steps(ending: RunEnding) -> Iterator[str]:
    catalog = ending.record.catalog
    standing = {status for status, count in ending.rows.items() if count} - {RowStatus.SUCCEEDED}
    if standing:
        yield "\n### What next\n"
    if standing - {RowStatus.REFUSED}:
        yield (
            f"- What failed, was stopped or is in doubt is taken up again by the deployment `retry-failed` with the "
            f"catalog {markdown(catalog)}, or by {markdown(f'patternmill retry --catalog {shlex.quote(catalog)}')}."
        )
    if standing & FAILURES:
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


def duration(seconds: float) -> str:
    """As people say it: `45 s`, `3 min`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


async def _tried(making: Awaitable[T]) -> T | None:
    """A page that cannot be written is no reason to stop a run."""
    try:
        return await asyncio.wait_for(making, _PATIENCE)
    except Exception as error:
        logger.info("The run's page could not be written: %s", type(error).__name__)
        return None
