"""The addresses of all pages."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from studio.errors import Refusal
from studio.keys import Keys
from studio.pages.checkout import CheckoutPages
from studio.pages.console import Console, Gate
from studio.pages.forms import FormTokens
from studio.pages.key_settings import ADDRESS, KeySettings
from studio.pages.rendering import FILES, Endpoint, answering_refusals, file
from studio.pages.sessions import PATH, Sessions
from studio.service import Service


def page_routes(service: Service, keys: Keys) -> list[Route]:
    """Checkout, console and their style."""
    tokens = FormTokens(service.store)
    return [
        *_checkout(CheckoutPages(service, tokens)),
        *_console(service, keys),
        *(_route(f"/static/{name}", file) for name in FILES),
        *(_route(path, _nothing, "GET", "POST") for path in ("/checkout/{rest:path}", PATH + "/{rest:path}")),
    ]


def _checkout(pages: CheckoutPages) -> list[Route]:
    return [
        _route("/checkout/{page_id}", pages.show),
        _route("/checkout/{page_id}/pay", pages.pay, "POST"),
        _route("/checkout/{page_id}/cancel", pages.cancel, "POST"),
        _route("/checkout/{page_id}/order", pages.show_order),
        _route("/checkout/{page_id}/order/cancel", pages.cancel_order, "POST"),
        # Where a refusal was shown, asked again from the address bar.
        _route("/checkout/{page_id}/{form:str}", pages.show),
        _route("/checkout/{page_id}/order/cancel", pages.show_order),
    ]


def _console(service: Service, keys: Keys) -> list[Route]:
    gate = Gate(Sessions(service.store, keys))
    console, settings = Console(service), KeySettings(keys)
    pages = {
        "": console.first,
        "/patterns": console.patterns,
        "/products": console.products,
    }
    return [
        _route(f"{PATH}/login", gate.log_in, "POST"),
        _route(f"{PATH}/logout", gate.guarded(gate.log_out), "POST"),
        *(_route(PATH + path, gate.guarded(show)) for path, show in pages.items()),
        _route(ADDRESS, gate.guarded(settings.show)),
        _route(ADDRESS, gate.guarded(settings.create), "POST"),
        _route(f"{ADDRESS}/{{key_id}}/revoke", gate.guarded(settings.revoke), "POST"),
    ]


async def _nothing(request: Request) -> Response:
    raise Refusal(404, "unknown_page", "There is no such page.")


def _route(path: str, endpoint: Endpoint, *methods: str) -> Route:
    return Route(path, answering_refusals(endpoint), methods=methods or ("GET",))
