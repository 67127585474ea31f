"""How a page is written: its template, its headers, and what is shown when something is refused."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from studio.errors import Refusal

if TYPE_CHECKING:
    from jinja2 import Environment

Endpoint = Callable[[Request], Awaitable[Response]]
#: Next to this module, by the name they are asked by.
FILES = ("studio.css", "studio.svg", "console.js")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self';"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    # Not `no-referrer`: a browser would then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
log = logging.getLogger(__name__)


def page(template: str, request: Request, status: int = 200, **values: object) -> Response:
    """The page of this template."""
    root = request.scope.get("root_path", "")
    html = _environment().get_template(template).render(root=root, path=request.url.path, **values)
    return HTMLResponse(html, status, HEADERS)


def redirect(request: Request, path: str) -> Response:
    """Continue at this path with a GET."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{path}", 303, HEADERS)


def answering_refusals(endpoint: Endpoint) -> Endpoint:
    """Whatever goes wrong becomes a page, without a word of the studio's insides."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            return error_page(request, refusal)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return error_page(request, Refusal(500, "internal_error", "The studio failed to show this page."))

    return answered


def error_page(request: Request, refusal: Refusal) -> Response:
    return page("error.html", request, refusal.status, refusal=refusal)


async def file(request: Request) -> Response:
    """Style, icon and script."""
    name = request.url.path.rpartition("/")[2]
    headers = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
    return FileResponse(Path(__file__).with_name(name), headers=headers)


@cache
def _environment() -> Environment:
    # Loaded with the first page: a studio that only answers operations starts without it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("studio.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(money=money, instant=instant)
    return environment


def money(value: Mapping[str, Any]) -> str:
    """`{"amount": 1990, "currency": "EUR"}` as `€19.90`."""
    from babel.numbers import format_currency, get_currency_precision

    currency = str(value["currency"])
    units = Decimal(int(value["amount"])).scaleb(-get_currency_precision(currency))
    return format_currency(units, currency, locale="en")


def instant(value: datetime | str) -> str:
    """An instant in UTC, to the second."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{at:%Y-%m-%d %H:%M:%S}"
