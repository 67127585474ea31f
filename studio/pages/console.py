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
from studio.store import Store
from studio.wire import Refusal, read_form, unknown

PATH = "/console"
SETTINGS = f"{PATH}/settings/api-keys"
PAGE_LIMIT, KEY_NAME_LIMIT = 24, 100

#: Shows a page to somebody who is logged in, with a stored key or (None) one of the key file.
Show = Callable[[Request, ApiKey | None], Awaitable[Response]]


def console_routes(studio: Studio, keys: Keys) -> list[Route]:
    """Return every address under `/console`."""

    def route(path: str, show: Show, method: str = "GET") -> Route:
        async def answer(request: Request) -> Response:
            try:
                holder = keys.holder(request.headers.get("authorization", ""))
            except Refusal as refusal:
                return page("login.html", request, refusal)
            return await show(request, holder)

        return Route(path, answer, methods=[method])

    async def first(request: Request, holder: ApiKey | None) -> Response:
        return redirect(f"{PATH}/patterns")

    return [
        route(PATH, first),
        *(route(f"{PATH}/{name}", show) for name, show in _lists(studio).items()),
        *(route(path, show, method) for path, method, show in _settings(studio.store, keys)),
    ]


def _lists(studio: Studio) -> dict[str, Show]:
    """Return what shows each list, by its name."""
    names = {category.category_id(studio.environment): category.name for category in CATEGORIES}

    def address(checkout_id: str) -> str:
        return f"/checkout/{checkouts.find_checkout(Call(studio), checkout_id).page_id}/order"

    def lists(name: str, read: Callable[[Call, Page], Any]) -> Show:
        async def show(request: Request, holder: ApiKey | None) -> Response:
            """Show the part of the list that the request's cursor leads to. Raises Refusal (404)."""
            cursor = request.query_params.get("cursor", "")
            listed = read(Call(studio), Page(limit=PAGE_LIMIT, cursor=cursor[:200]))
            values = {**listed, "is_first_page": not cursor, "categories": names, "address": address}
            return page(f"{name}.html", request, None, **values)

        return show

    return {
        "patterns": lists("patterns", patterns.list_patterns),
        "products": lists("products", products.list_products),
        "orders": lists("orders", checkouts.list_orders),
    }


def _settings(store: Store, keys: Keys) -> list[tuple[str, str, Show]]:
    """Return the address, the method and what shows each page about API keys."""

    def shown(
        request: Request, holder: ApiKey | None, refusal: Refusal | None = None, new: str = ""
    ) -> Response:
        stored = [key for _, key in store.newest(ApiKey)]
        limit = KEY_NAME_LIMIT
        return page(
            "api_keys.html", request, refusal, holder=holder, keys=stored, new_key=new, name_limit=limit
        )

    async def show(request: Request, holder: ApiKey | None) -> Response:
        return shown(request, holder)

    async def create(request: Request, holder: ApiKey | None) -> Response:
        """Answer with the new key, which is kept nowhere: the page's script never sends a form again."""
        name = (await read_form(request)).get("name", "").strip()
        if not 0 < len(name) <= KEY_NAME_LIMIT:
            message = f"A key needs a name of 1 to {KEY_NAME_LIMIT} characters: what it is for."
            return shown(request, holder, Refusal(400, "invalid_name", message))
        return shown(request, holder, new=keys.create(name))

    async def revoke(request: Request, holder: ApiKey | None) -> Response:
        """Revoke a key, which logs out whoever is logged in with it."""
        await read_form(request)
        key = store.find(ApiKey, key_id=request.path_params["key_id"])
        if key is None:
            raise unknown("key", request.path_params["key_id"])
        keys.revoke(key)
        return redirect(SETTINGS)

    return [
        (SETTINGS, "GET", show),
        (SETTINGS, "POST", create),
        (f"{SETTINGS}/{{key_id}}/revoke", "POST", revoke),
    ]
