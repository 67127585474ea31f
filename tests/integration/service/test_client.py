"""The client against real sockets, one fault at a time."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
from pathlib import Path

import pytest

from patternmill.errors import LeaseLost
from patternmill.service.client import ANSWER_CAP
from patternmill.service.outcomes import ExchangeResult, Trouble
from patternmill.service.resend import CreateRequest
from patternmill.service.studio_api import StudioApi
from tests.integration.service.raw import (
    BODY,
    JOB,
    KEY,
    Answering,
    answers_with,
    ask,
    client,
    closes,
    drips,
    hangs,
    reply,
    resets,
    serving,
)

OK = "200 OK"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 68\r\n\r\n"


async def test_request_is_a_post_with_headers_and_exact_body(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """POST, JSON, the key as a bearer and not what .netrc has, the integration's name; no compression asked for."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password else\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(answers_with(reply(OK))) as server, client(server.url) as made:
        answer = await made.post("patterns/create", BODY)
    (line, headers, body) = server.requests[0]
    assert line == "POST /v1/patterns/create HTTP/1.1"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"] == "patternmill/1.0.0"
    assert headers["accept-encoding"] == "identity"
    assert "cookie" not in headers
    assert body == BODY
    assert answer.usable
    assert answer.body["jobId"] == "job-1"


TEXT = '{"jobId": "job-1", "kind": "pattern", "status": "running", "note": "schön"}'


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(OK, JOB, f"X-Policy: {'p' * 40_000}"), id="a long header"),
        pytest.param(reply(OK, JOB, *(f"X-{n}: {n}" for n in range(400))), id="many headers"),
        pytest.param(reply(OK, TEXT.encode("utf-8-sig")), id="a byte-order mark"),
        pytest.param(reply(OK, TEXT.encode("utf-16")), id="UTF-16"),
        pytest.param(reply(OK, TEXT.encode("utf-16-le")), id="UTF-16 without a mark"),
        pytest.param(reply(OK, TEXT.encode("latin-1"), "Content-Type: a/b; charset=iso-8859-1"), id="latin"),
        pytest.param(reply(OK, TEXT.replace('"sch', '"a\nb').encode()), id="a line break in a text"),
        pytest.param(reply(OK, TEXT.replace('"schön"', "NaN").encode()), id="not a number"),
    ],
)
async def test_oddities_that_lose_nothing_are_read(answer: bytes) -> None:
    read = await ask(answers_with(answer))
    assert read.usable, read
    assert read.body["jobId"] == "job-1"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"upstream is busy", "upstream is busy"),
        (
            b"<html><head><style>p {}</style><title>Sign in</title></head><p>to the net</p>",
            "Sign in to the net",
        ),
        (TEXT.encode("latin-1"), '"jobId": "job-1"'),
        (KEY.encode(), "[key removed]"),
    ],
)
async def test_what_cannot_be_read_is_quoted(body: bytes, words: str) -> None:
    """Without the key; of a checkout nothing, for its address is a secret."""
    answer = await ask(answers_with(reply(OK, body)))
    assert not answer.usable and words in answer.detail
    assert KEY not in answer.detail


async def test_lease_is_looked_at_as_the_body_is_written() -> None:
    """What was permitted before a connection was free, and no longer is, does not reach the service."""
    permitted_once = asyncio.Event()

    async def may_send() -> bool:
        if permitted_once.is_set():
            raise LeaseLost("Another run took over.")
        permitted_once.set()
        return True

    async def slow(writer: asyncio.StreamWriter) -> None:
        await permitted_once.wait()
        writer.write(reply(OK))

    async with serving(slow) as server, client(server.url, max_connections=1) as made, StudioApi(made) as api:
        first = asyncio.create_task(made.post("jobs/get", b"{}"))
        await asyncio.sleep(0)
        with pytest.raises(LeaseLost):
            await api.create(CreateRequest(body=BODY), may_send)
        assert (await first).usable
    assert [body for _, _, body in server.requests] == [b"{}"]


async def _endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" " * 65536)
        await writer.drain()


BOMB = gzip.compress(b" " * (ANSWER_CAP * 8))


