"""What a run shows on its page in the Prefect UI: progress, then a summary and the failures by cause."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from patternmill.mill.changing import counts_line, counts_of
from patternmill.mill.run import Ending, Run
from patternmill.results.rebuild import Results
from patternmill.states import RowStatus
from tasks.outcomes import counts_message

T = TypeVar("T")
logger = logging.getLogger(__name__)

_EVERY = 3.0
_PATIENCE = 10.0
_MOST_CAUSES = 50


@asynccontextmanager
async def progress_shown(run: Run) -> AsyncIterator[None]:
    """Keep a progress artifact on the flow run's page moving while the run goes on; the last word is the end's."""
    page = _ProgressPage(run)
    showing = asyncio.create_task(page.keep_moving())
    try:
        yield
    finally:
        showing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await showing
        await page.show()


class _ProgressPage:
    """The progress artifact of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._artifact: UUID | None = None

    async def keep_moving(self) -> None:
        while True:
            await self.show()
            await asyncio.sleep(_EVERY)

    async def show(self) -> None:
        share, text = _share(self._run), _progress_text(self._run)
        if self._artifact is None:
            key = f"run-{self._run.record.run_id}-progress"
            making = acreate_progress_artifact(progress=share, key=key, description=text)
            self._artifact = await _tried(making)
        else:
            await _tried(aupdate_progress_artifact(self._artifact, progress=share, description=text))


async def show_ending(ending: Ending, results: Results) -> None:
    """Put the summary, and the failures where there are some, on the flow run's page."""
    await _tried(
        acreate_markdown_artifact(
            key=f"run-{ending.record.run_id}-summary",
            markdown=_summary(ending, results),
            description=f"{ending.outcome}: {counts_message(ending.rows)}",
        )
    )
    if results.causes:
        await _tried(
            acreate_table_artifact(
                key=f"run-{ending.record.run_id}-failures",
                table=_failures(results),
                description=f"What went wrong, by cause. Every row: {results.published.out}/failures.csv",
            )
        )


async def show_plan(digest: str, markdown: str) -> None:
    """Put a plan that waits for a person on the flow run's page."""
    await _tried(
        acreate_markdown_artifact(
            key=f"plan-{digest}", markdown=markdown, description="Waits for a person's approval."
        )
    )


def _share(run: Run) -> float:
    """Percent of the rows of this run that have ended."""
    progress = run.progress
    return 100.0 * progress.ended / progress.to_do if progress.to_do else 100.0


def _progress_text(run: Run) -> str:
    progress = run.progress
    return (
        f"{progress.ended} of {progress.to_do} rows ended: {progress.patterns} patterns and "
        f"{progress.products} products made, {progress.failed} rows failed, {progress.in_flight} jobs in flight"
    )


def _summary(ending: Ending, results: Results) -> str:
    record, out = ending.record, results.published.out.resolve()
    changes = counts_of(record)
    lines = [
        f"## {ending.outcome}: {counts_message(ending.rows)}",
        *([f"**{record.reason}**"] if record.reason else []),
        "",
        "| | |",
        "|---|---|",
        f"| catalog | {record.catalog} ({record.environment}) |",
        f"| input | `{record.source}` |",
        *(
            f"| {status.value.replace('_', ' ')} | {count} |"
            for status in RowStatus
            if (count := ending.rows.get(status, 0))
        ),
        *([f"| changes | {counts_line(changes)} |"] if changes is not None else []),
        f"| run | `{record.run_id}` |",
        f"| results | `{out / 'results.csv'}` |",
        f"| failures | `{out / 'failures.csv'}` |",
        f"| gallery | `{out / 'gallery.html'}` |",
    ]
    lines += ["", *(f"> {note}" for note in record.options.get("notes", []))]
    return "\n".join(lines)


def _failures(results: Results) -> list[dict[str, object]]:
    return [
        {
            "rows": cause.count,
            "code": cause.code,
            "what": cause.message,
            "remedy": cause.remedy,
            "skus": ", ".join(cause.skus) + (" …" if cause.count > len(cause.skus) else ""),
        }
        for cause in results.causes[:_MOST_CAUSES]
    ]


async def _tried(making: Awaitable[T]) -> T | None:
    """A page that cannot be written is no reason to stop a run."""
    try:
        return await asyncio.wait_for(making, _PATIENCE)
    except Exception as error:
        logger.info("The run's page could not be written: %s", type(error).__name__)
        return None
