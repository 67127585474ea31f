"""Sends Prefect's events in batches, at a rate that the server can record."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, Self, cast
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.events import Event
from prefect.exceptions import PrefectHTTPStatusError

logger = logging.getLogger(__name__)

#: Events a second at most: a server that records them at once still has time for other calls.
RATE = 500.0
#: So many accepted events may be unrecorded: the server keeps 10,000, of all its clients, and drops more. Within these
#: bounds, what it records in some seconds.
LEAST_UNRECORDED, MOST_UNRECORDED = 300, 3000
QUICK_SECONDS, SLOW_SECONDS = 2.0, 5.0
#: A server that has recorded nothing for so long has lost what it accepted.
LOST_SECONDS = 15.0
#: While more than so many wait to be sent, task runs are not shown as they run, but recorded later.
MOST_PENDING = 2000
#: In one request: some two hundred events, and well below the limits of proxies.
MOST_CHARACTERS = 400_000
#: After a request that was not full, unless sending ends: one costs as much as several events.
GATHER_SECONDS = 0.5
#: After a request of which the server accepted nothing.
RETRY_SECONDS = 1.0
#: How long sending goes on without success after the last event was emitted.
CLOSING_SECONDS = 30.0
#: Between two questions whether an event is recorded, and how long the answer may take.
RECORD_SECONDS = 0.25
ANSWER_SECONDS = 5.0
#: How the resource of an event of a task run begins.
TASK_RUN = "prefect.task-run."
#: Between two checks of what another thread or event loop changes.
POLL_SECONDS = 0.1
#: Status codes for a fault of the request itself.
REFUSED = (400, 413, 422)


@dataclass(frozen=True)
class _Pending:
    """An event to send."""

    text: str
    #: None for an event of anything else.
    task_run_id: UUID | None
    occurred: datetime
    #: The event that the server has to see before.
    follows: UUID | None


@dataclass(frozen=True)
class _Sent:
    """An event of a task run that the server accepted, and how many events it had accepted by then."""

    task_run_id: UUID
    occurred: datetime
    accepted: int


class EventsBatch:
    """Posts events to a Prefect server in order, many at a time, one request after the other.

    What the server has not accepted is kept and posted again, however long it is unavailable; it recognises
    duplicates by their ID. A server accepts faster than it records, and drops what its queue has no room for. So
    it is asked now and then for a task run that was sent: at most MOST_UNRECORDED events are ahead of it.
    """

    #: How many events servers accepted from this process: it grows as long as sending proceeds.
    accepted: ClassVar[int] = 0
    #: Those of this process that still send, each on a thread of its own.
    _sending: ClassVar[set[EventsBatch]] = set()

    def __init__(self, client: PrefectClient) -> None:
        self._client = client
        #: By task run, else by event: the order is that of the latest events.
        self._pending: dict[UUID, _Pending] = {}
        #: What is posted now.
        self._posted: list[_Pending] = []
        self._changed = asyncio.Event()
        self._closing = asyncio.Event()
        #: On the monotonic clock, once closed.
        self._give_up_at = 0.0
        self._accepted = self._recorded = 0
        self._room = LEAST_UNRECORDED
        self._last: _Sent | None = None

    async def __aenter__(self) -> Self:
        EventsBatch._sending.add(self)
        self._sender = asyncio.create_task(self._send_all())
        return self

    async def __aexit__(self, *error: object) -> None:
        """Send what is left."""
        self._give_up_at = time.monotonic() + CLOSING_SECONDS
        self._closing.set()
        self._changed.set()
        try:
            await self._sender
        finally:
            EventsBatch._sending.discard(self)

    async def emit(self, event: Event) -> None:
        """Send an event with the next request. It replaces one of the same task run that was not sent yet."""
        task_run = event.resource.id.partition(TASK_RUN)[2]
        about = UUID(task_run) if task_run else None
        replaced = self._pending.pop(about, None) if about else None
        if replaced is not None:
            # Else the server would wait for it.
            event.follows = replaced.follows
        self._pending[about or event.id] = _Pending(
            event.model_dump_json(), about, event.occurred, event.follows
        )
        self._changed.set()

    @classmethod
    def waiting(cls) -> int:
        """How many events of this process wait to be sent."""
        return sum(batch._waiting for batch in tuple(cls._sending))

    @classmethod
    def is_pressed(cls) -> bool:
        """Whether too many events wait to be sent."""
        return cls.waiting() > MOST_PENDING

    async def _send_all(self) -> None:
        is_full = False
        while self._is_sending():
            await self._changed.wait()
            self._changed.clear()
            while (self._posted or self._pending) and self._is_sending():
                await self._await_room()
                if not self._posted:
                    self._posted = self._take()
                    is_full = bool(self._pending)
                done = await self._send(self._posted)
                del self._posted[:done]
                await asyncio.sleep(done / RATE if done else RETRY_SECONDS)
                if not is_full:
                    await self._gather()
        if self._waiting:
            logger.warning("The Prefect server did not accept %d events.", self._waiting)

    async def _gather(self) -> None:
        """Let events come together, unless sending ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_SECONDS):
                await self._closing.wait()

    @property
    def _waiting(self) -> int:
        return len(self._posted) + len(self._pending)

    async def _await_room(self) -> None:
        """Wait until the server has recorded enough of what it accepted; it has more room when that was quick."""
        asked_for, since = self._last, time.monotonic()
        while asked_for is not None and self._unrecorded > self._room / 2:
            took = time.monotonic() - since
            if await self._is_recorded(asked_for):
                self._recorded, asked_for, since = asked_for.accepted, self._last, time.monotonic()
                if took < QUICK_SECONDS:
                    self._room = min(2 * self._room, MOST_UNRECORDED)
                elif took > SLOW_SECONDS:
                    self._room = max(self._room // 2, LEAST_UNRECORDED)
            elif self._unrecorded < self._room:
                return
            elif took > LOST_SECONDS:
                self._recorded, self._room = self._accepted, LEAST_UNRECORDED
            else:
                await asyncio.sleep(RECORD_SECONDS)

    @property
    def _unrecorded(self) -> int:
        return self._accepted - self._recorded

    async def _is_recorded(self, sent: _Sent) -> bool:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                task_run = await self._client.read_task_run(sent.task_run_id)
        except Exception:
            return False
        return task_run.state is not None and task_run.state.timestamp >= sent.occurred

    def _is_sending(self) -> bool:
        left = bool(self._posted or self._pending)
        return not self._closing.is_set() or (left and time.monotonic() < self._give_up_at)

    def _take(self) -> list[_Pending]:
        """As many pending events as fit into one request, and at least one."""
        taken: list[_Pending] = []
        size = 0
        for event in self._pending.values():
            size += len(event.text)
            if taken and size > MOST_CHARACTERS:
                break
            taken.append(event)
        for key in tuple(islice(self._pending, len(taken))):
            del self._pending[key]
        return taken

    async def _send(self, events: list[_Pending]) -> int:
        """Post events; how many of the first were dealt with. One that is refused by itself is left out."""
        try:
            await self._client.request(
                "POST",
                cast(Any, "/events"),
                content=f"[{','.join(event.text for event in events)}]".encode(),
                headers={"Content-Type": "application/json"},
            )
        except PrefectHTTPStatusError as error:
            if error.response.status_code not in REFUSED:
                return 0
            if len(events) > 1:
                return await self._send(events[: len(events) // 2])
            logger.warning("The Prefect server refused an event: %.300s", error.response.text)
        except Exception:
            logger.debug("The Prefect server accepted no events.", exc_info=True)
            return 0
        else:
            self._count(events)
        return len(events)

    def _count(self, events: list[_Pending]) -> None:
        EventsBatch.accepted += len(events)
        self._accepted += len(events)
        self._give_up_at = time.monotonic() + CLOSING_SECONDS
        for event in reversed(events):
            if event.task_run_id is not None:
                self._last = _Sent(event.task_run_id, event.occurred, self._accepted)
                return
