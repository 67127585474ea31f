"""The double behind a socket, for real processes."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.double.service import Double, Reply

KEY = "key-of-the-double"


async def serve(double: Double, port: int = 0) -> asyncio.Server:
    """Serve the double on this machine alone."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await _answer(double, reader, writer):
                pass
        writer.close()

    return await asyncio.start_server(converse, "127.0.0.1", port, backlog=512)


async def _answer(double: Double, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Answer one request of a connection, and return whether it stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers["content-length"]))
    reply = Reply(401, {"error": "Unknown key."})
    if headers.get("authorization") == f"bearer {KEY}":
        reply = await double.exchange(head[0].split()[1].partition("/v1/")[2], body)
    if reply.trouble:
        writer.transport.abort()
        return False
    content = b"" if reply.status == 204 else reply.content
    wait = f"Retry-After: {reply.retry_after}\r\n" if reply.retry_after else ""
    about = f"Content-Type: application/json\r\n{wait}Content-Length: {len(content)}"
    writer.write(f"HTTP/1.1 {reply.status} -\r\n{about}\r\n\r\n".encode() + content)
    await writer.drain()
    return True


@contextmanager
def serving(double: Double) -> Iterator[str]:
    """Serve the double from a thread, and yield its base address."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(serve(double))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()
