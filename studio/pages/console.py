"""The console: logging in, and the patterns, products, orders and API keys of an account, each of which sees its own.

A session is opened with an API key, and closed by logging out, by time, or when the key is revoked.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from studio.errors import Refusal, unknown
from studio.keys import Holder, Keys, sha256
from studio.offer import CATEGORIES
from studio.operations.context import Answer, Caller
from studio.pages.rendering import HEADERS, page, redirect
from studio.requests import Page
from studio.service import Service
from studio.store import Store
from studio.store.records import SessionRecord
from studio.wire import read_form

PATH = "/console"
SETTINGS = "/console/settings/api-keys"
PAGE_LIMIT = 24
KEY_NAME_LIMIT = 100
SESSION_LASTS = timedelta(hours=12)
#: The parameter that names the session. A cookie would be sent to every port of the machine.
SESSION_HEADER = "Studio-Session"


@dataclass(frozen=True)
class Session:
    """A person who is logged in."""

    holder: Holder
    token_sha256: str


class Sessions:
    """Opens, finds and closes sessions; they are kept in the studio's file and named by a header."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._table = store.sessions
        self._keys = keys

    def open(self, key: str) -> str:
        """Log in, and return the token of the session. Raises Refusal (401) unless the key is valid."""
        key_sha256 = sha256(key.strip())
        self._keys.holder_of(key_sha256)
        token, now = secrets.token_urlsafe(32), datetime.now(UTC)
        for session in self._table.all():
            if session.expires_at <= now:
                self._table.delete(sha256=session.sha256)
        session = SessionRecord(sha256=sha256(token), key_sha256=key_sha256, expires_at=now + SESSION_LASTS)
        self._table.add(session)
        return token

    def find(self, request: Request) -> Session | None:
        """Return the session that a request names, while it lasts and its key is valid."""
        session = self._table.one(sha256=sha256(request.headers.get(SESSION_HEADER, "")))
        if session is None or session.expires_at <= datetime.now(UTC):
            return None
        try:
            return Session(self._keys.holder_of(session.key_sha256), session.sha256)
        except Refusal:
            return None

    def close(self, session: Session) -> None:
        self._table.delete(sha256=session.token_sha256)


Show = Callable[[Request, Session], Awaitable[Response]]
List = Callable[[Page, Caller], Answer]


class Console:
    """Every address under `/console`, for people who are logged in; all others are asked to log in."""

    def __init__(self, service: Service, keys: Keys) -> None:
        self._service = service
        self._sessions = Sessions(service.store, keys)
        self._keys = keys

    def routes(self) -> list[Route]:
        guarded, post = self._guarded, ["POST"]
        return [
            Route(f"{PATH}/login", self.log_in, methods=post),
            Route(f"{PATH}/logout", guarded(self.log_out), methods=post),
            Route(PATH, guarded(self.first)),
            Route(f"{PATH}/patterns", guarded(self.patterns)),
            Route(f"{PATH}/products", guarded(self.products)),
            Route(f"{PATH}/orders", guarded(self.orders)),
            Route(SETTINGS, guarded(self.keys)),
            Route(SETTINGS, guarded(self.create_key), methods=post),
            Route(f"{SETTINGS}/{{key_id}}/revoke", guarded(self.revoke_key), methods=post),
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

    async def keys(self, request: Request, session: Session) -> Response:
        return self._key_page(request, session)

    async def create_key(self, request: Request, session: Session) -> Response:
        """Answer with the new key, which is kept nowhere: the page's script never sends a form again."""
        name = (await read_form(request)).get("name", "").strip()
        if not 0 < len(name) <= KEY_NAME_LIMIT:
            message = f"A key needs a name of 1 to {KEY_NAME_LIMIT} characters: what it is for."
            return self._key_page(request, session, Refusal(400, "invalid_name", message))
        _, key = self._keys.create(name, session.holder.account)
        return self._key_page(request, session, new_key=key)

    async def revoke_key(self, request: Request, session: Session) -> Response:
        """Revoke a key, which logs out whoever is logged in with it."""
        await read_form(request)
        key_id = request.path_params["key_id"]
        if key_id not in [key.key_id for key in self._keys.of_account(session.holder.account)]:
            raise unknown("key", key_id)
        self._keys.revoke(key_id)
        return redirect(SETTINGS)

    def _key_page(
        self, request: Request, session: Session, refusal: Refusal | None = None, new_key: str = ""
    ) -> Response:
        keys = self._keys.of_account(session.holder.account)
        holder, limit = session.holder, KEY_NAME_LIMIT
        return page(
            "api_keys.html", request, refusal, holder=holder, keys=keys, new_key=new_key, name_limit=limit
        )

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
