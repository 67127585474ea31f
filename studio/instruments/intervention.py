"""Between the connection and the operations: where faults fall on calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Server

from studio.errors import Refusal
from studio.instruments.calls import Call, read_call, read_object
from studio.instruments.fault_plan import CloseConnection, DelayCall, Effect, RefuseCall, SpoilBody
from studio.instruments.instrument_set import Instruments
from studio.keys import Keys
from studio.openapi import VERSION
from studio.operations.context import Answer
from studio.operations.table import UPLOAD_LIMIT
from studio.store import Store

HTML = b"<!doctype html><title>502 Bad Gateway</title><h1>502 Bad Gateway</h1><p>The upstream gave no answer.</p>"


#: The code of an error for which a fault plan names none.
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


@dataclass(frozen=True)
class Reply:
    """A whole answer, before it is sent."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send, *, cut: bool = False) -> None:
        """`cut`: only the first half of the body that its headers announce."""
        size = (b"content-length", str(len(self.body)).encode())
        headers = [(b"content-type", self.content_type.encode()), size, *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        body = self.body[: len(self.body) // 2] if cut else self.body
        await send({"type": "http.response.body", "body": body, "more_body": cut})


class Connections:
    """The connections of the server, once it runs."""

    def __init__(self) -> None:
        self.server: Server | None = None

    async def close(self, scope: Scope, receive: Receive) -> None:
        """End the connection of this request; what was sent before still arrives."""
        assert self.server is not None, "only a server has connections"
        for connection in list(self.server.server_state.connections):
            if getattr(connection, "client", None) == tuple(scope["client"]):
                connection.transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass


class Commands(Protocol):
    """What changes a running studio; `studio.instruments.control.Control` is imported only where it is used."""

    def check(self, client: str, authorization: str) -> None:
        """Raises Refusal unless the caller may use them."""

    async def perform(self, name: str, raw: bytes) -> Answer:
        """The answer of a command with this body. Raises Refusal."""


@dataclass(frozen=True)
class Rig:
    """What a studio has that is used for testing others. `control`: how its instruments are changed, if they may be."""

    instruments: Instruments
    connections: Connections
    control: Commands | None = None

    @property
    def needed(self) -> bool:
        """Otherwise calls never meet any of it."""
        return self.control is not None or not self.instruments.idle


class Intervention:
    """ASGI middleware for the operations; while the instruments are idle, it does nothing."""

    def __init__(self, app: ASGIApp, rig: Rig, store: Store, keys: Keys) -> None:
        self._app = app
        self._instruments = rig.instruments
        self._connections = rig.connections
        self._store = store
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_call = scope["type"] == "http" and scope["path"].startswith(f"{VERSION}/")
        if not is_call or not self._instruments.concern(_operation(scope)):
            await self._app(scope, receive, send)
            return
        request = await _read_ahead(receive)
        effect = self._effect(self._call(scope, read_object(request.body)))
        if effect == CloseConnection(when="before"):
            await self._connections.close(scope, receive)
            return
        reply = await self._reply(effect, scope, request)
        await self._deliver(effect, reply, scope, receive, send)

    def _call(self, scope: Scope, body: Mapping[str, object]) -> Call | None:
        """None: it has no valid key, and is refused."""
        try:
            account = self._keys.account(_header(scope, b"authorization"))
        except Refusal:
            return None
        return read_call(self._store, _operation(scope), account, body)

    def _effect(self, call: Call | None) -> Effect | None:
        fault = None if call is None else self._instruments.faults.on_exchange(call)
        return None if fault is None else fault.effect

    async def _reply(self, effect: Effect | None, scope: Scope, request: _Request) -> Reply:
        if isinstance(effect, RefuseCall):
            return _refused(effect, _operation(scope))
        if isinstance(effect, DelayCall):
            await asyncio.sleep(effect.before)
        reply = await _captured(self._app, scope, request)
        if isinstance(effect, DelayCall):
            await asyncio.sleep(effect.after)
        return reply

    async def _deliver(
        self, effect: Effect | None, reply: Reply, scope: Scope, receive: Receive, send: Send
    ) -> None:
        cut = isinstance(effect, SpoilBody) and effect.form == "truncated"
        if isinstance(effect, SpoilBody):
            reply = _spoilt(effect, reply)
        if not isinstance(effect, CloseConnection):
            await reply.send(send, cut=cut)
        if cut or isinstance(effect, CloseConnection):
            await self._connections.close(scope, receive)


@dataclass
class _Request:
    """What was read of a request, to be read again by the application."""

    body: bytes
    whole: bool
    receive: Receive
    begun: bool = False

    async def __call__(self) -> Message:
        if self.begun:
            return await self.receive()
        self.begun = True
        return {"type": "http.request", "body": self.body, "more_body": not self.whole}


async def _read_ahead(receive: Receive) -> _Request:
    """The body, as far as any operation takes one."""
    body, more = bytearray(), True
    while more and len(body) <= UPLOAD_LIMIT:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return _Request(bytes(body), not more, receive)


async def _captured(app: ASGIApp, scope: Scope, request: _Request) -> Reply:
    messages: list[Message] = []

    async def keep(message: Message) -> None:
        messages.append(message)

    await app(scope, request, keep)
    headers = dict(messages[0].get("headers", ()))
    content_type = headers.pop(b"content-type", b"").decode()
    headers.pop(b"content-length", None)
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return Reply(messages[0]["status"], body, content_type, tuple(headers.items()))


def _refused(effect: RefuseCall, operation: str) -> Reply:
    group = operation.partition("/")[0].removesuffix("s")
    code = effect.code or CODES.get(effect.status, f"status_{effect.status}").format(group=group)
    return _refusal(Refusal(effect.status, code, effect.message, headers=_retry_after(effect)))


def _retry_after(effect: RefuseCall) -> dict[str, str]:
    return {} if effect.retryAfter is None else {"Retry-After": str(effect.retryAfter)}


def _refusal(refusal: Refusal) -> Reply:
    headers = tuple((name.lower().encode(), text.encode()) for name, text in (refusal.headers or {}).items())
    return Reply(refusal.status, _dump(refusal.body()), headers=headers)


def _spoilt(effect: SpoilBody, reply: Reply) -> Reply:
    status = effect.status or reply.status
    if effect.form == "html":
        return replace(reply, status=status, body=HTML, content_type="text/html; charset=utf-8")
    bodies = {"empty": b"", "malformed": reply.body[: len(reply.body) // 2], "truncated": reply.body}
    return replace(reply, status=status, body=bodies[effect.form])


def _operation(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(f"{VERSION}/")


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
