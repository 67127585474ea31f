"""The client against real sockets, one fault at a time."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import SecretStr

from patternmill.errors import LeaseLost
from patternmill.service.client import ANSWER_CAP, StudioClient
from patternmill.service.outcomes import Answer, Trouble
from patternmill.service.resend import CreateRequest
from patternmill.service.studio_api import StudioApi

KEY = "canary-key-5d41402abc4b2a76"
BODY = b'{"requestId":"r-1","prompt":"blue herons"}'
JOB = b'{"jobId":"job-1","kind":"pattern","status":"running","result":null}'
OK = "200 OK"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2147483648\r\n\r\n"
#: The steps of a server besides sending bytes and waiting for an event; it drips or floods until the client leaves.
ABORT, CLOSE, HANG, DRIP, FLOOD = "abort", "close", "hang", "drip", "flood"
Step = bytes | str | asyncio.Event


class Request(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes


class Server(NamedTuple):
    url: str
    #: The requests that reached it whole.
    requests: list[Request]


def reply(status: str, body: bytes = JOB, *headers: str) -> bytes:
    """Return a whole HTTP answer."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def take(step: Step, writer: asyncio.StreamWriter) -> None:
    if isinstance(step, asyncio.Event):
        await step.wait()
    elif isinstance(step, bytes):
        writer.write(step)
        await writer.drain()
    elif step == ABORT:
        # The bytes sent before are on their way.
        await asyncio.sleep(0.05)
        writer.transport.abort()
    elif step == CLOSE:
        writer.close()
    elif step == HANG:
        await asyncio.Event().wait()
    while step in (DRIP, FLOOD) and not writer.is_closing():
        writer.write(b" " if step == DRIP else b" " * 65536)
        await (asyncio.sleep(0.05) if step == DRIP else writer.drain())


