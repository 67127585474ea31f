"""How events reach a Prefect server: in order, many at a time, and all of them, whatever the server does meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from aiohttp import web
from prefect.client.orchestration import get_client
from prefect.events import Event, utilities
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from prefect_host import event_batches
from prefect_host.event_batches import EventsBatch
from prefect_host.internals import BatchSender, batch_events
from prefect_host.record import deliver

Answer = Callable[[list[str]], int]


class Server:
    """Takes posted events, and answers as the test wants."""

    def __init__(self, answer: Answer, seconds: float = 0.0) -> None:
        self.answer, self.seconds = answer, seconds
        #: The names in each request, and those that were taken.
        self.requests: list[list[str]] = []
        self.taken: list[str] = []
        #: Whether it has a task run on record when it is asked for it.
        self.recorded = False

    async def take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/json"
        names = [event["event"] for event in json.loads(await request.read())]
        await asyncio.sleep(self.seconds)
        self.requests.append(names)
        status = self.answer(names)
        if status == 204:
            self.taken += names
        return web.Response(status=status)

    async def task_run(self, request: web.Request) -> web.Response:
        if not self.recorded:
            return web.Response(status=404)
        state = {"type": "COMPLETED", "name": "Completed", "timestamp": "2100-01-01T00:00:00Z"}
        found = {"id": request.match_info["task_run"], "task_key": "k", "dynamic_key": "0", "state": state}
        return web.json_response(found)


@asynccontextmanager
async def served(answer: Answer, seconds: float = 0.0) -> AsyncIterator[Server]:
    server, app = Server(answer, seconds), web.Application(client_max_size=2**24)
    app.router.add_post("/api/events", server.take)
    app.router.add_get("/api/task_runs/{task_run}", server.task_run)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    settings = {PREFECT_API_URL: f"http://{host}:{port}/api", PREFECT_CLIENT_MAX_RETRIES: 0}
    try:
        with temporary_settings(settings):
            yield server
    finally:
        await runner.cleanup()


def events(count: int, *, payload: str = "") -> list[Event]:
    resource = {"prefect.resource.id": "test"}
    return [Event(event=f"e{n}", resource=resource, payload={"text": payload}) for n in range(count)]


async def send(server_events: list[Event], *, pause: float = 0.0) -> None:
    async with get_client() as client, EventsBatch(client) as batch:
        for event in server_events:
            await batch.emit(event)
        await asyncio.sleep(pause)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_batches, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(event_batches, "RATE", 1e6)
    monkeypatch.setattr(event_batches, "CLOSING_SECONDS", 30.0)


def test_events_are_sent_in_batches_in_order() -> None:
    async def run() -> Server:
        async with served(lambda _: 204) as server:
            await send(events(500))
        return server

    server = asyncio.run(run())
    assert server.taken == [f"e{n}" for n in range(500)]
    assert len(server.requests) < 20


def test_large_events_are_split_over_requests() -> None:
    """A request stays below what proxies let through; an event that is larger by itself goes alone."""

    async def run() -> Server:
        async with served(lambda _: 204) as server:
            await send([*events(10, payload="x" * 60_000), *events(1, payload="x" * 300_000)])
        return server

    server = asyncio.run(run())
    assert len(server.taken) == 11
    assert max(map(len, server.requests)) == 6


@pytest.mark.parametrize("status", [500, 401])
def test_rejected_batch_is_sent_again(status: int) -> None:
    async def run() -> Server:
        answers = iter([status] * 3)
        async with served(lambda _: next(answers, 204)) as server:
            await send(events(40))
        return server

    server = asyncio.run(run())
    assert server.taken == [f"e{n}" for n in range(40)]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_only_the_refused_event_is_dropped(status: int) -> None:
    async def run() -> Server:
        async with served(lambda names: status if "e7" in names else 204) as server:
            await send(events(40))
        return server

    server = asyncio.run(run())
    assert server.taken == [f"e{n}" for n in range(40) if n != 7]


def test_wait_for_a_lost_server_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_batches, "CLOSING_SECONDS", 0.3)

    async def run() -> None:
        settings = {PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}
        with temporary_settings(settings):
            await asyncio.wait_for(send(events(3)), 10)

    asyncio.run(run())
    assert "did not accept 3 events" in caplog.text


def test_empty_sender_ends_at_once() -> None:
    async def run() -> None:
        async with served(lambda _: 204) as server:
            await asyncio.wait_for(send([]), 1)
            assert server.requests == []

    asyncio.run(run())


def test_prefect_emits_through_the_batching_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is requested; what is still queued at the end is sent before the end."""
    monkeypatch.setattr(utilities, "EventsWorker", utilities.EventsWorker)

    async def run() -> Server:
        async with served(lambda _: 204) as server:
            batch_events()
            batch_events()
            for number in range(100):
                utilities.emit_event(f"e{number}", {"prefect.resource.id": "test"})
            assert isinstance(utilities.EventsWorker.instance(), BatchSender)
            await asyncio.to_thread(BatchSender.drain_all, 10)
        return server

    server = asyncio.run(run())
    assert server.taken == [f"e{n}" for n in range(100)]
    assert len(server.requests) < 10


