"""Interventions: faults that fall on calls before they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn import Server

from studio.errors import Refusal
from studio.instruments.fault_plan import CloseConnection, DelayCall, RefuseCall, SpoilBody
from studio.instruments.faults import Faults
from studio.operations.context import Caller
from studio.wire import read_object, refusal_response

HTML = b"<!doctype html><title>502 Bad Gateway</title><h1>502 Bad Gateway</h1><p>The upstream gave no answer.</p>"
#: The error code that is used where a fault plan names none.
CODES = {
    400: "invalid_fields",
    401: "invalid_key",
    404: "unknown_{group}",
    409: "request_id_conflict",
    413: "too_large",
    422: "content_refused",
    429: "rate_limited",
    500: "internal_error",
    503: "unavailable",
}

CarryOut = Callable[[], Awaitable[Response]]


class BrokenOff(Response):
    """The first half of an answer, or nothing of it, before the server ends the connection."""

    def __init__(self, server: Server | None, answer: Response | None = None) -> None:
        super().__init__()
        assert server is not None, "only a server has connections"
        self._server = server
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """End the connection; what was sent before still arrives."""
        answer = self._answer
        if answer is not None:
            start = {"status": answer.status_code, "headers": answer.raw_headers}
            await send({"type": "http.response.start", **start})
            half = bytes(answer.body[: len(answer.body) // 2])
            await send({"type": "http.response.body", "body": half, "more_body": True})
        for connection in list(self._server.server_state.connections):
            if getattr(connection, "client", None) == tuple(scope["client"]):
                connection.transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass


class Intervention:
    """Lets the faults of a plan fall on the calls of a service."""

    #: Set once the server runs.
    server: Server | None = None

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    async def answer(self, caller: Caller, raw: bytes, carry_out: CarryOut) -> Response:
        """Return the answer of a call, as the fault that fires on it leaves it."""
        if caller.operation not in self._faults.operations:
            return await carry_out()
        effect = self._faults.on_exchange(caller, read_object(raw))
        if isinstance(effect, RefuseCall):
            return _refused(effect, caller.operation)
        if isinstance(effect, DelayCall):
            await asyncio.sleep(effect.before)
        if effect == CloseConnection(when="before"):
            return BrokenOff(self.server)
        answer = await carry_out()
        if isinstance(effect, DelayCall):
            await asyncio.sleep(effect.after)
        if isinstance(effect, CloseConnection):
            return BrokenOff(self.server)
        return self._spoilt(effect, answer) if isinstance(effect, SpoilBody) else answer

    def _spoilt(self, effect: SpoilBody, answer: Response) -> Response:
        status = effect.status or answer.status_code
        if effect.form == "html":
            return Response(HTML, status, media_type="text/html")
        if effect.form == "truncated":
            return BrokenOff(self.server, Response(answer.body, status, media_type="application/json"))
        body = b"" if effect.form == "empty" else answer.body[: len(answer.body) // 2]
        return Response(body, status, media_type="application/json")


def _refused(effect: RefuseCall, operation: str) -> Response:
    group = operation.partition("/")[0].removesuffix("s")
    code = effect.code or CODES.get(effect.status, f"status_{effect.status}").format(group=group)
    headers = {} if effect.retryAfter is None else {"Retry-After": str(effect.retryAfter)}
    return refusal_response(Refusal(effect.status, code, effect.message, headers=headers))
