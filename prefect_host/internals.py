"""Every use of Prefect's private names, each with its reason and the public API that is missing.

No other file uses or replaces a private name of Prefect. A release that moves one fails in
tests/unit/prefect_host/test_internals.py.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import random
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, cast

from prefect.client import base
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext, TaskRunContext
from prefect.events import Event, RelatedResource, utilities
from prefect.events.clients import PrefectEventsClient
from prefect.events.worker import EventsWorker
from prefect.input.run_input import keyset_from_base_key
from prefect.logging.handlers import APILogWorker
from prefect.settings import get_current_settings
from prefect.utilities import engine
from prefect.utilities.math import clamped_poisson_interval

from prefect_host.event_batches import POLL_SECONDS, TASK_RUN, EventsBatch

logger = logging.getLogger(__name__)

SignalHandler = Callable[[int, FrameType | None], None]

#: The name of Prefect's own handler of SIGTERM.
SIGTERM_HANDLER = "_prefect_sigterm_handler"
#: So many answers of what events are related to are kept: two or three a flow run.
_MOST_FOUND = 300
#: The beginning of Prefect's log entry for a task that returns a failed state.
RETURNED_STATE_LOG = "Task run failed with state:"


def batch_events() -> None:
    """Have Prefect emit this process's events through `BatchSender` from now on.

    Why: Prefect's sender has a thread wait for each event, and sends each by itself over a websocket: together more
    than half of what a task run costs. Missing: a setting for it. `EventsWorker.set_client_override` would do for the
    sending; Prefect 3.9 fetches without a thread, and this can go with 3.8.
    """
    setattr(utilities, EventsWorker.__name__, BatchSender)


def emit(event: Event) -> None:
    """Queue an event for Prefect's sender, which adds what it is related to: the caller's flow run.

    Why: `emit_event` builds and validates it anew, and writes it as JSON for its size alone. Missing: a public call
    that takes an event. Like that, it raises nothing.
    """
    try:
        getattr(utilities, EventsWorker.__name__).instance().send(event)
    except Exception as error:
        logger.info("An event was lost (%s)", type(error).__name__)


class BatchSender(EventsWorker):
    """Prefect's sender of events, which polls for them, and sends them to a server in batches.

    Events to Prefect Cloud are sent as Prefect does.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._queue_get_thread = cast(Any, _PollingFetcher(self._queue))
        #: What events of task runs were related to, by what that depends on.
        self._found: dict[Hashable, list[RelatedResource]] = {}

    async def attach_related_resources_from_context(self, event: Event) -> None:
        """As Prefect does; once for all events of task runs in a flow run, since finding it costs more than sending."""
        depends_on = _what_related_depends_on(event)
        known = self._found.get(depends_on)
        if known is not None:
            event.related += known
            return
        before = len(event.related)
        await super().attach_related_resources_from_context(event)
        if depends_on is not None:
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[depends_on] = event.related[before:]

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        # The thread has the context of whoever emitted first: events from elsewhere would be related to its runs.
        inherited: tuple[ContextVar[Any], ...] = FlowRunContext.__var__, TaskRunContext.__var__
        for variable in inherited:
            variable.set(None)
        if self.client_type is not PrefectEventsClient:
            async with super()._lifespan():
                yield
            return
        async with get_client() as client, EventsBatch(client) as batch:
            self._client, self._orchestration_client = cast(Any, batch), client
            yield


def _what_related_depends_on(event: Event) -> Hashable:
    """What decides how Prefect relates an event to its surroundings; None for events other than a task run's own."""
    flow_run, inside = getattr(FlowRunContext.get(), "flow_run", None), TaskRunContext.get()
    if flow_run is None or not event.resource.id.startswith(TASK_RUN):
        return None
    if inside is not None and event.resource.id != f"{TASK_RUN}{inside.task_run.id}":
        return None
    tags = frozenset(inside.task_run.tags) if inside is not None else frozenset[str]()
    return flow_run.id, tags, tuple(related.id for related in event.related)


class _PollingFetcher:
    """Replaces the sender's thread: polling the queue costs less than a wake-up for each event."""

    def __init__(self, events: queue.Queue[Any]) -> None:
        self._events = events

    def start(self) -> None:
        """Nothing to do, here and in `shutdown`."""

    shutdown = start

    def submit(self, call: object) -> _PollingFetcher:
        """Only fetching the next event is ever submitted."""
        return self

    async def aresult(self) -> Any:
        """The next event; None after the last."""
        while True:
            try:
                return self._events.get_nowait()
            except queue.Empty:
                await asyncio.sleep(POLL_SECONDS)


def drain_senders() -> set[Future[bool]]:
    """Have Prefect's senders of events and logs send what they have; one future for each that is not done.

    Why: a process that ends at once loses what was not sent, and one that ends as usual waits for minutes for a server
    that is gone. Missing: a public call with a time limit. Do not call it on an event loop.
    """
    left: set[Future[bool]] = set()
    for sender in (EventsWorker, APILogWorker):
        waited = sender.drain_all(timeout=0)
        assert isinstance(waited, tuple), "not to be called on an event loop"
        left |= waited[1]
    return left


#: Of a request: with the pauses of `retry_soon`, as long as a server takes to restart.
RETRIES = 15
_MOST_PAUSE_SECONDS = 1.0
_usual_retries: list[int] = []


def set_client_retries(retries: int | None) -> None:
    """Set how often Prefect's clients of this process retry, also in calls under way; None: as before.

    Why: a run must not wait for a server that is gone. Missing: `temporary_settings` does not reach other threads and
    tasks.
    """
    client = get_current_settings().client
    if not _usual_retries:
        _usual_retries.append(client.max_retries)
    client.max_retries = _usual_retries[0] if retries is None else retries


def retry_soon() -> None:
    """Have Prefect's clients of this process retry after a second at most, and more often.

    Why: SQLite's write lock is held for milliseconds, and a server refuses at once what meets it (503); a client
    that pauses for 2, 4, 8 and 16 seconds then waits for an idle server, and gives up. Missing: a setting;
    `Retry-After` would do, which the server does not send.
    """
    setattr(base, clamped_poisson_interval.__name__, _pause)
    set_client_retries(RETRIES)
    _usual_retries[:] = [RETRIES]


def _pause(exponential: float, _: float = 0.0) -> float:
    """Seconds, with jitter; `exponential` is Prefect's own pause."""
    return random.uniform(0.5, 1.0) * min(exponential / 10, _MOST_PAUSE_SECONDS)  # noqa: S311


@contextmanager
def sigterm_handler_kept(handler: SignalHandler) -> Iterator[None]:
    """Have Prefect use `handler` as its own handler of SIGTERM.

    Why: each nested flow run would restore Prefect's handler, which kills the run instead of stopping it.
    Missing: an option for a flow to leave signals in the main thread alone.
    """
    before = getattr(engine, SIGTERM_HANDLER, None)
    setattr(engine, SIGTERM_HANDLER, handler)
    try:
        yield
    finally:
        setattr(engine, SIGTERM_HANDLER, before)


def response_key(question: str | None) -> str:
    """The key of the form's answer for a flow run that was suspended with the key `question`.

    Why: a flow run begins again from the top, and reads the answer before it would suspend. Missing: only the call
    that suspends knows the key.
    """
    return keyset_from_base_key(f"suspended-{question}")["response"]


def is_for_people(record: logging.LogRecord) -> bool:
    """Whether a log entry of a task run is for people.

    Why: Prefect logs a returned state as Python would write it, and then its message again. Missing: a setting.
    """
    return not str(record.msg).startswith(RETURNED_STATE_LOG)
