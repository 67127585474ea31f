"""The Prefect server's record of a run: waiting until it is complete, and closing what a lost process left open."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort
from prefect.runtime import flow_run
from prefect.states import Crashed

from prefect_host.event_batches import EventsBatch
from prefect_host.internals import drain_senders

T = TypeVar("T")
logger = logging.getLogger(__name__)

#: The states of a task run that may still change.
OPEN_STATES = (
    StateType.SCHEDULED,
    StateType.PENDING,
    StateType.RUNNING,
    StateType.PAUSED,
    StateType.CANCELLING,
)
#: The states of a flow run that has a process.
_DRIVEN_STATES = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)
_LOST = "The process that ran this was lost. What it had begun is in the ledger, and a later one resumed it."
_PAGE = 200
_POLL_SECONDS = 0.3
_REQUEST_SECONDS = 20.0
#: So many requests may time out: SQLite under load was silent for half a minute.
MOST_SILENCES = 2
NOTHING_KNOWN: Mapping[str, State[Any]] = MappingProxyType({})


@dataclass(frozen=True)
class KnownEnds:
    """The states of a flow run and, by name, of the runs inside it: from the ledger, not from Prefect."""

    top: State[Any]
    inside: Mapping[str, State[Any]]


@dataclass(frozen=True)
class TaskRunCounts:
    """Of one flow run and those nested in it."""

    #: Without those of nested flow runs.
    recorded: int
    #: Those not in a final state.
    open: int


def lost() -> State[Any]:
    return Crashed(message=_LOST)


def deliver(patience: timedelta = timedelta(seconds=15)) -> bool:
    """Send what Prefect's senders in this process still have; returns whether all of it was sent.

    Call it outside of an event loop, once the flow has returned. It waits while the server accepts events. One that
    accepts none for `patience` is gone; then only `os._exit` ends the process soon, because the senders try for
    minutes at the interpreter's exit.
    """
    left = drain_senders()
    accepted, until = EventsBatch.accepted, time.monotonic() + patience.total_seconds()
    while left and time.monotonic() < until:
        left = wait(left, timeout=0.2).not_done
        if EventsBatch.accepted != accepted:
            accepted, until = EventsBatch.accepted, time.monotonic() + patience.total_seconds()
    return not left


async def await_record(
    client: PrefectClient, flow_run_id: UUID, *, patience: timedelta = timedelta(seconds=20)
) -> TaskRunCounts:
    """Wait until no task run of the flow run, or of one nested in it, is open; returns how far that came.

    It waits as long as the record changes, as a long queue may take its time, and for `patience` after that. Raises
    what Prefect's client raises when the server does not answer. Requests that time out, as when the server is busy
    with its database, are repeated before TimeoutError is raised.
    """
    before, changed, silences = None, time.monotonic(), 0
    while True:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                counts = await _counts(client, flow_run_id)
        except TimeoutError:
            silences += 1
            if silences > MOST_SILENCES:
                raise
            changed = time.monotonic()
            continue
        if counts != before:
            before, changed = counts, time.monotonic()
        if not counts.open or time.monotonic() - changed > patience.total_seconds():
            return counts
        await asyncio.sleep(_POLL_SECONDS)


async def correct_flow_runs(client: PrefectClient, flow_run_id: UUID, ends: KnownEnds) -> None:
    """Correct the states of the flow run, and of those nested in it.

    If the server was unavailable as a flow run ended, its record has Prefect's error instead of the outcome.
    """
    nested = [(run, ends.inside.get(run.name)) for run in await _nested(client, flow_run_id)]
    for run, end in [(await client.read_flow_run(flow_run_id), ends.top), *nested]:
        if end is not None and (
            run.state is None or (run.state.type, run.state.name) != (end.type, end.name)
        ):
            await client.set_flow_run_state(run.id, end, force=True)


async def close_inside(
    client: PrefectClient, flow_run_id: UUID, ends: Mapping[str, State[Any]] = NOTHING_KNOWN
) -> int:
    """Set what is open inside a flow run whose process is gone to the final state in `ends`, else to lost.

    Returns the number of task runs that `ends` does not have.
    """
    nested, unknown = await _nested(client, flow_run_id), 0
    read = partial(
        client.read_task_runs,
        flow_run_filter=FlowRunFilter.model_validate(_one_of([flow_run_id, *(run.id for run in nested)])),
        task_run_filter=TaskRunFilter.model_validate({"state": {"type": {"any_": OPEN_STATES}}}),
        sort=TaskRunSort.ID_DESC,
    )
    for task_run in await _every_page(read):
        unknown += task_run.name not in ends
        await client.set_task_run_state(task_run.id, ends.get(task_run.name) or lost(), force=True)
    for run in nested:
        if run.state is None or run.state.type in _DRIVEN_STATES:
            await client.set_flow_run_state(run.id, ends.get(run.name) or lost(), force=True)
    return unknown


async def close_abandoned_runs(client: PrefectClient) -> int:
    """Close every flow run that should have a process, with what is inside; returns how many there were.

    Only for our own server when it has just been started and has no other users: the processes are dead.
    """
    abandoned = await _flow_runs(client, {"state": {"type": {"any_": list(_DRIVEN_STATES)}}})
    for run in abandoned:
        await close_inside(client, run.id)
        await client.set_flow_run_state(run.id, lost(), force=True)
    return len(abandoned)


async def close_earlier_attempts() -> None:
    """Close what a killed attempt of this flow run left open, before this one has task runs."""
    if (flow_run.run_count or 1) < 2:
        return
    try:
        async with get_client() as client:
            await close_inside(client, UUID(str(flow_run.id)))
    except Exception as error:
        logger.info("Earlier attempts stay open on the page: %s", type(error).__name__)


async def _counts(client: PrefectClient, flow_run_id: UUID) -> TaskRunCounts:
    nested = await _nested(client, flow_run_id)
    runs = _one_of([flow_run_id, *(run.id for run in nested)])

    async def count(task_runs: Mapping[str, Any]) -> int:
        body = {"flow_runs": runs, "task_runs": task_runs}
        return int((await client.request("POST", "/task_runs/count", json=body)).json())

    return TaskRunCounts(
        recorded=await count({"subflow_runs": {"exists_": False}}),
        open=await count({"state": {"type": {"any_": OPEN_STATES}}}),
    )


async def _nested(client: PrefectClient, flow_run_id: UUID) -> list[FlowRun]:
    """The flow runs nested in one, at whatever depth."""
    found: list[FlowRun] = []
    parents = [flow_run_id]
    while parents:
        children = await _flow_runs(client, {"parent_flow_run_id": _one_of(parents)["id"]})
        found += children
        parents = [run.id for run in children]
    return found


async def _flow_runs(client: PrefectClient, where: Mapping[str, Any]) -> list[FlowRun]:
    wanted = FlowRunFilter.model_validate(where)
    read = partial(client.read_flow_runs, flow_run_filter=wanted, sort=FlowRunSort.ID_DESC)
    return await _every_page(read)


def _one_of(flow_runs: Iterable[UUID]) -> dict[str, Any]:
    """A filter for these flow runs, as the server's API has it."""
    return {"id": {"any_": [str(flow_run_id) for flow_run_id in flow_runs]}}


async def _every_page(read: Callable[..., Awaitable[list[T]]]) -> list[T]:
    found: list[T] = []
    while True:
        page = await read(limit=_PAGE, offset=len(found))
        found += page
        if len(page) < _PAGE:
            return found