@asynccontextmanager
async def serving(*answers: tuple[Step, ...]) -> AsyncIterator[Server]:
    """Serve these answers on loopback, each step by step, and the last one from then on."""
    requests: list[Request] = []
    tasks: set[asyncio.Task[None] | None] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            while True:
                line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                pairs = (line.split(": ", 1) for line in lines if line)
                headers = {name.lower(): value for name, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                requests.append(Request(line, headers, body))
                for step in answers[min(len(requests), len(answers)) - 1]:
                    await take(step, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield Server(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1", requests)
    finally:
        listener.close()
        for task in filter(None, tasks):
            task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)


@asynccontextmanager
async def client(url: str, timeout: float = 30.0, max_connections: int = 100) -> AsyncIterator[StudioClient]:
    made = StudioClient(url, SecretStr(KEY), timedelta(seconds=timeout), max_connections)
    try:
        yield made
    finally:
        await made.close()


async def ask(*steps: Step, timeout: float = 30.0) -> Answer:
    """Return the answer that a client gets when it posts to a server that takes these steps."""
    async with serving(steps) as server, client(server.url, timeout) as made:
        return await made.post("patterns/create", BODY)


async def test_request_is_a_post_with_headers_and_exact_body(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """POST, JSON, the key as a bearer and not what .netrc has, the integration's name; no compression asked for."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password else\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving((reply(OK),)) as server, client(server.url) as made:
        answer = await made.post("patterns/create", BODY)
    (request,) = server.requests
    assert (request.line, request.body) == ("POST /v1/patterns/create HTTP/1.1", BODY)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "patternmill/1.0.0"
    assert request.headers["accept-encoding"] == "identity"
    assert "cookie" not in request.headers
    assert answer.usable and answer.body["jobId"] == "job-1"


TEXT = '{"jobId": "job-1", "kind": "pattern", "status": "running", "note": "schön"}'


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(OK, JOB, f"X-Policy: {'p' * 40_000}"), id="a long header"),
        pytest.param(reply(OK, JOB, *(f"X-{n}: {n}" for n in range(400))), id="many headers"),
        pytest.param(reply(OK, gzip.compress(JOB), "Content-Encoding: gzip"), id="unrequested gzip"),
        pytest.param(reply(OK, TEXT.encode("utf-8-sig")), id="a byte-order mark"),
        pytest.param(reply(OK, TEXT.encode("utf-16")), id="UTF-16"),
        pytest.param(reply(OK, TEXT.encode("utf-16-le")), id="UTF-16 without a mark"),
        pytest.param(reply(OK, TEXT.encode("latin-1"), "Content-Type: a/b; charset=iso-8859-1"), id="latin"),
        pytest.param(reply(OK, TEXT.replace('"sch', '"a\nb').encode()), id="a line break in a text"),
        pytest.param(reply(OK, TEXT.replace('"schön"', "NaN").encode()), id="not a number"),
    ],
)
async def test_oddities_that_lose_nothing_are_read(answer: bytes) -> None:
    read = await ask(answer)
    assert read.usable and read.body["jobId"] == "job-1", read


PAGE = b"<html><head><style>p {}</style><title>Sign in</title></head><p>to the net</p>"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"upstream is busy", "upstream is busy"),
        (PAGE, "Sign in to the net"),
        (TEXT.encode("latin-1"), '"jobId": "job-1"'),
        (KEY.encode(), "[key removed]"),
        (b"<" + b"p" * 19_990 + b">" + KEY.encode(), "[key rem"),
    ],
)
async def test_what_cannot_be_read_is_quoted(body: bytes, words: str) -> None:
    """It is quoted without markup and the key, and not at all for a checkout, whose address is a secret."""
    async with serving((reply(OK, body),)) as server, client(server.url) as made:
        answer = await made.post("patterns/create", BODY)
        assert not answer.usable and words in answer.detail and "canary" not in answer.detail
        assert (await made.post("checkouts/create", BODY)).detail == ""


async def test_lease_is_looked_at_as_the_body_is_written() -> None:
    """A request whose permission ended while it waited for a connection does not reach the service."""
    permitted_once = asyncio.Event()

    async def may_send() -> bool:
        if permitted_once.is_set():
            raise LeaseLost("Another run took over.")
        permitted_once.set()
        return True

    slow = (permitted_once, reply(OK))
    async with serving(slow) as server, client(server.url, max_connections=1) as made, StudioApi(made) as api:
        first = asyncio.create_task(made.post("jobs/get", b"{}"))
        await asyncio.sleep(0)
        with pytest.raises(LeaseLost):
            await api.create(CreateRequest(body=BODY), may_send)
        assert (await first).usable
    assert [request.body for request in server.requests] == [b"{}"]


def packed(body: bytes, kind: str = "gzip") -> tuple[Step, ...]:
    return (reply(OK, body, f"Content-Encoding: {kind}"),)


#: The steps of the server, and the status and the trouble that the client reports.
UNUSABLE: dict[str, tuple[tuple[Step, ...], int | None, Trouble]] = {
    "3/4 reset without an answer": ((ABORT,), None, Trouble.RESET),
    "4 closed without an answer": ((CLOSE,), None, Trouble.RESET),
    "8 body cut short": ((HEAD, JOB, CLOSE), None, Trouble.CUT_SHORT),
    "8 body reset": ((HEAD, JOB, ABORT), None, Trouble.CUT_SHORT),
    "not HTTP": ((b"SSH-2.0-OpenSSH_9.6\r\n\r\n",), None, Trouble.BROKEN),
    "6 read time-out": ((HANG,), None, Trouble.TIMEOUT),
    "7 body drips": ((HEAD, DRIP), None, Trouble.TIMEOUT),
    "headers drip": ((b"HTTP/1.1 200 OK\r\nX: ", DRIP), None, Trouble.TIMEOUT),
    "26 two gigabytes": ((HEAD, FLOOD), None, Trouble.TOO_LARGE),
    "26 bomb": (packed(gzip.compress(b" " * (ANSWER_CAP * 8))), None, Trouble.TOO_LARGE),
    "damaged archive": (packed(gzip.compress(JOB)[:-30]), None, Trouble.BROKEN),
    "another archive": (packed(b"junk", "br"), 200, Trouble.NOT_JSON),
    "21 204": ((b"HTTP/1.1 204 No Content\r\n\r\n",), 204, Trouble.NOT_JSON),
    "21 206": ((reply("206 Partial Content"),), 206, Trouble.NONE),
    "22 HTML": ((reply(OK, PAGE),), 200, Trouble.HTML),
    "22 nothing": ((reply(OK, b""),), 200, Trouble.NOT_JSON),
    "26 deep nesting": ((reply(OK, b"[" * 100_000),), 200, Trouble.NOT_JSON),
    "11 a proxy": ((reply("502 Bad Gateway", PAGE),), 502, Trouble.HTML),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_unusable_answer(name: str) -> None:
    """Lost, and so never called unsent, unless it came whole; a byte now and then keeps no request alive."""
    steps, status, trouble = UNUSABLE[name]
    answer = await ask(*steps, timeout=0.4 if trouble is Trouble.TIMEOUT else 50)
    assert not answer.usable
    assert (answer.status, answer.trouble) == (status, trouble)
    assert answer.was_sent


async def test_refused_connection_is_not_sent() -> None:
    """2: the port is bound, and nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        async with client(f"http://127.0.0.1:{bound.getsockname()[1]}/v1") as made:
            answer = await made.post("patterns/create", BODY)
    assert (answer.status, answer.trouble, answer.was_sent) == (None, Trouble.CONNECT, False)


async def test_stale_connection_is_in_doubt_and_the_next_request_succeeds() -> None:
    """10: no request is sent twice by the client itself."""
    async with serving((reply(OK),), (ABORT,), (reply(OK),)) as server, client(server.url) as made:
        answers = [await made.post("patterns/create", BODY) for _ in range(3)]
        assert [answer.trouble.value for answer in answers] == ["none", "reset", "none"]
        assert len(server.requests) == 3


@pytest.mark.parametrize("status", [302, 307])
async def test_redirects_are_not_followed(status: int) -> None:
    """20: the other host gets no request and no key."""
    async with serving((reply(OK),)) as other:
        moved = reply(f"{status} Moved", b"", f"Location: {other.url}/patterns/create")
        async with serving((moved,)) as server, client(server.url) as made:
            answer = await made.post("patterns/create", BODY)
        assert answer.status == status
        assert other.requests == []


async def test_echoed_key_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    """In reasons, in bodies, escaped or not; and nothing is logged at all."""
    caplog.set_level(logging.DEBUG)
    echo = (
        b'{"error":{"message":"bad key ' + KEY.encode() + b'\\u0007"},"key\\u0020":"x' + KEY.encode() + b'"}'
    )
    answer = await ask(reply("403 Forbidden", echo))
    assert answer.detail == "bad key [key removed]"
    assert KEY not in repr(answer)
    assert KEY not in caplog.text
    assert [record for record in caplog.records if record.name.startswith(("httpx", "patternmill"))] == []


async def test_cancelled_request_releases_its_connection() -> None:
    """Requests cancelled while they wait for an answer do not use up the pool."""
    released = asyncio.Event()
    async with serving((released, reply(OK))) as server, client(server.url, max_connections=3) as made:
        for _ in range(4):
            tasks = [asyncio.create_task(made.post("jobs/get", BODY)) for _ in range(5)]
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        released.set()
        answers = await asyncio.gather(*(made.post("jobs/get", BODY) for _ in range(9)))
        assert all(answer.usable for answer in answers)


async def test_proxy_of_the_environment_is_used_except_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving((reply("503 Proxy", PAGE),)) as proxy, serving((reply(OK),)) as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        async with client(server.url) as made:
            assert (await made.post("jobs/get", BODY)).usable
        async with client("http://studio.invalid/v1") as made:
            assert (await made.post("jobs/get", BODY)).status == 503
    (request,) = proxy.requests
    assert request.line.startswith("POST http://studio.invalid/v1/jobs/get")
    assert request.headers["authorization"] == f"Bearer {KEY}"
