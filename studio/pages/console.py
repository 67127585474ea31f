"""The console: logging in, and the patterns and products of an account, each of which sees its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from studio.errors import Refusal, unknown
from studio.offer import CATEGORIES
from studio.pages.forms import FormTokens, read_form
from studio.pages.rendering import page, redirect
from studio.pages.sessions import PATH, Session, Sessions
from studio.requests import Page
from studio.service import Service

PAGE_LIMIT = 24
Show = Callable[[Request, Session], Awaitable[Response]]


class Gate:
    """Lets in who is logged in, and asks all others to."""

    def __init__(self, sessions: Sessions, tokens: FormTokens) -> None:
        self._sessions = sessions
        self._tokens = tokens

    def guarded(self, show: Show) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint for this page of somebody who is logged in; a form has to be from their session."""

        async def answer(request: Request) -> Response:
            session = self._sessions.find(request, _origin(request))
            if session is None:
                return redirect(request, f"{PATH}/login?{urlencode({'next': _wanted(request)})}")
            if request.method == "POST":
                request.state.form = await self._tokens.read(request, session.purpose)
            request.state.form_token = self._tokens.token(session.purpose)
            return await show(request, session)

        return answer

    async def show_login(self, request: Request) -> Response:
        return page("login.html", request, next=request.query_params.get("next", ""), refusal=None)

    async def log_in(self, request: Request) -> Response:
        form = await read_form(request)
        wanted = form.get("next", "")
        answer = redirect(request, wanted if wanted.startswith(f"{PATH}/") else f"{PATH}/patterns")
        try:
            self._sessions.open(form.get("key", ""), request, answer)
        except Refusal as refusal:
            return page("login.html", request, refusal.status, next=wanted, refusal=refusal)
        return answer

    async def log_out(self, request: Request, session: Session) -> Response:
        answer = redirect(request, f"{PATH}/login")
        self._sessions.close(session, request, answer)
        return answer


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
        form_token=request.state.form_token,
        is_first_page="cursor" not in request.query_params,
        **values,
    )


def asked_page(request: Request) -> Page:
    """Raises Refusal (404) when the cursor is too long for one."""
    cursor = request.query_params.get("cursor", "")
    if len(cursor) > 200:
        raise unknown("cursor", cursor[:20])
    return Page(limit=PAGE_LIMIT, cursor=cursor)


def _wanted(request: Request) -> str:
    """Where to go on after the login: only a page can be asked again."""
    return request.url.path if request.method == "GET" and request.url.path != PATH else ""


def _origin(request: Request) -> str:
    # Addresses in pages are relative to the studio's root.
    return str(request.scope.get("root_path", ""))
