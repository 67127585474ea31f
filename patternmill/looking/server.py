"""Serves the page of a run with its pictures to one person, saves each decision, and starts what they confirm."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from socket import AF_INET, AF_INET6, create_server, socket
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.identifiers import ItemKey
from patternmill.ledger.events import Decision, decision_time, record_decisions, storable
from patternmill.looking.actions import Actions
from patternmill.looking.page import page_part, served_policy
from patternmill.looking.viewed_run import ViewedRun
from patternmill.states import Decided

#: The header of a picture with the SHA-256 of its bytes, which a decision about it repeats.
DIGEST = "Picture-Digest"
#: The most bytes of a request: a thousand decisions with their notes.
_LARGEST = 1 << 20
#: The seconds for which a code is valid, and the number of wrong tries that end it.
CODE_SECONDS, _MOST_TRIES = 300.0, 5
#: The paths that need no session: the document that signs in, and where a code is exchanged.
_OPEN = ("/", "/code")
_NO_DECISION = "This is no decision."
_LETTERS = "BCDFGHJKMNPQRSTVWXZ23456789"
_HEADERS = [
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
]
T = TypeVar("T", dict[str, Any], list[Any])
_FAMILY = {4: AF_INET, 6: AF_INET6}


@dataclass
class Door:
    """An address of the page, and the secret that opens it there."""

    socket: socket
    #: The code that opens the page once at a door to the network; empty at any other. The network is not encrypted, so
    #: nothing is bought there.
    code: str = ""
    clock: Callable[[], float] = time.monotonic
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _wrong: int = 0

    def __post_init__(self) -> None:
        self._until = self.clock() + CODE_SECONDS

    @property
    def place(self) -> tuple[str, int]:
        """Return the IP address and port, as a connection names them."""
        host, port = self.socket.getsockname()[:2]
        return host, port

    @property
    def netloc(self) -> str:
        host, port = self.place
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def address(self) -> str:
        """Return what a person opens; its secret is behind #, which no browser sends and no log has."""
        return f"http://{self.netloc}/" if self.code else f"http://{self.netloc}/#{self.secret}"

    def opens(self, header: str) -> bool:
        return hmac.compare_digest(header.encode(), f"Bearer {self.secret}".encode())

    def exchange(self, code: object) -> str | None:
        """Return the secret for the code: once, within five minutes, and not after five wrong codes."""
        text = str(code).upper().replace("-", "").replace(" ", "").encode()
        is_right = bool(self.code) and hmac.compare_digest(text, self.code.encode())
        self._wrong += not is_right
        if not is_right or self._wrong >= _MOST_TRIES or self.clock() > self._until:
            return None
        self._wrong = _MOST_TRIES
        return self.secret


def network_door(host: str) -> Door:
    """Open a door at one address of this machine. Raises ConfigurationError."""
    try:
        address = ipaddress.ip_address(host)
        if address.is_unspecified or address.is_multicast:
            raise ValueError
        bound = create_server((host, 0), family=_FAMILY[address.version])
    except (ValueError, OSError):
        raise ConfigurationError(
            f"{host!r} is not one IP address of this machine.",
            remedy="Name the one that the phone reaches: `hostname -I` lists them.",
        ) from None
    return Door(bound, "".join(secrets.choice(_LETTERS) for _ in range(8)))


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Shut down; requests that this cuts off are no errors, and are not logged."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


