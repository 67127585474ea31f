"""The console: logging in, and the patterns, products and orders of an account, each of which sees its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from studio.errors import Refusal
from studio.keys import Keys
from studio.offer import CATEGORIES
from studio.operations.context import Answer, Caller
from studio.pages.key_settings import ADDRESS, KeySettings
from studio.pages.rendering import HEADERS, page, redirect
from studio.pages.sessions import Session, Sessions
from studio.requests import Page
from studio.service import Service
from studio.wire import read_form

PATH = "/console"
PAGE_LIMIT = 24
Show = Callable[[Request, Session], Awaitable[Response]]
List = Callable[[Page, Caller], Answer]


class Console:
    """Every address under `/console`: for who is logged in, and all others are asked to."""

    def __init__(self, service: Service, keys: Keys) -> None:
        self._service = service
        self._sessions = Sessions(service.store, keys)
        self._settings = KeySettings(keys)

    def routes(self) -> list[Route]:
        guarded, settings, post = self._guarded, self._settings, ["POST"]
        return [
            Route(f"{PATH}/login", self.log_in, methods=post),
            Route(f"{PATH}/logout", guarded(self.log_out), methods=post),
            Route(PATH, guarded(self.first)),
            Route(f"{PATH}/patterns", guarded(self.patterns)),
            Route(f"{PATH}/products", guarded(self.products)),
            Route(f"{PATH}/orders", guarded(self.orders)),
            Route(ADDRESS, guarded(settings.show)),
            Route(ADDRESS, guarded(settings.create), methods=post),
            Route(f"{ADDRESS}/{{key_id}}/revoke", guarded(settings.revoke), methods=post),
        ]

    async def log_in(self, request: Request) -> Response:
        """Answer with the token of a session, for the page's script."""
        form = await read_form(request)
        try:
            return PlainTextResponse(self._sessions.open(form.get("key", "")), headers=HEADERS)
        except Refusal as refusal:
            return page("login.html", request, refusal)

    async def log_out(self, request: Request, session: Session) -> Response:
        self._sessions.close(session)
        return redirect(PATH)

    async def first(self, request: Request, session: Session) -> Response:
        return redirect(f"{PATH}/patterns")

    async def patterns(self, request: Request, session: Session) -> Response:
        return self._list("patterns.html", request, session, self._service.patterns.list)

    async def products(self, request: Request, session: Session) -> Response:
        environment = self._service.environment
        names = {category.category_id(environment): category.name for category in CATEGORIES}
        return self._list("products.html", request, session, self._service.products.list, categories=names)

    async def orders(self, request: Request, session: Session) -> Response:
        def address(checkout_id: str) -> str:
            checkout = self._service.checkouts.find(checkout_id, Caller(session.holder.account))
            return f"/checkout/{checkout.page_id}/order"

        return self._list("orders.html", request, session, self._service.orders.list, address=address)

    def _list(self, template: str, request: Request, session: Session, read: List, **values: Any) -> Response:
        """Return the part of a list that the request's cursor leads to. Raises Refusal (404)."""
        cursor = request.query_params.get("cursor", "")
        body = Page(limit=PAGE_LIMIT, cursor=cursor[:200])
        listed: dict[str, Any] = read(body, Caller(session.holder.account))
        return page(template, request, holder=session.holder, is_first_page=not cursor, **listed, **values)

    def _guarded(self, show: Show) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint for this page of somebody who is logged in; all others get the page to log in at."""

        async def answer(request: Request) -> Response:
            session = self._sessions.find(request)
            if session is None:
                return page("login.html", request, status=401)
            return await show(request, session)

        return answer
