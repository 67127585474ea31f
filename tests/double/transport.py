"""The double in this process, in place of the client's transport."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable

import httpx

from tests.double.service import Double, Reply

Exchange = Callable[[str, bytes], Awaitable[Reply]]


class DoubleTransport(httpx.AsyncBaseTransport):
    """Asks a double. An exchange goes on at the service when whoever asked has gone."""

    def __init__(self, double: Double) -> None:
        self._double = double

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        operation = request.url.path.partition("/v1/")[2]
        # In a context of its own: what happens at the service does not happen in the process that asks.
        exchange = self._double.exchange(operation, body)
        going = contextvars.Context().run(asyncio.get_running_loop().create_task, exchange)
        reply = await asyncio.shield(going)
        if reply.trouble:
            raise {"unreachable": httpx.ConnectError, "cut": httpx.ReadError}[reply.trouble]("by the weather")
        headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
        return httpx.Response(reply.status, headers=headers, stream=httpx.ByteStream(reply.content))
