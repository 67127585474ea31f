"""The server of the page, for this machine alone: who may come in, and what it is asked."""

import asyncio
import json
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from patternmill.contract import Contract
from patternmill.errors import Refusal
from patternmill.halt import stops
from patternmill.ledger.decisions import Verdict, decide
from patternmill.looking.cards import filled, part
from patternmill.looking.deeds import Asked, Deeds
from patternmill.looking.pictures import Pictures, kind_of
from patternmill.looking.view import View

HOST = "127.0.0.1"
SESSION = "x-patternmill-session"
_GONE = "This link was used, or is not this page's. Stop `patternmill look` and start it again for a new one."
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
}  # fmt: skip


class Decided(BaseModel):
    """A decision about the take of a pattern that was shown."""

    pattern: str
    take: int
    verdict: Verdict
    note: str = ""


class Begun(BaseModel):
    """The number of the plan that was shown and agreed to."""

    plan: int


@dataclass
class Door:
    """Lets in whoever has the link, once, and then its session, from the page's own address alone.

    A session comes as a cookie, or in a header from the memory of a page whose browser keeps no cookies. Pictures have
    a key of their own, in their addresses: no header can be given to them.
    """

    port: int
    link_key: str = field(default_factory=secrets.token_urlsafe)
    session: str = field(default_factory=secrets.token_urlsafe)
    pictures: str = field(default_factory=secrets.token_urlsafe)

    @property
    def link(self) -> str:
        return f"http://{HOST}:{self.port}/?key={self.link_key}"

    @property
    def cookie(self) -> str:
        return f"patternmill-{self.port}"  # browsers share cookies among the ports of a machine

    def is_ours(self, request: Request) -> bool:
        """Return whether a request comes by our own name, and from our own page if it says from where."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        return host in (f"{HOST}:{self.port}", f"localhost:{self.port}") and origin in (
            None,
            f"http://{host}",
        )

    def has_session(self, request: Request) -> bool:
        given = request.headers.get(SESSION) or request.cookies.get(self.cookie, "")
        return secrets.compare_digest(given.encode(), self.session.encode())

    def takes_link(self, request: Request) -> bool:
        """Return whether a request has the link's key, which is good for one page."""
        given, expected = request.query_params.get("key", ""), self.link_key
        if (
            request.method != "GET"
            or not expected
            or not secrets.compare_digest(given.encode(), expected.encode())
        ):
            return False
        self.link_key = ""
        return True


class Desk:
    """Answers what the page asks."""

    def __init__(self, view: View, deeds: Deeds, pictures: Pictures, door: Door, contract: Contract) -> None:
        self._view, self._deeds, self._pictures, self._door = view, deeds, pictures, door
        self._contract = contract

    async def page(self, request: Request) -> Response:
        """Return the page; the link's key becomes a session."""
        is_new = self._door.takes_link(request)
        if not is_new and not self._door.has_session(request):
            return PlainTextResponse(_GONE, 403)
        start = {
            "catalog": self._view.catalog, "environment": self._view.environment,
            "session": self._door.session, "pictures": self._door.pictures,
        }  # fmt: skip
        head = '<link rel="stylesheet" href="/page.css"><script src="/page.js" defer></script>'
        answer = Response(
            filled(json.dumps(start), head), media_type="text/html", headers={"cache-control": "no-store"}
        )
        if is_new:
            answer.set_cookie(self._door.cookie, self._door.session, httponly=True, samesite="strict")
        return answer

    async def data(self, request: Request) -> Response:
        """Return what has changed since a version."""
        version = int(request.query_params.get("since", "0"))
        about = {"jobs": self._deeds.jobs, "kept": self._door.cookie in request.cookies}
        text = await run_in_threadpool(self._view.since, version, about)
        return Response(text, media_type="application/json")

    async def decide(self, request: Request) -> Response:
        said = Decided.model_validate_json(await request.body())
        place = self._view.database, self._view.environment
        await run_in_threadpool(decide, *place, said.pattern, said.take, said.verdict, said.note)
        return JSONResponse({})

    async def takes(self, request: Request) -> Response:
        name = request.query_params.get("card", "")
        found = await run_in_threadpool(self._view.takes_of, name, self._contract)
        return JSONResponse([take._asdict() for take in found])

    async def plan(self, request: Request) -> Response:
        return JSONResponse(await self._deeds.plan(Asked.model_validate_json(await request.body())))

    async def begin(self, request: Request) -> Response:
        self._deeds.begin(Begun.model_validate_json(await request.body()).plan)
        return JSONResponse({})

    async def picture(self, request: Request) -> Response:
        given = request.query_params.get("key", "")
        if not secrets.compare_digest(given.encode(), self._door.pictures.encode()):
            return PlainTextResponse(_GONE, 403)
        content = await self._pictures.find(request.path_params["name"])
        if content is None:
            return PlainTextResponse("No picture.", 404)
        return Response(
            content, media_type=kind_of(content), headers={"cache-control": "private, max-age=86400"}
        )


def app_of(desk: Desk, door: Door) -> ASGIApp:
    """Return the page's application, with the door before it."""
    asked = {"/data": desk.data, "/takes": desk.takes}
    told = {"/decide": desk.decide, "/plan": desk.plan, "/begin": desk.begin}
    routes = [
        Route("/", desk.page),
        Route("/page.css", lambda request: Response(part("page.css"), media_type="text/css")),
        Route("/page.js", lambda request: Response(part("page.js"), media_type="text/javascript")),
        Route("/picture/{name}", desk.picture),
        *(Route(path, _within(door, answer)) for path, answer in asked.items()),
        *(Route(path, _within(door, answer), methods=["POST"]) for path, answer in told.items()),
    ]
    inner = Starlette(routes=routes)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        is_ours = door.is_ours(Request(scope))
        await (inner if is_ours else PlainTextResponse("This is another page's.", 403))(
            scope, receive, sending
        )

    return app


def _within(
    door: Door, answer: Callable[[Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """Answer those who have a session; a refusal is an answer too, in words."""

    async def answered(request: Request) -> Response:
        if not door.has_session(request):
            return JSONResponse({"error": _GONE}, 403)
        try:
            return await answer(request)
        except Refusal as refusal:
            said = f"{refusal.message} {refusal.remedy}".strip()
            return JSONResponse({"error": said, "code": refusal.code}, 409)
        except (ValidationError, ValueError):
            return JSONResponse({"error": "The page asked for something that cannot be. Reload it."}, 422)

    return answered


def listening() -> socket.socket:
    """Return a socket of this machine alone, at a free port."""
    return socket.create_server((HOST, 0))


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn's own handling ends the process before a run has written its results."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(bound: socket.socket, desk: Desk, door: Door, deeds: Deeds) -> None:
    """Serve the page until Ctrl-C or SIGTERM. What was begun there is stopped in order before this returns."""
    options: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off", "ws": "none"}
    server = _Server(uvicorn.Config(app_of(desk, door), timeout_graceful_shutdown=1, **options))

    def end() -> None:
        server.force_exit, server.should_exit = server.should_exit, True

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    while not serving.done():
        await asyncio.wait({serving}, timeout=0.5)
        server.should_exit |= stops.is_stopped  # the signal went to a run
    await deeds.close()
