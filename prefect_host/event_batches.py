"""Sends Prefect's events in batches, at a rate that the server can record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from itertools import islice
from typing import Any, ClassVar, Self, cast

from prefect.client.orchestration import PrefectClient
from prefect.events import Event
from prefect.exceptions import PrefectHTTPStatusError

logger = logging.getLogger(__name__)

#: Events a second: what a server with one core records, with time left for other calls.
RATE = 300.0
#: While more than so many wait to be sent, no new task run is begun; unless none was accepted for so many seconds.
MOST_PENDING = 2000
BACKPRESSURE_SECONDS = 5.0
#: In one request: some two hundred events, and well below the limits of proxies.
MOST_CHARACTERS = 400_000
#: After a request of which the server accepted nothing.
RETRY_SECONDS = 1.0
#: How long sending goes on without success after the last event was emitted.
CLOSING_SECONDS = 30.0
#: Between two checks of what another thread or event loop changes.
POLL_SECONDS = 0.1
#: Status codes for a fault of the request itself.
REFUSED = (400, 413, 422)


class EventsBatch:
    """Posts events to a Prefect server in order, many at a time, one request after the other.

    What the server has not accepted is kept and posted again, however long it is unavailable; it recognises
    duplicates by their ID. An overloaded server stops answering and drops what its queue has no room for: hence the
    rate, and `Backpressure` on new task runs.
    """

    #: How many events servers accepted from this process: it grows as long as sending proceeds.
    accepted: ClassVar[int] = 0
    #: Too many events are pending until this moment of the monotonic clock; it passes when the server accepts none.
    pressure_until: ClassVar[float] = 0.0

    def __init__(self, client: PrefectClient) -> None:
        self._client = client
        self._pending: deque[str] = deque()
        self._changed = asyncio.Event()
        self._closed = False
        #: On the monotonic clock, once closed.
        self._give_up_at = 0.0

    async def __aenter__(self) -> Self:
        self._sender = asyncio.create_task(self._send_all())
        return self

    async def __aexit__(self, *error: object) -> None:
        """Send what is left."""
        self._closed, self._give_up_at = True, time.monotonic() + CLOSING_SECONDS
        self._changed.set()
        await self._sender

    async def emit(self, event: Event) -> None:
        """Send an event with the next request."""
        self._pending.append(event.model_dump_json())
        self._changed.set()

    async def _send_all(self) -> None:
        while self._is_sending():
            await self._changed.wait()
            self._changed.clear()
            while self._pending and self._is_sending():
                done = await self._send(self._first())
                for _ in range(done):
                    self._pending.popleft()
                too_many = bool(done) and not self._closed and len(self._pending) > MOST_PENDING
                EventsBatch.pressure_until = time.monotonic() + BACKPRESSURE_SECONDS if too_many else 0.0
                await asyncio.sleep(done / RATE if done else RETRY_SECONDS)
        if self._pending:
            logger.warning("The Prefect server did not accept %d events.", len(self._pending))

    def _is_sending(self) -> bool:
        return not self._closed or (bool(self._pending) and time.monotonic() < self._give_up_at)

    def _first(self) -> list[str]:
        """As many pending events as fit into one request, and at least one."""
        count = size = 0
        for event in self._pending:
            size += len(event)
            if count and size > MOST_CHARACTERS:
                break
            count += 1
        return list(islice(self._pending, count))

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
            logger.debug("The Prefect server accepted no events.", exc_info=True)
            return 0
        else:
            EventsBatch.accepted += len(events)
            self._give_up_at = time.monotonic() + CLOSING_SECONDS
        return len(events)


class Backpressure:
    """Delays new task runs while too many events are pending. Create it on the event loop that begins them."""

    def __init__(self) -> None:
        self._polling = asyncio.Lock()

    async def wait(self) -> None:
        """Usually returns at once. One caller polls for all that wait."""
        if _is_pressed() or self._polling.locked():
            async with self._polling:
                while _is_pressed():  # noqa: ASYNC110 - it changes on another event loop
                    await asyncio.sleep(POLL_SECONDS)


def _is_pressed() -> bool:
    return time.monotonic() < EventsBatch.pressure_until
