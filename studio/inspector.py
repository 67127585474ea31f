"""The inspector: every request that came, what was answered, and which fault fired, the newest ones of them.

`Recorder` is the ASGI middleware that watches requests; add it last, so that it sees what was really sent. Inside of
it, whoever answers says more with `note_caller` and `note_fault`, and may do so whether it is recorded or not.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.openapi import VERSION
from studio.redaction import may_hold_secrets, redact_text
from studio.requests import REQUEST_ID_LIMIT
from studio.store.database import Database
from studio.store.exchange_table import SCHEMA, ExchangeTable, Filter, KeptExchange

#: In the studio's home.
FILE = "inspector.db"
#: How many are kept.
KEPT = 10_000
#: How many bytes are kept of each body.
BODY_LIMIT = 8_000
#: The ID in a body that was cut: the first that is found.
REQUEST_ID = re.compile(r'"requestId"\s*:\s*"((?:[^"\\]|\\.)*)"')
#: Those that came are written together: at the latest after so many seconds, or when there are so many.
LINGER = 0.25
BATCH = 500
#: What a person's browser asks for besides: pictures and the console itself.
LEFT_OUT = (
    "/pictures/",
    "/references/",
    "/files/",
    "/control/",
    "/console",
    "/static/",
    "/health",
    "/openapi.json",
    "/favicon.ico",
)
#: Requests of people, whose forms are not kept.
BODILESS = ("/checkout/",)
NOTES = "studio.exchange"


@dataclass(slots=True)
class Exchange:
    """One request and its answer. Status 0: it ended without an answer. `fault` is empty when none fired."""

    at: datetime
    method: str
    path: str
    status: int = 0
    seconds: float = 0.0
    account: str = ""
    key_name: str = ""
    fault: str = ""
    request: bytes = b""
    answer: bytes = b""
    #: In bytes, of which less may be kept.
    request_size: int = 0
    answer_size: int = 0


def note_caller(scope: MutableMapping[str, Any], account: str, key_name: str) -> None:
    """Whose request it is."""
    exchange: Exchange | None = scope.get(NOTES)
    if exchange is not None:
        exchange.account, exchange.key_name = account, key_name


def note_fault(scope: MutableMapping[str, Any], fault: str) -> None:
    """A fault that fired on this request, in a few words: `reset after commit, patterns/create no. 3`."""
    exchange: Exchange | None = scope.get(NOTES)
    if exchange is not None:
        exchange.fault = f"{exchange.fault}; {fault}" if exchange.fault else fault


class Inspector:
    """The newest exchanges in a file of their own; a `kill -9` may cost those of the last moment."""

    def __init__(self, path: Path, kept: int = KEPT) -> None:
        self._kept = kept
        self._database = Database(path, SCHEMA)
        self._table = ExchangeTable(self._database)
        self._pending: list[Exchange] = []
        self._oldest = 0.0

    def record(self, exchange: Exchange) -> None:
        """Keep it, written with others a moment later."""
        now = time.monotonic()
        if not self._pending:
            self._oldest = now
            asyncio.get_running_loop().call_later(LINGER, self.flush)
        self._pending.append(exchange)
        if len(self._pending) >= BATCH or now - self._oldest > LINGER:
            self.flush()

    def flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            with self._database.transaction():
                self._table.add([_kept(one) for one in pending], self._kept)

    def page(self, which: Filter, before: int | None, limit: int) -> list[KeptExchange]:
        """The newest ones older than `before`, without their bodies."""
        self.flush()
        return self._table.page(which, before, limit)

    def get(self, which: Filter, seq: int) -> KeptExchange | None:
        """One with its bodies, as far as they were kept."""
        self.flush()
        return self._table.get(which, seq)

    def close(self) -> None:
        self.flush()
        self._database.close()


class Recorder:
    """ASGI middleware that records each request once it has ended, however it ended."""

    def __init__(self, app: ASGIApp, inspector: Inspector) -> None:
        self._app = app
        self._inspector = inspector

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(LEFT_OUT):
            await self._app(scope, receive, send)
            return
        exchange = Exchange(datetime.now(UTC), scope["method"], scope["path"])
        scope[NOTES] = exchange
        began = time.perf_counter()
        try:
            await self._app(scope, _recording_request(exchange, receive), _recording_answer(exchange, send))
        finally:
            exchange.seconds = time.perf_counter() - began
            self._inspector.record(exchange)


def _recording_request(exchange: Exchange, receive: Receive) -> Receive:
    with_body = not exchange.path.startswith(BODILESS)

    async def recording() -> Message:
        message = await receive()
        body = message.get("body", b"")
        exchange.request_size += len(body)
        if with_body and len(exchange.request) < BODY_LIMIT:
            exchange.request += body[:BODY_LIMIT]
        return message

    return recording


def _recording_answer(exchange: Exchange, send: Send) -> Send:
    with_body = not exchange.path.startswith(BODILESS)

    async def recording(message: Message) -> None:
        await send(message)
        body = message.get("body", b"")
        exchange.status = message.get("status", exchange.status)
        exchange.answer_size += len(body)
        if with_body and len(exchange.answer) < BODY_LIMIT:
            exchange.answer += body[:BODY_LIMIT]

    return recording


def _kept(exchange: Exchange) -> KeptExchange:
    operation = exchange.path.removeprefix(f"{VERSION}/")
    request = _text(exchange.request, exchange.request_size)
    answer = _text(exchange.answer, exchange.answer_size)
    if may_hold_secrets(f"{operation}\n{request}\n{answer}"):
        operation, request, answer = redact_text(operation), redact_text(request), redact_text(answer)
    return KeptExchange(
        seq=0,
        at=exchange.at,
        method=exchange.method,
        operation=operation[:200],
        account=exchange.account,
        key_name=exchange.key_name,
        request_id=_request_id(request),
        status=exchange.status,
        seconds=exchange.seconds,
        fault=exchange.fault,
        request=request,
        answer=answer,
        request_size=exchange.request_size,
        answer_size=exchange.answer_size,
    )


def _text(kept: bytes, size: int) -> str:
    """The body. A string that was cut is closed, so that what it holds is recognised."""
    text = kept.decode(errors="replace")
    return text if len(kept) in (0, size) else f'{text}"'


def _request_id(body: str) -> str:
    if '"requestId"' not in body:
        return ""
    try:
        found = _field(json.loads(body))
    except (ValueError, RecursionError):
        first = REQUEST_ID.search(body)
        found = first[1] if first else None
    return found[:REQUEST_ID_LIMIT] if isinstance(found, str) else ""


def _field(body: object) -> object:
    return body.get("requestId") if isinstance(body, dict) else None
