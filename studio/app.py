"""The HTTP face of the studio: who may ask, which addresses there are, and how answers are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, request_response

from studio.drawing_ahead import draw_ahead
from studio.errors import Refusal, unknown
from studio.instruments.control import Control
from studio.instruments.intervention import Intervention
from studio.keys import Keys
from studio.openapi import VERSION, document
from studio.operations.context import Caller
from studio.operations.table import OPERATIONS, Operation
from studio.pages.checkout import CheckoutPages
from studio.pages.console import Console
from studio.pages.rendering import PageFiles, page
from studio.pictures import WIDTHS, PictureFault, Pictures
from studio.requests import REFERENCE_LIMIT, CreateReference
from studio.service import Service
from studio.wire import JSON, read_body, read_raw, refusal_response

#: The most bytes of a request body; more where a picture is sent.
BODY_LIMIT = 1_000_000
UPLOAD_LIMIT = REFERENCE_LIMIT * 4 // 3 + 10_000
#: For addresses that cannot be guessed, whose content never changes.
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}

#: The paths below which pages for people are.
PAGES = ("/checkout/", "/console")


def build_app(
    service: Service,
    pictures: Pictures,
    keys: frozenset[str],
    intervention: Intervention | None = None,
    control: Control | None = None,
    *,
    draws_ahead: bool = False,
) -> Starlette:
    """Return the application. `keys` are bearer keys that are accepted besides the stored ones."""
    known = Keys(service.store, keys)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        ahead = asyncio.create_task(draw_ahead(service, pictures)) if draws_ahead else None
        yield
        if ahead is not None:
            ahead.cancel()
        await pictures.close()

    routes: list[BaseRoute] = [
        *(_operation(operation, service, known, intervention) for operation in OPERATIONS),
        *_pictures(service, pictures),
        Route("/openapi.json", _document),
        *([] if control is None else [_control(control)]),
        *CheckoutPages(service).routes(),
        *Console(service, known).routes(),
        Mount("/static", PageFiles(packages=[("studio.pages", "static")])),
        _everything_else(known),
    ]
    return Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={Refusal: _refuse, Exception: _refuse}
    )


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer any error in the studio's own shape, without a trace of its internals."""
    failed = Refusal(500, "internal_error", "The studio failed to answer.")
    refusal = error if isinstance(error, Refusal) else failed
    if request.url.path.startswith(PAGES):
        return page("error.html", request, refusal)
    return refusal_response(refusal)


def _operation(
    operation: Operation, service: Service, keys: Keys, intervention: Intervention | None
) -> Route:
    perform = operation.of(service)
    limit = UPLOAD_LIMIT if operation.body is CreateReference else BODY_LIMIT

    async def answer(request: Request) -> Response:
        account = keys.account(request.headers.get("authorization", ""))
        caller = Caller(account, str(request.base_url).removesuffix("/"), operation.name)
        raw = await read_raw(request, JSON, limit)

        async def carry_out() -> Response:
            try:
                body: Any = perform(read_body(operation.body, raw), caller)
                return JSONResponse(await body if isawaitable(body) else body)
            except Refusal as refusal:
                return refusal_response(refusal)

        if intervention is None:
            return await carry_out()
        return await intervention.answer(caller, raw, carry_out)

    return Route(f"{VERSION}/{operation.name}", answer, methods=["POST"])


def _pictures(service: Service, pictures: Pictures) -> list[Route]:
    async def picture(request: Request) -> Response:
        picture_id = request.path_params["picture_id"]
        subject = service.picture(picture_id)
        if subject is None:
            raise unknown("picture", picture_id)
        try:
            path = await pictures.path(subject, _width(request, subject.size))
        except PictureFault as fault:
            raise Refusal(500, "picture_failed", str(fault)) from fault
        return FileResponse(path, headers=FOR_EVER)

    async def reference(request: Request) -> Response:
        picture_id = request.path_params["picture_id"]
        path = service.references.picture(picture_id)
        if path is None:
            raise unknown("picture", picture_id)
        return FileResponse(path, headers={"Cache-Control": "private, no-cache"})

    return [Route("/pictures/{picture_id}.png", picture), Route("/references/{picture_id}.png", reference)]


def _width(request: Request, own: int) -> int:
    asked = request.query_params.get("width", str(own))
    offered = [str(width) for width in sorted({*WIDTHS, own})]
    if asked not in offered:
        raise Refusal(400, "invalid_width", f"This picture comes in these widths: {', '.join(offered)}.")
    return int(asked)


def _control(control: Control) -> Route:
    async def command(request: Request) -> Response:
        client = "" if request.client is None else request.client.host
        control.check(client, request.headers.get("authorization", ""))
        raw = await read_raw(request, JSON, BODY_LIMIT)
        return JSONResponse(control.perform(request.path_params["name"], raw))

    return Route("/control/{name:path}", command, methods=["POST"])


async def _document(request: Request) -> Response:
    return JSONResponse(document())


def _everything_else(keys: Keys) -> Mount:
    operations = {f"{VERSION}/{operation.name}" for operation in OPERATIONS}

    async def refuse(request: Request) -> Response:
        path = request.url.path
        if path.startswith(PAGES):
            raise Refusal(404, "unknown_page", "There is no such page.")
        keys.account(request.headers.get("authorization", ""))
        if path in operations:
            message = f"{path} is asked by POST, not by {request.method}."
            raise Refusal(405, "method_not_allowed", message, headers={"Allow": "POST"})
        raise Refusal(404, "unknown_operation", f"There is no operation at {path}.")

    # A route takes certain methods only; this takes any that a client can think of.
    return Mount("", request_response(refuse))
