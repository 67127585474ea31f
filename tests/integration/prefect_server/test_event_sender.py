"""Prefect's event client, against a real socket: what it offers when it connects."""

from __future__ import annotations

import asyncio

import pytest
from prefect.events import clients
from websockets.asyncio.server import ServerConnection, serve

from tasks.event_sender import send_uncompressed


@pytest.mark.parametrize("asked", [False, True])
def test_events_are_sent_uncompressed_once_that_was_asked(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect's client offers compression of its own accord; afterwards it does not, however often it was asked."""
    monkeypatch.setattr(clients, "websocket_connect", clients.websocket_connect)
    for _ in range(2 if asked else 0):
        send_uncompressed()
    assert (asyncio.run(offered()) is None) is asked


async def offered() -> str | None:
    """The extensions that a client made now offers to its server."""
    offers: list[str | None] = []

    async def hear(connection: ServerConnection) -> None:
        assert connection.request is not None
        offers.append(connection.request.headers.get("Sec-WebSocket-Extensions"))
        await connection.wait_closed()

    async with serve(hear, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = clients.PrefectEventsClient(api_url=f"http://127.0.0.1:{port}/api")
        async with client._connect:
            pass
    return offers[0]
