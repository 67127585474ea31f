"""Shows on the Prefect server how far a run is and how it ended, and closes what killed processes left open there."""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast
from uuid import UUID

from prefect import State, get_client
from prefect.artifacts import acreate_markdown_artifact, acreate_progress_artifact, aupdate_progress_artifact
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.states import Cancelled, Crashed

from patternmill.request import End, Failure
from patternmill.text import counted, shown

_EVERY, _PATIENCE = 5.0, 10.0
_MOST_ROWS, _LONGEST = 200, 300
#: What a page takes for markup, and for an address: as code it is neither.
_MARKUP = re.compile(r"[\\`*_\[\]<>~|&#]")
_ADDRESS = re.compile(r"([^\s|`]*(?:://|www\.|@)[^\s|`]*)", re.IGNORECASE)
#: The next run goes on with what is left after so many seconds.
_CLOSING = 15.0
_OPEN = {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}
_DIED = "The process that ran this is gone. What it had bought is in the ledger; later runs go on with it."
_SETTLED = "Another run of the catalog has begun or asks since: this plan is no longer the newest."
#: How a flow run with such tags ended, as far as that is known, and the ends of its task runs by name.
OnRecord = Callable[[list[str]], tuple[State[Any] | None, Mapping[str, State[Any]]]]
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
        text = markdown_lines(end.message)
        if end.failures:
            text += f"\n\n{_table(end.failures)}"
        key = f"run-{flow_run_id}-summary"
        await _if_possible(
            acreate_markdown_artifact(text, key=key, description=markdown(end.message.partition("\n")[0]))
        )


def _table(failures: Sequence[Failure]) -> str:
    head = f"The first {_MOST_ROWS} of {len(failures):,} rows" if len(failures) > _MOST_ROWS else "Rows"
    cells = [(str(one.row), one.sku, one.status, one.code, one.error) for one in failures[:_MOST_ROWS]]
    lines = ["| row | sku | status | code | reason |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(map(markdown, line))} |" for line in cells]
    return f"{head} that need a person:\n\n" + "\n".join(lines)


def markdown(text: str) -> str:
    """Return a text as one line that a page shows literally: no markup, no link, nothing invisible."""
    parts = _ADDRESS.split(shown(text, _LONGEST)[1:-1])
    parts[::2] = map(partial(_MARKUP.sub, r"\\\g<0>"), parts[::2])
    parts[1::2] = map("`{}`".format, parts[1::2])
    return "".join(parts)


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


def catalog_tag(environment: str, catalog: str) -> str:
    """Return the tag of all runs of a catalog."""
    return f"{environment}:{catalog}"


async def end_dead_runs(
    environment: str, catalog: str, on_record: OnRecord = lambda tags: (None, {})
) -> None:
    """End the open runs of a catalog that began before this flow run, with their task runs, and its open questions.

    So are task runs of this flow run before it was suspended or retried. All end as they did on record, which the
    server may have missed. Call it only with the catalog's lease held: none of them can be alive then.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    mine = context.flow_run
    earlier: dict[str, Any] = {
        "tags": {"all_": [catalog_tag(environment, catalog)]},
        "id": {"not_any_": [mine.id]},
        "start_time": {"before_": mine.start_time},
    }
    mine_before = {"id": {"any_": [mine.id]}}, {"start_time": {"before_": context.start_time}}
    for pause in (0.5, 2.0, 0.0):
        try:
            async with asyncio.timeout(_CLOSING), get_client() as client:
                await _end_tasks(client, *mine_before, on_record)
                await _end(client, earlier, on_record)
                await end_questions(client, await open_questions(client, environment, catalog))
                return
        except Exception as error:  # whatever the client raises
            _log.warning("Runs of dead processes stay open on the screen: %r", error)
            await asyncio.sleep(pause)


async def _end(client: PrefectClient, earlier: dict[str, Any], on_record: OnRecord) -> None:
    """End the task runs first, those of flow runs too that a worker has ended itself."""
    await _end_tasks(client, earlier, {}, on_record)
    dead = FlowRunFilter.model_validate(earlier | {"state": _OPEN})
    for flow_run in await client.read_flow_runs(flow_run_filter=dead):
        state = on_record(flow_run.tags)[0] or Crashed(message=_DIED)
        await client.set_flow_run_state(flow_run.id, state, force=True)


async def _end_tasks(
    client: PrefectClient, flow_runs: dict[str, Any], which: dict[str, Any], on_record: OnRecord
) -> None:
    left: dict[str, Any] = {
        "flow_run_filter": FlowRunFilter.model_validate(flow_runs),
        "task_run_filter": TaskRunFilter.model_validate({"state": _OPEN, **which}),
    }
    while task_runs := await client.read_task_runs(**left, limit=100):
        owners = {"id": {"any_": [run.flow_run_id for run in task_runs]}}
        found = await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(owners))
        known = {owner.id: on_record(owner.tags)[1] for owner in found}
        for run in task_runs:
            state = known.get(cast(UUID, run.flow_run_id), {}).get(run.name) or Crashed(message=_DIED)
            await client.set_task_run_state(run.id, state, force=True)


async def open_questions(client: PrefectClient, environment: str, catalog: str) -> list[FlowRun]:
    """Return the flow runs of a catalog that wait for the answer to a form, without this one."""
    mine = _flow_run_id()
    waiting = {
        "tags": {"all_": [catalog_tag(environment, catalog)]},
        "id": {"not_any_": [mine] if mine else []},
        "state": {"type": {"any_": ["PAUSED"]}},
    }
    runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(waiting))
    return [run for run in runs if run.state and run.state.state_details.run_input_keyset]


async def end_questions(client: PrefectClient, waiting: Iterable[FlowRun]) -> None:
    """End flow runs whose question need not be answered any more."""
    for flow_run in waiting:
        await client.set_flow_run_state(flow_run.id, Cancelled(message=_SETTLED), force=True)
