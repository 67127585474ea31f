"""The console: patterns, products, orders and API keys, for people who show an API key.

The page's script keeps the key for its tab and sends it as a header, as programs do; all others are asked to log in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from studio.keys import Keys
from studio.offer import CATEGORIES
from studio.operations import checkouts, patterns, products
from studio.operations.call import Call, Studio
from studio.pages.rendering import page, redirect
from studio.records import ApiKey
from studio.requests import Page
from studio.wire import Refusal, read_form, unknown

PATH = "/console"
SETTINGS = f"{PATH}/settings/api-keys"
PAGE_LIMIT, KEY_NAME_LIMIT = 24, 100

#: Shows a page to somebody who is logged in, with a stored key or (None) one of the key file.
Show = Callable[[Request, ApiKey | None], Awaitable[Response]]


class Console:
    """Every address under `/console`."""

    def __init__(self, studio: Studio, keys: Keys) -> None:
        self._call, self._store, self._keys = Call(studio), studio.store, keys

    def routes(self) -> list[Route]:
        return [
            self._route(PATH, self.first),
            self._list("patterns", patterns.list_patterns),
            self._list("products", products.list_products),
            self._list("orders", checkouts.list_orders),
            self._route(SETTINGS, self.keys),
            self._route(SETTINGS, self.create_key, "POST"),
            self._route(f"{SETTINGS}/{{key_id}}/revoke", self.revoke_key, "POST"),
        ]

    async def first(self, request: Request, holder: ApiKey | None) -> Response:
        return redirect(f"{PATH}/patterns")

    async def keys(self, request: Request, holder: ApiKey | None, new: str = "") -> Response:
        stored, limit = [key for _, key in self._store.newest(ApiKey)], KEY_NAME_LIMIT
        return page("api_keys.html", request, holder=holder, keys=stored, new_key=new, name_limit=limit)

    async def create_key(self, request: Request, holder: ApiKey | None) -> Response:
        """Answer with the new key, which is kept nowhere: the page's script never sends a form again."""
        name = (await read_form(request)).get("name", "").strip()[:KEY_NAME_LIMIT]
        return await self.keys(request, holder, self._keys.create(name or "without a name"))

    async def revoke_key(self, request: Request, holder: ApiKey | None) -> Response:
        """Revoke a key, which logs out whoever is logged in with it."""
        await read_form(request)
        key = self._store.find(ApiKey, key_id=request.path_params["key_id"])
        if key is None:
            raise unknown("key", request.path_params["key_id"])
        self._keys.revoke(key)
        return redirect(SETTINGS)

    def _list(self, name: str, read: Callable[[Call, Page], Any]) -> Route:
        categories = {one.category_id(self._call.studio.environment): one.name for one in CATEGORIES}

        async def show(request: Request, holder: ApiKey | None) -> Response:
            """Show the part of the list that the request's cursor leads to. Raises Refusal (404)."""
            cursor = request.query_params.get("cursor", "")
            listed = read(self._call, Page(limit=PAGE_LIMIT, cursor=cursor[:200]))
            values = {"is_first_page": not cursor, "categories": categories, "address": self._address}
            return page(f"{name}.html", request, None, **listed, **values)

        return self._route(f"{PATH}/{name}", show)

    def _address(self, checkout_id: str) -> str:
        return f"/checkout/{checkouts.find_checkout(self._call, checkout_id).page_id}/order"

    def _route(self, path: str, show: Show, method: str = "GET") -> Route:
        async def answer(request: Request) -> Response:
            try:
                holder = self._keys.holder(request.headers.get("authorization", ""))
            except Refusal as refusal:
                return page("login.html", request, refusal)
            return await show(request, holder)

        return Route(path, answer, methods=[method])
