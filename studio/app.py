"""The HTTP face of the studio: who may ask, which addresses there are, and how answers are written."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from starlette.routing import request_response

from studio import wire
from studio.errors import Refusal, unknown
from studio.instruments.intervention import Commands, Intervention, Rig
from studio.keys import Keys
from studio.openapi import VERSION, document
from studio.operations.context import Caller
from studio.operations.table import BODY_LIMIT, OPERATIONS, Operation
from studio.pages.routes import page_routes
from studio.pictures import WIDTHS, PictureFault, Pictures
from studio.service import Service

Endpoint = Callable[[Request], Awaitable[Response]]
#: Addresses that cannot be guessed never show anything else later.
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
log = logging.getLogger(__name__)


def build_app(
    service: Service,
    pictures: Pictures,
    keys: frozenset[str],
    rig: Rig | None = None,
) -> FastAPI:
    """The application. `keys` are bearer keys that may ask, next to those that are stored."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await pictures.close()

    app = FastAPI(title="Embedded studio", version="1", lifespan=lifespan, openapi_url=None)
    known = Keys(service.store, keys)
    for operation in OPERATIONS:
        _add_operation(app, service, known, operation)
    _add_pictures(app, service, pictures)
    _add_plain(app, "/openapi.json", document())
    _add_plain(app, "/health", {"status": "ok"})
    if rig is not None:
        if rig.needed:
            app.add_middleware(Intervention, rig=rig, store=service.store, keys=known)
        if rig.control is not None:
            _add_control(app, rig.control)
    app.router.routes.extend(page_routes(service, known))
    _add_everything_else(app, known)
    return app


def _add_operation(app: FastAPI, service: Service, keys: Keys, operation: Operation) -> None:
    perform = operation.of(service)
    takes_long = inspect.iscoroutinefunction(perform)

    async def answer(request: Request) -> Response:
        account = keys.account(request.headers.get("authorization", ""))
        body = wire.read_body(operation.body, await _read(request, operation.body_limit))
        found: Any = perform(body, Caller(account, origin(request)))
        return _json(200, await found if takes_long else found)

    _add(app, f"{VERSION}/{operation.name}", answer, "POST")


def _add_pictures(app: FastAPI, service: Service, pictures: Pictures) -> None:
    async def picture(request: Request) -> Response:
        picture_id = str(request.path_params["picture_id"])
        found = service.picture(picture_id)
        if found is None:
            raise unknown("picture", picture_id)
        try:
            path = await pictures.path(found.order, _width(request, found.width))
        except PictureFault as fault:
            raise Refusal(500, "picture_failed", str(fault)) from fault
        return FileResponse(path, headers=FOR_EVER)

    async def reference(request: Request) -> Response:
        picture_id = str(request.path_params["picture_id"])
        path = service.references.picture(picture_id)
        if path is None:
            raise unknown("picture", picture_id)
        return FileResponse(path, headers={"Cache-Control": "private, no-cache"})

    _add(app, "/pictures/{picture_id}.png", picture, "GET")
    _add(app, "/references/{picture_id}.png", reference, "GET")


def _add_control(app: FastAPI, control: Commands) -> None:
    async def command(request: Request) -> Response:
        client = "" if request.client is None else request.client.host
        control.check(client, request.headers.get("authorization", ""))
        name = str(request.path_params["name"])
        return _json(200, await control.perform(name, await _read(request, BODY_LIMIT)))

    _add(app, "/control/{name:path}", command, "POST")


def _add_plain(app: FastAPI, path: str, body: dict[str, Any]) -> None:
    async def plain(request: Request) -> Response:
        return _json(200, body)

    _add(app, path, plain, "GET")


def _add_everything_else(app: FastAPI, keys: Keys) -> None:
    operations = frozenset(f"{VERSION}/{operation.name}" for operation in OPERATIONS)

    async def refuse(request: Request) -> Response:
        keys.account(request.headers.get("authorization", ""))
        path = request.url.path
        if path in operations:
            message = f"{path} is asked by POST, not by {request.method}."
            raise Refusal(405, "method_not_allowed", message, headers={"Allow": "POST"})
        raise Refusal(404, "unknown_operation", f"There is no operation at {path}.")

    # A route would be for some methods only; this is for each that a client can think of.
    app.mount("", request_response(_answering_refusals(refuse)))


def _add(app: FastAPI, path: str, endpoint: Endpoint, method: str) -> None:
    """A route of Starlette's: FastAPI's own would read the body a second time, by its annotations."""
    app.add_route(path, _answering_refusals(endpoint), methods=[method])


def _answering_refusals(endpoint: Endpoint) -> Endpoint:
    """Whatever goes wrong is answered in the studio's own shape, without a trace of its insides."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            return _json(refusal.status, refusal.body(), refusal.headers)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return _json(500, Refusal(500, "internal_error", "The studio failed to answer.").body())

    return answered


async def _read(request: Request, limit: int) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "not_json", "The body has to be sent as Content-Type: application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise Refusal(413, "too_large", f"The body is larger than {limit} bytes.")
    return bytes(body)


def origin(request: Request) -> str:
    """The address that was asked, without its path."""
    scope = request.scope
    return f"{scope['scheme']}://{request.headers.get('host', 'localhost')}{scope.get('root_path', '')}"


def _width(request: Request, own: int) -> int:
    asked = request.query_params.get("width", str(own))
    offered = [str(width) for width in sorted({*WIDTHS, own})]
    if asked not in offered:
        raise Refusal(400, "invalid_width", f"This picture comes in these widths: {', '.join(offered)}.")
    return int(asked)


def _json(status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, status, headers, media_type="application/json")


def picture_directory(home: Path) -> Path:
    return home / "pictures"
