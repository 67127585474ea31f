"""Serves the page of a run to its own person, with the pictures of its home, and saves each decision."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from socket import socket
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from patternmill.errors import PatternmillError
from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import Decision, decision_time, record_decisions, storable
from patternmill.ledger.records import Approval
from patternmill.looking.page import served_policy
from patternmill.looking.viewed_run import ViewedRun
from patternmill.states import Decided

HOST = "127.0.0.1"
#: Of one request, in bytes: a thousand decisions with their notes.
_LARGEST = 1 << 20
_NO_DECISION = "It is no decision."
# The secret is in the fragment, which no browser sends and no log has. It is kept for this tab and this port alone; a
# cookie would go to every port of the machine.
_OPEN = """
(async () => {
  const secret = location.hash.slice(1) || sessionStorage.getItem('patternmill');
  history.replaceState(null, '', '/');
  const answer = await fetch('/page', {headers: {authorization: `Bearer ${secret}`}});
  if (!answer.ok) throw new Error(answer.status);
  const page = await answer.text();
  sessionStorage.setItem('patternmill', secret);
  document.open();
  document.write(page);
  document.close();
})().catch(() => {
  document.body.textContent = 'This address does not sign in. `patternmill look`, on a terminal, shows one.';
});
"""
_SHELL = (
    f'<!doctype html><meta charset="utf-8"><title>Patternmill</title><body>Opening …<script>{_OPEN}</script>'
)
_HEADERS = [
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
]
logger = logging.getLogger(__name__)
#: Approves a plan that waits.
Approve = Callable[[Approval], None]


class LookServer:
    """One page on one port, which only its secret opens."""

    def __init__(self, run: ViewedRun, bound: socket, by: str, approve: Approve) -> None:
        self.run, self.by, self._approve = run, by, approve
        self.address = f"http://{HOST}:{bound.getsockname()[1]}"

    def prepared(self) -> tuple[uvicorn.Server, str]:
        """The server, to be run with the socket; and the address that signs a browser in: for its own person alone."""
        secret = secrets.token_urlsafe(32)
        config = uvicorn.Config(self.app(secret), log_level="warning", headers=_HEADERS)
        return uvicorn.Server(config), f"{self.address}/#{secret}"

    def app(self, secret: str) -> Any:
        """Return the application; `secret` opens it."""
        opens = f"Bearer {secret}".encode()

        def signed_in(answer: Callable[[Request], Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
            async def guarded(request: Request) -> Response:
                if not secrets.compare_digest(request.headers.get("authorization", "").encode(), opens):
                    return Response(status_code=401)
                return await answer(request)

            return guarded

        routes = [
            Route("/", _shell),
            Route("/page", signed_in(self._page)),
            Route("/pictures/{name}", signed_in(self._picture)),
            Route("/decisions", signed_in(self._decide), methods=["POST"]),
            Route("/approve", signed_in(self._approved), methods=["POST"]),
        ]
        return TrustedHostMiddleware(_capped(Starlette(routes=routes)), allowed_hosts=[HOST])

    async def _page(self, request: Request) -> Response:
        return StreamingResponse(self.run.page(self.by), media_type="text/html; charset=utf-8")

    async def _picture(self, request: Request) -> Response:
        path = self.run.picture(request.path_params["name"])
        if path is None:
            return Response(status_code=404)
        return FileResponse(path, headers={"Cache-Control": "private, max-age=3600"})

    async def _decide(self, request: Request) -> Response:
        """Each event by itself: one that is refused keeps no other from being saved."""
        events = await _json(request)
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            return JSONResponse({"error": "A list of decisions is expected."}, status_code=400)
        digests, record = self.run.digests(), self.run.record
        good: dict[str, Decision] = {}
        refused = []
        for event in events:
            try:
                decision = self._decision(event, digests)
            except ValueError as error:
                refused.append({"id": _plain(event.get("id")), "why": str(error)})
            else:
                good.setdefault(decision.id, decision)
        try:
            with self.run.ledger() as ledger, ledger.transaction():
                record_decisions(ledger, record.run_id, good.values())
        except PatternmillError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        return JSONResponse({"saved": list(good), "refused": refused})

    def _decision(self, event: Mapping[str, Any], digests: Mapping[ItemKey, str]) -> Decision:
        """Who is signed in decides, whatever the event says. A ValueError says why it is not saved."""
        id, item, picture, verdict, note, at = (
            _plain(event.get(name)) for name in ("id", "item", "picture", "verdict", "note", "at")
        )
        if id is None or item is None or picture is None or note is None or at is None:
            raise ValueError(_NO_DECISION)
        time = decision_time(at)
        if time is None or verdict not in list(Decided):
            raise ValueError(_NO_DECISION)
        key = ItemKey(item)
        decision = Decision(id, key, picture, Decided(verdict), note, self.by, time)
        if not decision.fits:
            raise ValueError(_NO_DECISION)
        if key not in self.run.items:
            raise ValueError("This run made no such pattern.")
        if picture and picture != digests.get(key, picture):
            raise ValueError("The picture has changed since: look at it and decide again.")
        return decision

    async def _approved(self, request: Request) -> Response:
        given = await _json(request)
        digest = given.get("digest") if isinstance(given, dict) else None
        if not isinstance(digest, str):
            return JSONResponse({"error": "The digest of a plan is expected."}, status_code=400)
        waiting = self.run.waiting_approval()
        if waiting is None or waiting.digest != digest:
            return JSONResponse({"error": "No such plan waits for an approval."}, status_code=409)
        try:
            self._approve(waiting)
        except PatternmillError as error:
            return JSONResponse({"error": str(error)}, status_code=409)
        return JSONResponse({"text": f"Plan {waiting.short} is approved."})


async def _shell(request: Request) -> Response:
    """Answer with the page that opens the other one: it has nothing of anybody's."""
    return HTMLResponse(_SHELL, headers={"Content-Security-Policy": served_policy(_OPEN)})


async def _json(request: Request) -> Any:
    """Return what was sent; None where it is no JSON."""
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        return None


def _plain(value: object) -> str | None:
    return storable(value) if isinstance(value, str) else None


def _capped(app: Any) -> Any:
    """Answer 413 to a larger body, as soon as so much of it has come."""

    async def capped(scope: Any, receive: Any, send: Any) -> None:
        size = 0

        async def counted() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > _LARGEST:
                raise HTTPException(413)
            return message

        await app(scope, counted, send)

    return capped
