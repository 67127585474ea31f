"""Sends Prefect's events at less cost: many in one request, and taken from their queue without a thread's help."""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from types import TracebackType
from typing import Any, ClassVar, Self, cast

from prefect.client.orchestration import PrefectClient, get_client
from prefect.events import Event, utilities
from prefect.events.clients import PrefectEventsClient
from prefect.events.worker import EventsWorker
from prefect.exceptions import PrefectHTTPStatusError

logger = logging.getLogger(__name__)

#: Events a second that a server is sent: what one records with one core, and has time left for other calls.
RATE = 300.0
#: While more than so many wait to be sent, no new task run is begun; unless none was taken for so many seconds.
CROWDED = 2000
HELD_UP = 5.0
#: Characters in one request: some two hundred events, and well below what proxies let through.
MOST_CHARACTERS = 400_000
#: Seconds until the server is asked again after it took nothing.
AGAIN = 1.0
#: Seconds for which a server that takes nothing more is asked still, once there will be no more events.
LAST_TRIES = 30.0
#: Seconds between two looks into the queue while it is empty.
LOOK_AGAIN = 0.1
#: Answers that say that the request itself is at fault.
REFUSED = (400, 413, 422)


def send_cheaply() -> None:
    """Let Prefect emit the events of this process through `BatchSender` from now on.

    Prefect's own sender has a thread wait for each event, and sends each by itself over a websocket: together
    more than half of what a task run costs. It has no setting for it, so the name under which Prefect finds its
    sender is given to ours; a later release that has no such name is left alone.
    """
    if hasattr(utilities, "EventsWorker"):
        utilities.EventsWorker = BatchSender


class BatchSender(EventsWorker):
    """Prefect's sender of events, with another way to fetch them, and another client where a server takes them.

    Events to Prefect Cloud go as Prefect sends them.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._queue_get_thread = cast(Any, _Fetcher(self._queue))

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        if self.client_type is not PrefectEventsClient:
            async with super()._lifespan():
                yield
            return
        async with get_client() as client, EventsBatch(client) as batch:
            self._client, self._orchestration_client = cast(Any, batch), client
            yield


class EventsBatch:
    """Posts events to a Prefect server in their order, many at a time, one request after the other.

    What the server has not taken is kept and posted again, however long it is away; an event that it is sent
    twice it knows by its ID. A server that is sent more than it records answers nobody any more, and drops
    what its queue does not hold: so there is a rate, and who would begin more waits in a `Room`.
    """

    #: How many events servers took from this process: it grows as long as sending gets on.
    taken: ClassVar[int] = 0
    #: Until this moment of the monotonic clock too many wait; it passes when the server takes no more.
    crowded_until: ClassVar[float] = 0.0

    def __init__(self, client: PrefectClient) -> None:
        self._client = client
        self._waiting: deque[str] = deque()
        self._news = asyncio.Event()
        self._closed = False
        #: The moment after which it is no use, once closed.
        self._until = 0.0

    async def __aenter__(self) -> Self:
        self._sender = asyncio.create_task(self._send_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send what is left."""
        self._closed, self._until = True, time.monotonic() + LAST_TRIES
        self._news.set()
        await self._sender

    async def emit(self, event: Event) -> None:
        """Send an event with the next request."""
        self._waiting.append(event.model_dump_json())
        self._news.set()

    async def _send_all(self) -> None:
        while self._goes_on():
            await self._news.wait()
            self._news.clear()
            while self._waiting and self._goes_on():
                done = await self._send(self._first())
                for _ in range(done):
                    self._waiting.popleft()
                crowded = bool(done) and not self._closed and len(self._waiting) > CROWDED
                EventsBatch.crowded_until = time.monotonic() + HELD_UP if crowded else 0.0
                await asyncio.sleep(done / RATE if done else AGAIN)
        if self._waiting:
            logger.warning("The Prefect server did not take %d events.", len(self._waiting))

    def _goes_on(self) -> bool:
        return not self._closed or (bool(self._waiting) and time.monotonic() < self._until)

    def _first(self) -> list[str]:
        """As many of those that wait as go into one request, and at least one."""
        count = size = 0
        for event in self._waiting:
            size += len(event)
            if count and size > MOST_CHARACTERS:
                break
            count += 1
        return list(islice(self._waiting, count))

    async def _send(self, events: list[str]) -> int:
        """Post events; how many of the first were dealt with. One that is refused by itself is left out."""
        try:
            await self._client.request(
                "POST",
                cast(Any, "/events"),
                content=f"[{','.join(events)}]".encode(),
                headers={"Content-Type": "application/json"},
            )
        except PrefectHTTPStatusError as error:
            if error.response.status_code not in REFUSED:
                return 0
            if len(events) > 1:
                return await self._send(events[: len(events) // 2])
            logger.warning("The Prefect server refused an event: %.300s", error.response.text)
        except Exception:
            logger.debug("The Prefect server took no events.", exc_info=True)
            return 0
        else:
            EventsBatch.taken += len(events)
            self._until = time.monotonic() + LAST_TRIES
        return len(events)


class Room:
    """Lets new task runs wait while events are crowded; to be made on the event loop that begins them."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def wait(self) -> None:
        """Return at once as a rule. One looks for all who wait."""
        if _crowded() or self._turn.locked():
            async with self._turn:
                while _crowded():  # noqa: ASYNC110 - it changes on another event loop
                    await asyncio.sleep(LOOK_AGAIN)


def _crowded() -> bool:
    return time.monotonic() < EventsBatch.crowded_until


class _Fetcher:
    """Stands where Prefect's sender has its thread: to look into the queue now and then costs less than to be woken."""

    def __init__(self, events: queue.Queue[Any]) -> None:
        self._events = events

    def start(self) -> None:
        """There is nothing to start, and nothing to shut down."""

    shutdown = start

    def submit(self, call: object) -> _Fetcher:
        """The only call that is ever submitted fetches the next event."""
        return self

    async def aresult(self) -> Any:
        """The next event; None when there will be no more."""
        while True:
            try:
                return self._events.get_nowait()
            except queue.Empty:
                await asyncio.sleep(LOOK_AGAIN)
