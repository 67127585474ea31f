"""The HTTP face of the studio: who may ask, which operations there are, and how answers are written."""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse

from studio import wire
from studio.errors import Refusal, unknown
from studio.pictures import WIDTHS, PictureFault, Pictures
from studio.service import Service

VERSION = "/v1"
BODY_LIMIT = 1_000_000
Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(service: Service, pictures: Pictures, keys: frozenset[str]) -> FastAPI:
    """The application. `keys` are the bearer keys that may ask."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await pictures.close()

    app = FastAPI(title="Embedded studio", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    _add_operation(app, keys, "patterns/create", wire.CreatePattern, service.create_pattern)
    _add_operation(app, keys, "jobs/get", wire.GetJob, service.get_job)
    _add_operation(app, keys, "products/create", wire.CreateProduct, service.create_product)
    _add_operation(app, keys, "categories/list", wire.ListCategories, service.list_categories)
    _add_operation(app, keys, "categories/get", wire.GetCategory, service.get_category)
    _add_pictures(app, service, pictures)
    _add_health(app)
    _add_everything_else(app, keys)
    return app


def _add_operation(
    app: FastAPI,
    keys: frozenset[str],
    name: str,
    model: type[wire.AnyBody],
    perform: Callable[[wire.AnyBody, str], dict[str, object]],
) -> None:
    async def answer(request: Request) -> Response:
        check_key(request, keys)
        body = wire.read_body(model, await _read(request))
        return _json(200, perform(body, f"{request.base_url}pictures"))

    app.add_api_route(
        f"{VERSION}/{name}",
        _answering_refusals(answer),
        methods=["POST"],
        name=name,
        openapi_extra={
            "requestBody": {"content": {"application/json": {"schema": model.model_json_schema()}}}
        },
    )


def _add_pictures(app: FastAPI, service: Service, pictures: Pictures) -> None:
    async def picture(request: Request) -> Response:
        picture_id = str(request.path_params["picture_id"])
        order = service.picture(picture_id)
        if order is None:
            raise unknown("picture", picture_id)
        try:
            path = await pictures.path(order, _width(request))
        except PictureFault as fault:
            raise Refusal(500, "picture_failed", str(fault)) from fault
        return FileResponse(path, headers={"Cache-Control": "public, max-age=31536000, immutable"})

    app.add_api_route("/pictures/{picture_id}.png", _answering_refusals(picture), methods=["GET"])


def _add_health(app: FastAPI) -> None:
    async def health(request: Request) -> Response:
        return _json(200, {"status": "ok"})

    app.add_api_route("/health", _answering_refusals(health), methods=["GET"])


def _add_everything_else(app: FastAPI, keys: frozenset[str]) -> None:
    operations = frozenset(getattr(route, "path", "") for route in app.routes)

    async def refuse(request: Request) -> Response:
        check_key(request, keys)
        path = request.url.path
        if path in operations:
            raise Refusal(405, "method_not_allowed", f"{path} is asked by POST, not by {request.method}.")
        raise Refusal(404, "unknown_operation", f"There is no operation at {path}.")

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    app.add_api_route("/{path:path}", _answering_refusals(refuse), methods=methods, include_in_schema=False)


def _answering_refusals(endpoint: Endpoint) -> Endpoint:
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
            return _json(refusal.status, refusal.body(), headers)

    return answered


def check_key(request: Request, keys: frozenset[str]) -> None:
    """Raises Refusal (401) unless the request carries one of the keys."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise Refusal(401, "missing_key", "An API key is needed: Authorization: Bearer <API_KEY>.")
    given = key.strip().encode()
    if not any([hmac.compare_digest(given, one.encode()) for one in keys]):
        raise Refusal(401, "invalid_key", "The API key is not one of this studio's.")


async def _read(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "not_json", "The body has to be sent as Content-Type: application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise Refusal(413, "too_large", f"The body is larger than {BODY_LIMIT} bytes.")
    return bytes(body)


def _width(request: Request) -> int:
    asked = request.query_params.get("width", str(max(WIDTHS)))
    if asked not in {str(width) for width in WIDTHS}:
        offered = ", ".join(str(width) for width in WIDTHS)
        raise Refusal(400, "invalid_width", f"Pictures come in these widths: {offered}.")
    return int(asked)


def _json(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, status, headers, media_type="application/json")


def picture_directory(home: Path) -> Path:
    return home / "pictures"
