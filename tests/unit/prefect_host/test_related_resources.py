"""What an event of a task run is related to: what Prefect itself finds, found once for all of a flow run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client import orchestration
from prefect.client.schemas.objects import Flow, FlowRun, TaskRun
from prefect.context import FlowRunContext, TaskRunContext
from prefect.events import Event, RelatedResource
from prefect.events.clients import AssertingEventsClient, PrefectEventsClient
from prefect.events.worker import EventsWorker

from prefect_host.internals import BatchSender

#: Made without their other fields, which are not looked at.
FLOW_RUN_CONTEXT: Any = FlowRunContext
TASK_RUN_CONTEXT: Any = TaskRunContext
FLOW = Flow(id=uuid4(), name="bulk-import", labels={})
FLOW_RUNS = [FlowRun(id=uuid4(), flow_id=FLOW.id, name=f"rows {n}", tags=["spring", f"s{n}"]) for n in (1, 2)]
TASK_RUNS = [
    TaskRun(id=uuid4(), flow_run_id=FLOW_RUNS[0].id, task_key="pattern", dynamic_key=str(n), tags=tags)
    for n, tags in enumerate(([], [], ["herons"]))
]


class KnownFlows:
    """What Prefect asks its server for."""

    async def __aenter__(self) -> KnownFlows:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to close."""

    async def read_flow(self, flow_id: UUID) -> Flow:
        return FLOW

    async def read_flow_run(self, flow_run_id: UUID) -> FlowRun:
        return next(flow_run for flow_run in FLOW_RUNS if flow_run.id == flow_run_id)


def sender(kind: type[EventsWorker]) -> Any:
    made: Any = kind(PrefectEventsClient, ())  # type: ignore[arg-type]
    made._orchestration_client = KnownFlows()
    return made


def event_of(task_run: TaskRun | None, *, names_its_flow_run: bool) -> Event:
    resource = f"prefect.task-run.{task_run.id}" if task_run else "patternmill.run"
    flow_run = {
        "prefect.resource.id": f"prefect.flow-run.{FLOW_RUNS[0].id}",
        "prefect.resource.role": "flow-run",
    }
    related = [RelatedResource(flow_run)] if names_its_flow_run else []
    return Event(event="running", resource={"prefect.resource.id": resource}, related=related)


def related_of(
    worker: Any, about: TaskRun | None, inside: tuple[FlowRun | None, TaskRun | None], *, names: bool
) -> list[dict[str, str]]:
    flow_run, task_run = inside
    event = event_of(about, names_its_flow_run=names)
    with ExitStack() as contexts:
        if flow_run is not None:
            contexts.enter_context(FLOW_RUN_CONTEXT.model_construct(flow_run=flow_run))
        if task_run is not None:
            contexts.enter_context(TASK_RUN_CONTEXT.model_construct(task_run=task_run))
        asyncio.run(worker.attach_related_resources_from_context(event))
    return [related.root for related in event.related]


def cases() -> Iterator[tuple[TaskRun | None, tuple[FlowRun | None, TaskRun | None], bool]]:
    for about in (None, *TASK_RUNS):
        for flow_run in (None, *FLOW_RUNS):
            for task_run in (None, *TASK_RUNS):
                yield about, (flow_run, task_run), True
                yield about, (flow_run, task_run), False


def test_events_are_related_to_what_prefect_relates_them_to() -> None:
    """Whatever the event is about, and wherever it is emitted; also when the same was asked before."""
    ours, theirs = sender(BatchSender), sender(EventsWorker)
    for _ in range(2):
        for about, inside, names in cases():
            expected = related_of(theirs, about, inside, names=names)
            assert related_of(ours, about, inside, names=names) == expected


def test_it_is_found_once_for_the_task_runs_of_a_flow_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    async def find(self: EventsWorker, event: Event) -> None:
        found.append(event.resource.id)

    monkeypatch.setattr(EventsWorker, "attach_related_resources_from_context", find)
    ours = sender(BatchSender)
    for task_run in TASK_RUNS[:2] * 3:
        related_of(ours, task_run, (FLOW_RUNS[0], None), names=True)
    assert len(found) == 1
    related_of(ours, TASK_RUNS[0], (FLOW_RUNS[1], None), names=True)
    assert len(found) == 2


def test_sender_that_a_task_run_started_relates_nothing_else_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread has the context of whoever emitted first; an event that was emitted elsewhere has less of one."""
    monkeypatch.setattr(orchestration, "get_client", KnownFlows)
    event = event_of(TASK_RUNS[1], names_its_flow_run=True)
    with FLOW_RUN_CONTEXT.model_construct(flow_run=FLOW_RUNS[0]):
        with TASK_RUN_CONTEXT.model_construct(task_run=TASK_RUNS[0]):
            worker = BatchSender.instance(AssertingEventsClient)
        worker.send(event)
    worker.drain()
    assert [related.role for related in event.related] == ["flow-run", "flow"]