@pytest.mark.parametrize(
    ("answering", "status", "trouble"),
    [
        pytest.param(resets(), None, Trouble.RESET, id="3/4 reset without an answer"),
        pytest.param(closes(), None, Trouble.RESET, id="4 closed without an answer"),
        pytest.param(closes(HEAD, JOB[:10]), None, Trouble.CUT_SHORT, id="8 body cut short"),
        pytest.param(resets(HEAD, JOB[:10]), None, Trouble.CUT_SHORT, id="8 body reset"),
        pytest.param(answers_with(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), None, Trouble.BROKEN, id="not HTTP"),
        pytest.param(hangs, None, Trouble.TIMEOUT, id="6 read time-out"),
        pytest.param(drips(HEAD, JOB, 0.3), None, Trouble.TIMEOUT, id="7 body drips"),
        pytest.param(drips(b"", HEAD, 0.3), None, Trouble.TIMEOUT, id="headers drip"),
        pytest.param(_endless, None, Trouble.TOO_LARGE, id="26 two gigabytes"),
        pytest.param(
            answers_with(reply(OK, BOMB, "Content-Encoding: gzip")), None, Trouble.TOO_LARGE, id="26 bomb"
        ),
        pytest.param(answers_with(b"HTTP/1.1 204 No Content\r\n\r\n"), 204, Trouble.NOT_JSON, id="21 204"),
        pytest.param(answers_with(reply("206 Partial Content", JOB)), 206, Trouble.NONE, id="21 206"),
        pytest.param(answers_with(reply(OK, b"<html>hello</html>")), 200, Trouble.HTML, id="22 HTML"),
        pytest.param(answers_with(reply(OK, b"")), 200, Trouble.NOT_JSON, id="22 nothing"),
        pytest.param(answers_with(reply(OK, b"[" * 100_000)), 200, Trouble.NOT_JSON, id="26 deep nesting"),
        pytest.param(answers_with(reply("502 Bad", b"<h1>proxy</h1>")), 502, Trouble.HTML, id="11 a proxy"),
    ],
)
async def test_unusable_answer(answering: Answering, status: int | None, trouble: Trouble) -> None:
    """Lost, and so never called unsent, unless it came whole; a byte now and then keeps no request alive."""
    answer = await ask(answering, timeout=0.4 if trouble is Trouble.TIMEOUT else 50)
    assert not answer.usable
    assert (answer.status, answer.trouble) == (status, trouble)
    assert answer.exchange is (ExchangeResult.LOST if status is None else ExchangeResult.ANSWERED)


async def test_refused_connection_is_not_sent() -> None:
    """2."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    async with client(f"http://127.0.0.1:{port}/v1") as made:
        answer = await made.post("patterns/create", BODY)
    assert (answer.exchange, answer.trouble) == (ExchangeResult.NOT_SENT, Trouble.CONNECT)


async def test_stale_connection_is_in_doubt_and_the_next_request_succeeds() -> None:
    """10: no request is sent twice by the client itself."""

    async def answering(writer: asyncio.StreamWriter) -> None:
        if len(server.requests) == 2:
            writer.transport.abort()
        else:
            writer.write(reply(OK))

    async with serving(answering) as server, client(server.url) as made:
        answers = [await made.post("patterns/create", BODY) for _ in range(3)]
        assert [answer.exchange.value for answer in answers] == ["answered", "lost", "answered"]
        assert len(server.requests) == 3


@pytest.mark.parametrize("status", [302, 307])
async def test_redirects_are_not_followed(status: int) -> None:
    """20: the other host gets no request and no key."""
    async with serving(answers_with(reply(OK))) as other:
        moved = reply(f"{status} Moved", b"", f"Location: http://localhost:{other.port}/v1/patterns/create")
        async with serving(answers_with(moved)) as server, client(server.url) as made:
            answer = await made.post("patterns/create", BODY)
        assert answer.status == status
        assert other.requests == []


async def test_unrequested_gzip_is_read() -> None:
    """A damaged archive, or one of another kind, is no answer."""
    packed = gzip.compress(JOB)
    bodies = ((packed, "gzip"), (packed[:-30], "gzip"), (b"junk", "gzip"), (packed, "br"))
    answers = [await ask(answers_with(reply(OK, body, f"Content-Encoding: {kind}"))) for body, kind in bodies]
    assert [answer.usable for answer in answers] == [True, False, False, False]


async def test_echoed_key_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    """In reasons, in bodies, escaped or not; and nothing is logged at all."""
    caplog.set_level(logging.DEBUG)
    echo = (
        b'{"error":{"message":"bad key ' + KEY.encode() + b'\\u0007"},"key\\u0020":"x' + KEY.encode() + b'"}'
    )
    answer = await ask(answers_with(reply("403 Forbidden", echo)))
    assert answer.detail == "bad key [key removed]"
    assert KEY not in repr(answer)
    assert KEY not in caplog.text
    assert [record for record in caplog.records if record.name.startswith(("httpx", "patternmill"))] == []


async def test_cancelled_request_releases_its_connection() -> None:
    """Requests cancelled while they wait for an answer do not use up the pool."""
    slow = True

    async def answering(writer: asyncio.StreamWriter) -> None:
        if slow:
            await asyncio.sleep(60)
        writer.write(reply(OK))

    async with serving(answering) as server, client(server.url, 30, max_connections=3) as made:
        for _ in range(4):
            tasks = [asyncio.create_task(made.post("jobs/get", BODY)) for _ in range(5)]
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        slow = False
        answers = await asyncio.gather(*(made.post("jobs/get", BODY) for _ in range(9)))
        assert all(answer.usable for answer in answers)


async def test_proxy_of_the_environment_is_used_except_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        serving(answers_with(reply("503 Proxy", b"<p>proxy</p>"))) as proxy,
        serving(answers_with(reply(OK))) as server,
    ):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with client(server.url) as made:
            assert (await made.post("jobs/get", BODY)).usable
        async with client("http://studio.invalid/v1") as made:
            assert (await made.post("jobs/get", BODY)).status == 503
        assert proxy.requests[0][0].startswith("POST http://studio.invalid/v1/jobs/get")
        assert proxy.requests[0][1]["authorization"] == f"Bearer {KEY}"
