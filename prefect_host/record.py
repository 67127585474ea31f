"""The Prefect server's record of a run: waiting until it is complete, and closing what a lost process left open."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.states import Crashed

from prefect_host.event_batches import EventsBatch
from prefect_host.internals import drain_senders
from prefect_host.task_runs import TaskRunRecord, ending_event

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
_LOST = "The process that ran this was lost. What it had begun is in the ledger, for the next run to resume."
#: Events that only a living process sends.
_SIGNS = ("prefect.task-run.", "prefect.flow-run.heartbeat", "prefect.flow-run.Running")
#: The tag of the deployments in deployments/prefect.yaml.
OUR_TAG = "patternmill"
#: How long after their end runs are looked at, and how soon.
_LOOK_BACK = timedelta(days=1)
_GRACE = timedelta(seconds=20)
_PAGE = 200
_POLL_SECONDS = 0.3
_REQUEST_SECONDS = 20.0
#: So many requests may time out: SQLite under load was silent for half a minute.
MOST_SILENCES = 2
#: How often what is missing is recorded again.
_MOST_ROUNDS = 3


@dataclass(frozen=True)
class KnownEnds:
    """How a flow run and what is inside it should be recorded: from the ledger, not from Prefect."""

    #: None while the flow run goes on.
    top: State[Any] | None = None
    #: States of nested flow runs and of the run's own steps, by name.
    inside: Mapping[str, State[Any]] = field(default_factory=dict)
    #: Task runs of items, or of shards, by ID.
    task_runs: Mapping[UUID, TaskRunRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskRunCounts:
    """Of one flow run and those nested in it."""

    #: Of items and shards, whose names have a dot in the middle; not of steps and nested flow runs.
    recorded: int
    #: Those not in a final state.
    open: int


def lost(last_sign: datetime | None = None) -> State[Any]:
    """`last_sign` is when its process last sent something: Prefect dates the end itself, by when it is closed."""
    sign = f" Its last sign was at {last_sign.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC." if last_sign else ""
    return Crashed(message=f"{_LOST}{sign}")


async def last_sign(client: PrefectClient, flow_run_id: UUID) -> datetime | None:
    """When the process of a flow run last sent an event; None where none is known any more."""
    wanted = {
        "any_resource": {"id": [f"prefect.flow-run.{flow_run_id}"]},
        "event": {"prefix": list(_SIGNS)},
        "order": "DESC",
    }
    try:
        found = await client.request("POST", "/events/filter", json={"filter": wanted, "limit": 1})
        events = found.json()["events"]
    except Exception as error:
        # Only a message has it.
        logger.info("The last sign of a lost run is not known: %s", type(error).__name__)
        return None
    return datetime.fromisoformat(events[0]["occurred"]) if events else None


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
    client: PrefectClient,
    flow_run_id: UUID,
    *,
    expected: int = 0,
    patience: timedelta = timedelta(seconds=20),
) -> TaskRunCounts:
    """Wait until `expected` task runs, or more, are recorded inside the flow run, and none is open.

    It waits as long as the record changes, as a long queue may take its time, and for `patience` after that; returns
    how far it came. Raises what Prefect's client raises when the server does not answer. Requests that time out, as
    when the server is busy with its database, are repeated before TimeoutError is raised.
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
        complete = not counts.open and counts.recorded >= expected
        if complete or time.monotonic() - changed > patience.total_seconds():
            return counts
        await asyncio.sleep(_POLL_SECONDS)


async def complete_record(
    client: PrefectClient, flow_run_id: UUID, ends: KnownEnds, *, patience: timedelta
) -> int:
    """Wait for the record of a flow run, and record again what the server has lost; returns what is missing still.

    Call it when everything was sent. `patience`: how long nothing may change before the rest counts as lost.
    """
    await _drop_never_begun(client, flow_run_id)
    expected, missing = len(ends.task_runs), 0
    for number in range(_MOST_ROUNDS + 1):
        counts = await await_record(client, flow_run_id, expected=expected, patience=patience)
        if not counts.open and counts.recorded >= expected:
            return 0
        if number < _MOST_ROUNDS:
            missing = await _record_missing(client, flow_run_id, ends.task_runs)
        if not missing:
            break
    return missing


