"""The guard before our own Prefect server: its own address, its own pages, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from prefect_host.guarded_server import Guard
from prefect_host.own_server import LOGIN_PATH

OWN = "127.0.0.1:4200"
PAGE = f"http://{OWN}"
Headers = Mapping[str, str] | Sequence[tuple[str, str]]


async def server(scope: Any, receive: Any, send: Any) -> None:
    """Stands for Prefect's: says that it was reached."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"reached"})


def asked(path: str, headers: Headers, kind: str = "http") -> list[Any]:
    """What is sent back."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    pairs = headers.items() if isinstance(headers, Mapping) else headers
    raw = [(name.encode(), value.encode()) for name, value in pairs]
    scope = {"type": kind, "method": "GET", "path": path, "headers": raw}
    asyncio.run(Guard(server, OWN)(scope, receive, send))
    return sent


@pytest.mark.parametrize("path", ["/api/flow_runs/filter", "/", "/ui-settings", LOGIN_PATH])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": OWN}, 200),
        ({"host": OWN, "origin": PAGE}, 200),
        ({"host": OWN, "origin": "http://127.0.0.1:9999"}, 403),
        ({"host": OWN, "origin": "http://localhost:4200"}, 403),
        ({"host": OWN, "origin": "https://127.0.0.1:4200"}, 403),
        ({"host": OWN, "origin": "null"}, 403),
        ({"host": "rebound.example:4200"}, 421),
        ({"host": "rebound.example:4200", "origin": "http://rebound.example:4200"}, 421),
        ({"host": "localhost:4200"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({}, 421),
    ],
)
def test_allowed_requests(path: str, headers: Mapping[str, str], status: int) -> None:
    """Its own address, and pages that the server itself has sent or none; on every path alike."""
    assert asked(path, headers)[0]["status"] == status


def test_two_host_headers_are_refused() -> None:
    """The server behind the guard might use the other one."""
    assert asked("/", [("host", OWN), ("host", "rebound.example")])[0]["status"] == 421


@pytest.mark.parametrize("headers", [{"host": OWN, "origin": "null"}, {"host": "rebound.example"}])
def test_websockets_are_refused_likewise(headers: Mapping[str, str]) -> None:
    """Before they are accepted: no preflight would keep a page from opening one."""
    assert [message["type"] for message in asked("/api/events/out", headers, "websocket")] == [
        "websocket.close"
    ]
    accepted = asked("/api/events/out", {"host": OWN}, "websocket")
    assert [message["type"] for message in accepted] == ["websocket.accept"]


def test_no_page_may_frame_what_is_served() -> None:
    """Neither the UI nor the page that logs in."""
    for path in ("/runs", LOGIN_PATH):
        headers = dict(asked(path, {"host": OWN})[0]["headers"])
        assert b"frame-ancestors 'none'" in headers[b"content-security-policy"]


def test_api_descriptions_are_not_served() -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert asked(path, {"host": OWN})[0]["status"] == 404
