"""The console: logging in, and the patterns and products of an account, each of which sees its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from studio.errors import Refusal, unknown
from studio.offer import CATEGORIES
from studio.pages.forms import read_form
from studio.pages.rendering import HEADERS, page, redirect
from studio.pages.sessions import PATH, Session, Sessions
from studio.requests import Page
from studio.service import Service

PAGE_LIMIT = 24
Show = Callable[[Request, Session], Awaitable[Response]]


class Gate:
    """Lets in who is logged in, and asks all others to."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def guarded(self, show: Show) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint for this page of somebody who is logged in; all others get the page to log in at."""

        async def answer(request: Request) -> Response:
            session = self._sessions.find(request, _origin(request))
            if session is None:
                return _login_page(request)
            if request.method == "POST":
                request.state.form = await read_form(request)
            return await show(request, session)

        return answer

    async def log_in(self, request: Request) -> Response:
        """Answer with the token of a session, for the page's script."""
        form = await read_form(request)
        try:
            return PlainTextResponse(self._sessions.open(form.get("key", "")), headers=HEADERS)
        except Refusal as refusal:
            return _login_page(request, refusal)

    async def log_out(self, request: Request, session: Session) -> Response:
        self._sessions.close(session)
        return redirect(request, PATH)


def _login_page(request: Request, refusal: Refusal | None = None) -> Response:
    return page("login.html", request, 401, refusal=refusal)


class Console:
    """The pages of what an account has."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def first(self, request: Request, session: Session) -> Response:
        return redirect(request, f"{PATH}/patterns")

    async def patterns(self, request: Request, session: Session) -> Response:
        listed = self._service.patterns.list(asked_page(request), session.caller)
        return console_page("patterns.html", request, session, listed)

    async def products(self, request: Request, session: Session) -> Response:
        listed = self._service.products.list(asked_page(request), session.caller)
        environment = self._service.range.environment
        names = {category.category_id(environment): category.name for category in CATEGORIES}
        return console_page("products.html", request, session, {**listed, "categories": names})


def console_page(
    template: str, request: Request, session: Session, values: Mapping[str, object], status: int = 200
) -> Response:
    """A page of the console, with what its frame shows."""
    return page(
        template,
        request,
        status,
        holder=session.holder,
        is_first_page="cursor" not in request.query_params,
        **values,
    )


def asked_page(request: Request) -> Page:
    """Raises Refusal (404) when the cursor is too long for one."""
    cursor = request.query_params.get("cursor", "")
    if len(cursor) > 200:
        raise unknown("cursor", cursor[:20])
    return Page(limit=PAGE_LIMIT, cursor=cursor)


def _origin(request: Request) -> str:
    # Addresses in pages are relative to the studio's root.
    return str(request.scope.get("root_path", ""))
