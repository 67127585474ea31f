"""Servers of a few lines, on loopback, that answer wrongly exactly as scripted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from pydantic import SecretStr

from patternmill.service.client import StudioClient
from patternmill.service.outcomes import Answer

KEY = "canary-key-5d41402abc4b2a76"
BODY = b'{"requestId":"r-1","prompt":"blue herons"}'
JOB = b'{"jobId":"job-1","kind":"pattern","status":"running","result":null}'

Answering = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """A running server, and every request that reached it whole."""

    port: int
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


def reply(status: str, body: bytes = JOB, *headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answers_with(*answers: bytes) -> Answering:
    """Answers with these bytes, the last one again and again."""
    left = list(answers)

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    return answer


def resets(*first: bytes) -> Answering:
    """Resets the connection, after these bytes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.writelines(first)
        await writer.drain()
        if first:
            await asyncio.sleep(0.05)
        writer.transport.abort()

    return answer


def closes(*first: bytes) -> Answering:
    """Closes the connection cleanly, after these bytes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.writelines(first)
        writer.close()

    return answer


def drips(head: bytes, body: bytes, gap: float) -> Answering:
    """Sends the body a byte at a time."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        for number in range(len(body)):
            writer.write(body[number : number + 1])
            await asyncio.sleep(gap)

    return answer


async def hangs(writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.sleep(60)


@asynccontextmanager
async def serving(answering: Answering, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve until the block ends."""
    server = Server(0)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while True:
                server.requests.append(await _read_request(reader))
                await answering(writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.sleep(0.01)


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    return head[0], headers, await reader.readexactly(int(headers.get("content-length", "0")))


@asynccontextmanager
async def client(url: str, timeout: float = 2.0, max_connections: int = 100) -> AsyncIterator[StudioClient]:
    """Yield a client with the test's key."""
    made = StudioClient(url, SecretStr(KEY), timedelta(seconds=timeout), max_connections)
    try:
        yield made
    finally:
        await made.close()


async def ask(answering: Answering, timeout: float = 2.0) -> Answer:
    """Return the answer of a client that posts to a server that answers like that."""
    async with serving(answering) as server, client(server.url, timeout) as made:
        return await made.post("patterns/create", BODY)
