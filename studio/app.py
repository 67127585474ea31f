"""The HTTP face of the studio: who may ask, which addresses there are, and how answers are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from inspect import isawaitable
from itertools import islice
from typing import get_type_hints

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from studio.keys import Keys
from studio.openapi import VERSION, document
from studio.operations import jobs
from studio.operations.call import Call, Studio
from studio.operations.table import OPERATIONS
from studio.pages.checkout import checkout_routes
from studio.pages.console import PAGE_LIMIT, Console
from studio.pages.rendering import PageFiles, page
from studio.pictures import PAGE_WIDTH, WIDTHS, PictureFault
from studio.records import Job, Reference
from studio.requests import REFERENCE_LIMIT
from studio.store import LAST
from studio.wire import JSON, Body, Refusal, read_body, read_raw, unknown

LOOPBACK = "127.0.0.1"
#: The most bytes of a request body; more where a picture is sent.
BODY_LIMIT, UPLOAD_LIMIT = 1_000_000, REFERENCE_LIMIT * 4 // 3 + 10_000
#: For addresses that cannot be guessed, whose content never changes.
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
#: The paths below which pages for people are.
PAGES = ("/checkout/", "/console")
#: Seconds without a new request after which pictures are drawn ahead.
REST_SECONDS = 0.5


def build_app(studio: Studio, keys: Iterable[str]) -> Starlette:
    """Return the application. `keys` are bearer keys that are accepted besides the stored ones."""
    known = Keys(studio.store, keys)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        ahead = asyncio.create_task(_draw_ahead(studio))
        yield
        ahead.cancel()
        studio.pictures.close()

    async def refuse(request: Request, error: Exception) -> Response:
        refusal = _refusal(request, error, known)
        if request.url.path.startswith(PAGES):
            return page("error.html", request, refusal)
        return JSONResponse(refusal.body(), refusal.status, refusal.headers)

    app = Starlette(
        routes=[
            *(_operation(name, studio, known) for name in OPERATIONS),
            *_pictures(studio),
            Route("/openapi.json", lambda request: JSONResponse(document())),
            *checkout_routes(studio),
            *Console(studio, known).routes(),
            Mount("/static", PageFiles(packages=[("studio.pages", "static")])),
        ],
        # A page of another name that was pointed here (DNS rebinding) sees nothing.
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"])],
        lifespan=lifespan,
        exception_handlers={Refusal: refuse, HTTPException: refuse, Exception: refuse},
    )
    app.router.redirect_slashes = False
    return app


def _refusal(request: Request, error: Exception, keys: Keys) -> Refusal:
    """Return any error in the studio's own shape, without a trace of its internals."""
    path = request.url.path
    if isinstance(error, Refusal):
        return error
    if not isinstance(error, HTTPException):
        return Refusal(500, "internal_error", "The studio failed to answer.")
    if path.startswith(PAGES):
        return Refusal(404, "unknown_page", "There is no such page.")
    try:
        keys.holder(request.headers.get("authorization", ""))
    except Refusal as refusal:
        return refusal
    if path.removeprefix(f"{VERSION}/") in OPERATIONS:
        message = f"{path} is asked by POST, not by {request.method}."
        return Refusal(405, "method_not_allowed", message, headers={"Allow": "POST"})
    return Refusal(404, "unknown_operation", f"There is no operation at {path}.")


def _operation(name: str, studio: Studio, keys: Keys) -> Route:
    perform = OPERATIONS[name]
    body: type[Body] = get_type_hints(perform)["body"]
    limit = UPLOAD_LIMIT if name == "references/create" else BODY_LIMIT

    async def answer(request: Request) -> Response:
        keys.holder(request.headers.get("authorization", ""))
        call = Call(studio, str(request.base_url).removesuffix("/"), name)
        done = perform(call, read_body(body, await read_raw(request, JSON, limit)))
        return JSONResponse(await done if isawaitable(done) else done)

    return Route(f"{VERSION}/{name}", answer, methods=["POST"])


def _pictures(studio: Studio) -> list[Route]:
    async def picture(request: Request) -> Response:
        picture_id = request.path_params["picture_id"]
        job = studio.store.find(Job, picture_id=picture_id)
        if job is None or not job.has_succeeded(studio.now()):
            raise unknown("picture", picture_id)
        try:
            path = await studio.pictures.path(job.subject, _width(request, job.subject.size))
        except PictureFault as fault:
            raise Refusal(500, "picture_failed", str(fault)) from fault
        return FileResponse(path, headers=FOR_EVER)

    async def reference(request: Request) -> Response:
        picture_id = request.path_params["picture_id"]
        if studio.store.find(Reference, picture_id=picture_id, deleted_at=None) is None:
            raise unknown("picture", picture_id)
        return FileResponse(
            studio.pictures.reference(picture_id), headers={"Cache-Control": "private, no-cache"}
        )

    return [Route("/pictures/{picture_id}.png", picture), Route("/references/{picture_id}.png", reference)]


def _width(request: Request, own: int) -> int:
    asked = request.query_params.get("width", str(own))
    offered = [str(width) for width in sorted({*WIDTHS, own})]
    if asked not in offered:
        raise Refusal(400, "invalid_width", f"This picture comes in these widths: {', '.join(offered)}.")
    return int(asked)


async def _draw_ahead(studio: Studio) -> None:
    """Draw in each moment of rest what the console shows first, so that no page of it stays blank for seconds."""
    before, drawn = list[str](), list[str]()
    while studio.pace != "instant":
        await asyncio.sleep(REST_SECONDS)
        kinds = [islice(jobs.results(Call(studio), kind, LAST), PAGE_LIMIT) for kind in jobs.PREFIXES]
        newest = [job for kind in kinds for _, job in kind]
        now = [job.picture_id for job in newest]
        if now == before != drawn:
            for job in newest:
                with suppress(PictureFault):
                    await studio.pictures.path(job.subject, PAGE_WIDTH)
            drawn = now
        before = now