@pytest.mark.parametrize(("taking", "delivered"), [(True, True), (False, False)])
def test_sender_drains_while_the_server_accepts_events(
    taking: bool, delivered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: the timeout is for a server that accepts nothing more."""
    monkeypatch.setattr(utilities, "EventsWorker", utilities.EventsWorker)
    monkeypatch.setattr(event_batches, "MOST_CHARACTERS", 1)
    monkeypatch.setattr(event_batches, "CLOSING_SECONDS", 3.0)

    async def run() -> tuple[Server, bool]:
        async with served(lambda _: 204 if taking else 500, 0.2) as server:
            batch_events()
            for number in range(15):
                utilities.emit_event(f"e{number}", {"prefect.resource.id": "test"})
            return server, await asyncio.to_thread(deliver, timedelta(seconds=1))

    server, was_delivered = asyncio.run(run())
    assert was_delivered is delivered
    assert server.taken == ([f"e{n}" for n in range(15)] if taking else [])


def test_sending_keeps_to_the_servers_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_batches, "RATE", 100.0)
    monkeypatch.setattr(event_batches, "MOST_CHARACTERS", 1)

    async def run() -> float:
        async with served(lambda _: 204):
            began = asyncio.get_running_loop().time()
            await send(events(50))
            return asyncio.get_running_loop().time() - began

    assert asyncio.run(run()) >= 0.5


@pytest.mark.parametrize("taking", [True, False])
def test_too_many_pending_events_press(taking: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While they are too many, whether the server accepts them slowly or not at all."""
    monkeypatch.setattr(event_batches, "MOST_PENDING", 20)
    monkeypatch.setattr(event_batches, "RATE", 200.0)
    monkeypatch.setattr(event_batches, "MOST_CHARACTERS", 1)
    monkeypatch.setattr(event_batches, "CLOSING_SECONDS", 1.0)

    async def run() -> None:
        async with (
            served(lambda _: 204 if taking else 500) as server,
            get_client() as client,
            EventsBatch(client) as batch,
        ):
            for event in events(100):
                await batch.emit(event)
            while not EventsBatch.is_pressed():
                await asyncio.sleep(0.01)
            if taking:
                while EventsBatch.is_pressed():
                    await asyncio.sleep(0.01)
                assert len(server.taken) >= 75

    asyncio.run(asyncio.wait_for(run(), 60))
    assert not EventsBatch.is_pressed()


def test_batches_of_a_process_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends with nothing to send does not hide what another has."""
    monkeypatch.setattr(event_batches, "MOST_PENDING", 20)
    monkeypatch.setattr(event_batches, "CLOSING_SECONDS", 0.2)

    async def run() -> None:
        async with served(lambda _: 500), get_client() as client, EventsBatch(client) as batch:
            for event in events(30):
                await batch.emit(event)
            async with EventsBatch(client):
                pass
            assert EventsBatch.is_pressed()

    asyncio.run(asyncio.wait_for(run(), 60))


def task_run_event(number: int, state: str, follows: UUID | None = None) -> Event:
    resource = {"prefect.resource.id": f"prefect.task-run.{UUID(int=number)}"}
    return Event(event=f"{state}-{number}", resource=resource, follows=follows)


def test_latest_event_of_a_task_run_replaces_what_was_not_sent() -> None:
    """It follows what the replaced one followed: the server never waits for one that was left out."""

    async def run() -> Server:
        async with served(lambda _: 204) as server, get_client() as client, EventsBatch(client) as batch:
            first = task_run_event(1, "pending")
            second = task_run_event(1, "running", first.id)
            for event in (first, task_run_event(2, "pending"), second):
                await batch.emit(event)
            while not server.taken:
                await asyncio.sleep(0.01)
            last = task_run_event(1, "completed", second.id)
            await batch.emit(last)
            assert second.follows is None
            assert last.follows == second.id
        return server

    assert asyncio.run(run()).taken == ["pending-2", "running-1", "completed-1"]


def test_server_that_records_slowly_gets_no_more_than_it_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it has recorded what was sent; one that lost it gets the rest all the same."""
    monkeypatch.setattr(event_batches, "LEAST_UNRECORDED", 10)
    monkeypatch.setattr(event_batches, "MOST_CHARACTERS", 1)
    monkeypatch.setattr(event_batches, "RECORD_SECONDS", 0.01)
    monkeypatch.setattr(event_batches, "LOST_SECONDS", 1.0)

    async def run() -> tuple[list[str], list[str]]:
        async with served(lambda _: 204) as server, get_client() as client, EventsBatch(client) as batch:
            for number in range(30):
                await batch.emit(task_run_event(number, "e"))
            await asyncio.sleep(0.5)
            early = list(server.taken)
            server.recorded = True
            await asyncio.sleep(0.3)
            return early, list(server.taken)

    early, later = asyncio.run(asyncio.wait_for(run(), 20))
    assert len(early) == 10
    assert len(later) > 10
