"""The inspector: what is kept of requests and answers, how many, and without credentials."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from studio.inspector import Inspector, Recorder, note_caller, note_fault
from studio.store.exchange_table import Filter, KeptExchange

EVERYONE = Filter(("", "default", "shop"))


@pytest.fixture
def inspector(tmp_path: Path) -> Iterator[Inspector]:
    made = Inspector(tmp_path / "inspector.db")
    yield made
    made.close()


def ask(inspector: Inspector, path: str, body: bytes, answer: bytes = b"{}", fault: str = "") -> None:
    """One request to an application that reads it in two parts and answers in two."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        note_caller(scope, "shop", "ci")
        await receive()
        await receive()
        if fault:
            note_fault(scope, fault)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer[:3], "more_body": True})
        await send({"type": "http.response.body", "body": answer[3:]})

    parts = iter((body[:5], body[5:]))

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": next(parts), "more_body": True}

    async def send(message: object) -> None:
        pass

    scope = {"type": "http", "method": "POST", "path": path}
    asyncio.run(Recorder(app, inspector)(scope, receive, send))


def only(inspector: Inspector) -> KeptExchange:
    """The one exchange there is, whole."""
    [found] = inspector.page(EVERYONE, None, 10)
    kept = inspector.get(EVERYONE, found.seq)
    assert kept is not None
    return kept


def test_request_is_kept_with_its_answer(inspector: Inspector) -> None:
    body = json.dumps({"requestId": "r-1", "prompt": "ferns"}).encode()
    ask(inspector, "/v1/patterns/create", body, b'{"jobId":"job_1"}', "delay of 2 s, patterns/create no. 3")

    kept = only(inspector)
    assert (kept.operation, kept.request_id, kept.status) == ("patterns/create", "r-1", 200)
    assert (kept.account, kept.key_name) == ("shop", "ci")
    assert (kept.request, kept.answer) == (body.decode(), '{"jobId":"job_1"}')
    assert kept.fault == "delay of 2 s, patterns/create no. 3"


def test_request_without_an_answer_is_kept(inspector: Inspector) -> None:
    """As when a fault closes the connection."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        note_fault(scope, "reset")
        raise ConnectionResetError

    async def never(*message: object) -> dict[str, object]:
        raise AssertionError

    scope = {"type": "http", "method": "POST", "path": "/v1/jobs/get"}
    with pytest.raises(ConnectionResetError):
        asyncio.run(Recorder(app, inspector)(scope, never, never))
    kept = only(inspector)
    assert (kept.status, kept.fault, kept.account) == (0, "reset", "")


def test_pictures_and_console_are_left_out_and_forms_are_not_kept(inspector: Inspector) -> None:
    for path in ("/pictures/x.png", "/console/login", "/checkout/page/pay"):
        ask(inspector, path, b"token=secret-of-the-form")

    kept = only(inspector)
    assert (kept.operation, kept.request) == ("/checkout/page/pay", "")
