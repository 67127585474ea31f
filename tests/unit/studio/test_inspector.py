"""The inspector: what is kept of requests and answers, how many, and without credentials."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from studio.inspector import Inspector, Recorder, note_caller, note_fault
from studio.redaction import may_hold_secrets, redact_text
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


def test_filters(inspector: Inspector) -> None:
    for path, fault in (("/v1/jobs/get", ""), ("/v1/jobs/list", "x"), ("/v1/jobs/get", "y")):
        ask(inspector, path, b'{"requestId": "r"}', fault=fault)

    def found(**which: object) -> list[str]:
        page = inspector.page(Filter(("shop",), **which), None, 10)  # type: ignore[arg-type]
        return [f"{one.operation} {one.fault}".strip() for one in page]

    assert found() == ["jobs/get y", "jobs/list x", "jobs/get"]
    assert found(operation="jobs/get", only_faults=True) == ["jobs/get y"]
    assert found(status="2", request_id="r") == found()
    assert found(status="4") == found(request_id="s") == []
    assert inspector.page(Filter(("default",)), None, 10) == []


def test_pictures_and_console_are_left_out_and_forms_are_not_kept(inspector: Inspector) -> None:
    for path in ("/pictures/x.png", "/console/login", "/checkout/page/pay"):
        ask(inspector, path, b"token=secret-of-the-form")

    kept = only(inspector)
    assert (kept.operation, kept.request) == ("/checkout/page/pay", "")


PIECES = (
    "Authorisation",
    "cookie",
    "pwd",
    "API key",
    "passwd",
    "bearer ",
    "sk_",
    "eyJ",
    "x" * 16,
    ".",
    ": ",
    "=",
)


@given(st.lists(st.sampled_from((*PIECES, '"', "/a?", "http://a:b@c", "signature")) | st.text(max_size=5)))
def test_every_text_with_secrets_is_recognised(parts: list[str]) -> None:
    """The quick look never lets pass what the thorough one would change."""
    text = "".join(parts)
    assert redact_text(text) == text or may_hold_secrets(text)
