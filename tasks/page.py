"""A run's page on the Prefect server: how far it is, then how it ended, with the rows that a person has to look at."""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Protocol

from prefect.artifacts import acreate_markdown_artifact, acreate_progress_artifact, aupdate_progress_artifact
from prefect.context import FlowRunContext
from prefect.events import emit_event

from patternmill.request import End, Failure
from patternmill.text import counted, shown

_EVERY, _PATIENCE = 5.0, 10.0
_MOST_ROWS, _LONGEST = 200, 300
#: What a page takes for markup, and for an address: as code it is neither.
_MARKUP = re.compile(r"[\\`*_\[\]<>~|&#]")
_ADDRESS = re.compile(r"([^\s|`]*(?:://|www\.|@)[^\s|`]*)", re.IGNORECASE)
_log = logging.getLogger(__name__)


class Making(Protocol):
    """A run while it makes rows: how many items it has to make, and has made."""

    work: int
    made: int


@contextlib.asynccontextmanager
async def watching(run: Making) -> AsyncIterator[None]:
    """Show every five seconds how far a run is, and once more at the end."""
    flow_run_id = _flow_run_id()
    if flow_run_id is None:
        yield
        return
    artifact = await _if_possible(
        acreate_progress_artifact(0.0, key=f"run-{flow_run_id}-progress", description=_progress(run))
    )

    async def show() -> None:
        if artifact is not None:
            share = 100.0 * min(1.0, run.made / max(run.work, 1))
            await _if_possible(aupdate_progress_artifact(artifact, share, description=_progress(run)))

    async def beat() -> None:
        while True:
            await asyncio.sleep(_EVERY)
            await show()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait({beating})
        await show()


def _progress(run: Making) -> str:
    return f"{run.made:,} of {counted(run.work, 'item')} made."


async def show_end(end: End) -> None:
    """Show how a run ended, with the first rows that a person has to look at; programs get it as an event."""
    if flow_run_id := _flow_run_id():
        about = end.summary
        resource = {
            "prefect.resource.id": f"patternmill.catalog.{about.environment}.{about.catalog}",
            "prefect.resource.name": about.catalog,
            "patternmill.outcome": end.outcome,
        }
        with contextlib.suppress(Exception):  # whatever the client raises
            emit_event(f"patternmill.run.{end.outcome}", resource, payload=about.model_dump(mode="json"))
        text = "\n\n".join(filter(None, (markdown_lines(end.message), _table(end.failures))))
        key = f"run-{flow_run_id}-summary"
        await _if_possible(
            acreate_markdown_artifact(text, key=key, description=markdown(end.message.partition("\n")[0]))
        )


def _table(failures: Sequence[Failure]) -> str:
    if not failures:
        return ""
    head = f"The first {_MOST_ROWS} of {len(failures):,} rows" if len(failures) > _MOST_ROWS else "Rows"
    cells = [(str(one.row), one.sku, one.status, one.code, one.error) for one in failures[:_MOST_ROWS]]
    lines = ["| row | sku | status | code | reason |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(map(markdown, line))} |" for line in cells]
    return f"{head} that need a person:\n\n" + "\n".join(lines)


def markdown(text: str) -> str:
    """Return a text as one line that a page shows literally: no markup, no link, nothing invisible."""
    line = shown(text, _LONGEST)[1:-1]
    parts = enumerate(_ADDRESS.split(line))
    return "".join(f"`{part}`" if number % 2 else _MARKUP.sub(r"\\\g<0>", part) for number, part in parts)


def markdown_lines(text: str) -> str:
    """Return a text of several lines that a page shows literally."""
    return "  \n".join(map(markdown, text.splitlines()))


def _flow_run_id() -> str | None:
    context = FlowRunContext.get()
    return str(context.flow_run.id) if context and context.flow_run else None


async def _if_possible(making: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await making
    except Exception as error:  # whatever the client raises
        _log.info("The run's page could not be written: %r", error)
        return None