async def _record_missing(
    client: PrefectClient, flow_run_id: UUID, task_runs: Mapping[UUID, TaskRunRecord]
) -> int:
    """Send the events of task runs that are not recorded, or not as ended; returns how many."""
    nested = await _nested(client, flow_run_id)
    read = partial(
        client.read_task_runs,
        flow_run_filter=FlowRunFilter.model_validate(_one_of([flow_run_id, *(run.id for run in nested)])),
        sort=TaskRunSort.ID_DESC,
    )
    recorded = {run.id: run for run in await _every_page(read)}
    missing = [
        record
        for record in task_runs.values()
        if (found := recorded.get(record.id)) is None or found.state is None or not found.state.is_final()
    ]
    flow_runs = {run.name: run.id for run in nested}
    async with EventsBatch(client) as batch:
        for record in missing:
            inside = flow_runs.get(record.flow_run_name or "", flow_run_id)
            await batch.emit(ending_event(record, inside))
    return len(missing)


async def _drop_never_begun(client: PrefectClient, flow_run_id: UUID) -> None:
    """Delete nested flow runs that were made, and never begun.

    Prefect's client makes a second one where the answer about the first was lost: the first has nothing in it, not
    even its name. Those of deployments are left alone: a worker may begin them.
    """
    for run in await _nested(client, flow_run_id):
        is_begun = run.start_time is not None or run.deployment_id is not None
        if not is_begun and run.state is not None and run.state.type is StateType.PENDING:
            with suppress(ObjectNotFound):
                await client.delete_flow_run(run.id)


async def correct_flow_runs(client: PrefectClient, flow_run_id: UUID, ends: KnownEnds) -> None:
    """Correct the states of the flow run, and of those nested in it.

    If the server was unavailable as a flow run ended, its record has Prefect's error instead of the outcome.
    """
    nested = [(run, ends.inside.get(run.name)) for run in await _nested(client, flow_run_id)]
    for run, end in [*nested, (await client.read_flow_run(flow_run_id), ends.top)]:
        if end is not None and (
            run.state is None or (run.state.type, run.state.name) != (end.type, end.name)
        ):
            await client.set_flow_run_state(run.id, end, force=True)


async def close_inside(client: PrefectClient, flow_run_id: UUID, ends: KnownEnds | None = None) -> int:
    """Set what is open inside a flow run whose process is gone to the final state in `ends`, else to lost.

    Returns the number of task runs that `ends` does not have.
    """
    ends, nested, unknown = ends or KnownEnds(), await _nested(client, flow_run_id), 0
    read = partial(
        client.read_task_runs,
        flow_run_filter=FlowRunFilter.model_validate(_one_of([flow_run_id, *(run.id for run in nested)])),
        task_run_filter=TaskRunFilter.model_validate({"state": {"type": {"any_": OPEN_STATES}}}),
        sort=TaskRunSort.ID_DESC,
    )
    for task_run in await _every_page(read):
        record = ends.task_runs.get(task_run.id)
        # Until its first events are recorded, its name is that of its task and a number.
        names = (task_run.name, task_run.name.rpartition("-")[0])
        end = record.end if record is not None else next(filter(None, map(ends.inside.get, names)), None)
        unknown += end is None
        await client.set_task_run_state(task_run.id, end or lost(), force=True)
    for run in nested:
        if run.state is None or run.state.type in _DRIVEN_STATES:
            await client.set_flow_run_state(run.id, ends.inside.get(run.name) or lost(), force=True)
    return unknown


async def close_abandoned_runs(client: PrefectClient) -> int:
    """Close every flow run that should have a process, with what is inside; returns how many there were.

    Only for our own server when it has just been started and has no other users: the processes are dead.
    """
    abandoned = await _flow_runs(client, {"state": {"type": {"any_": list(_DRIVEN_STATES)}}})
    for run in abandoned:
        sign = await last_sign(client, run.id)
        await close_inside(client, run.id)
        await client.set_flow_run_state(run.id, lost(sign), force=True)
    return len(abandoned)


async def close_ended_runs(client: PrefectClient, closed: set[UUID]) -> int:
    """Close what is open inside runs of our deployments that crashed or were cancelled; returns how many there were.

    For a server of any lifetime: an automation closes a flow run whose process is gone, and nothing inside it.
    `closed` has the states that were seen to before, and gets those of these runs.
    """
    now = datetime.now(UTC)
    wanted = {
        "tags": {"any_": [OUR_TAG]},
        "parent_task_run_id": {"is_null_": True},
        "state": {"type": {"any_": [StateType.CRASHED, StateType.CANCELLED]}},
        "end_time": {"after_": (now - _LOOK_BACK).isoformat()},
    }
    count = 0
    for run in await _flow_runs(client, wanted):
        # The last events of a process that has just ended may still be on their way.
        if run.state is None or run.state.id in closed or now - run.state.timestamp < _GRACE:
            continue
        await close_inside(client, run.id)
        closed.add(run.state.id)
        count += 1
    return count


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
        recorded=await count({"name": {"like_": " · "}, "subflow_runs": {"exists_": False}}),
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