class LookServer:
    """Serves the page of a run, at one door or several."""

    def __init__(
        self,
        run: ViewedRun,
        by: str,
        doors: Sequence[Door],
        actions: Actions | None = None,
        brake: Callable[[str], str] = str,
    ) -> None:
        """`by` is the user who is signed in; `brake` pauses for a reason, and returns a sentence about it."""
        self.run, self.by, self.doors = run, by, doors
        self._actions, self._brake = actions or Actions({}), brake

    def prepared(self) -> uvicorn.Server:
        """Return the server, to be run with the sockets of its doors."""
        apps = {door.place: self.app(door) for door in self.doors}

        async def app(scope: Any, receive: Any, send: Any) -> None:
            # Chosen by where the connection came in, whatever its headers say.
            await apps[tuple(scope["server"])](scope, receive, send)

        config = uvicorn.Config(
            app,
            log_level="warning",
            headers=_HEADERS,
            lifespan="off",
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        return _Server(config)

    def app(self, door: Door) -> Any:
        """Return the application of a door; at one to the network nothing buys, approves or pauses."""

        async def page(request: Request) -> Response:
            chunks = self.run.page([] if door.code else [*self._actions.names, "pause"])
            return StreamingResponse(chunks, media_type="text/html; charset=utf-8")

        async def exchange(request: Request) -> Response:
            secret = door.exchange((await _sent(request, dict)).get("code"))
            return JSONResponse({"secret": secret}, status_code=200 if secret else 403)

        routes = [
            Route("/", _shell),
            Route("/page", page),
            Route("/pictures/{name}", self._picture),
            Route("/decisions", self._decide, methods=["POST"]),
        ]
        only_here = [Route("/code", exchange, methods=["POST"])] if door.code else self._commands()
        return _guarded(Starlette(routes=[*routes, *only_here]), door)

    def _commands(self) -> list[Route]:
        """Return the routes that buy, approve and pause."""

        async def begun(request: Request) -> Response:
            return JSONResponse(self._actions.begun())

        def posted(path: str, field: str, work: Callable[[str], Mapping[str, Any]]) -> Route:
            async def answer(request: Request) -> Response:
                given = _plain((await _sent(request, dict)).get(field))
                return await _told(lambda: work(given), 409)

            return Route(path, answer, methods=["POST"])

        def show(name: str, _: str) -> Mapping[str, Any]:
            return {"plan": self._actions.show(name)}

        def begin(name: str, token: str) -> Mapping[str, Any]:
            return self._actions.begin(name, token).shown()

        return [
            Route("/commands", begun),
            *(posted(f"/plans/{name}", "", partial(show, name)) for name in self._actions.names),
            *(posted(f"/commands/{name}", "token", partial(begin, name)) for name in self._actions.names),
            posted("/approve", "digest", lambda digest: {"text": self.run.approve(digest, self.by)}),
            posted("/pause", "reason", lambda reason: {"text": self._brake(reason)}),
        ]

    async def _picture(self, request: Request) -> Response:
        picture = await asyncio.to_thread(self.run.picture, request.path_params["name"])
        if picture is None:
            return Response(status_code=404)
        path, digest = picture
        return FileResponse(path, headers={DIGEST: digest})

    async def _decide(self, request: Request) -> Response:
        """Save each event by itself, so that one that is refused does not stop the others."""
        events = await _sent(request, list)
        if not all(isinstance(event, dict) for event in events):
            raise HTTPException(400)
        good: dict[str, Decision] = {}
        refused = []
        for event in events:
            try:
                decision = self._decision({name: _plain(value) for name, value in event.items()})
                good.setdefault(decision.id, decision)
            except ValueError as error:
                refused.append({"id": _plain(event.get("id")), "why": str(error)})
        return await _told(lambda: self._save(good, refused), 503)

    def _save(self, good: Mapping[str, Decision], refused: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        with self.run.ledger() as ledger, ledger.transaction():
            record_decisions(ledger, self.run.record.run_id, good.values())
        return {"saved": list(good), "refused": refused}

    def _decision(self, event: Mapping[str, str]) -> Decision:
        """Return an event as a decision of the user who is signed in. Raises ValueError, which says why not."""
        verdict, time = event.get("verdict"), decision_time(event.get("at", ""))
        if time is None or verdict not in list(Decided):
            raise ValueError(_NO_DECISION)
        id, item, picture, note = (event.get(name, "") for name in ("id", "item", "picture", "note"))
        key = ItemKey(item)
        decision = Decision(id, key, picture, Decided(verdict), note, self.by, time)
        if not decision.fits:
            raise ValueError(_NO_DECISION)
        if key not in self.run.items:
            raise ValueError("This run made no such pattern.")
        if picture and picture != (self.run.digest(key) or picture):
            raise ValueError("The picture has changed since: look at it and decide again.")
        return decision


async def _told(work: Callable[[], Mapping[str, Any]], status: int) -> Response:
    """Work in a thread, and answer with the outcome, or with this status and the reason why not."""
    try:
        return JSONResponse(await asyncio.to_thread(work))
    except PatternmillError as error:
        return JSONResponse({"error": str(error)}, status_code=status)


async def _shell(request: Request) -> Response:
    """Answer with the document that signs in and loads the page; it has no data."""
    script = page_part("sign_in.js")
    policy = {"Content-Security-Policy": served_policy(script)}
    return HTMLResponse(page_part("sign_in.html").replace("<!--script-->", script), headers=policy)


async def _sent(request: Request, kind: type[T]) -> T:
    """Return the JSON that was sent. Raises HTTPException (400) where it is none, or of another kind."""
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, kind):
        raise HTTPException(400)
    return given


def _plain(value: object) -> str:
    """Return a text as it may be stored; empty for anything else."""
    return storable(value) if isinstance(value, str) else ""


def _guarded(app: Any, door: Door) -> Any:
    """Refuse any Host or Origin but the door's own, whoever is not signed in, and a body once it is too large."""

    async def guarded(scope: Any, receive: Any, send: Any) -> Any:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        own = door.netloc
        if (headers.get(b"host"), headers.get(b"origin", f"http://{own}")) != (own, f"http://{own}"):
            return await Response(status_code=403)(scope, receive, send)
        if scope["path"] not in _OPEN and not door.opens(headers.get(b"authorization", "")):
            return await Response(status_code=401)(scope, receive, send)
        size = 0

        async def counted() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > _LARGEST:
                raise HTTPException(413)
            return message

        return await app(scope, counted, send)

    return guarded
