"""Rendering of pages: template, headers, and what is shown when something is refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from studio.offer import CURRENCY_SIGN
from studio.wire import Refusal

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self';"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    # Not `no-referrer`: a browser would then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def page(template: str, request: Request, refusal: Refusal | None = None, **values: object) -> Response:
    """Return the page of this template; one that shows a refusal has the refusal's status."""
    names = {"path": request.url.path, "refusal": refusal, **values}
    html = _ENVIRONMENT.get_template(template).render(names)
    return HTMLResponse(html, 200 if refusal is None else refusal.status, HEADERS)


def redirect(path: str) -> Response:
    """Continue at this path with a GET."""
    return RedirectResponse(path, 303, HEADERS)


class PageFiles(StaticFiles):
    """Style, icon and script, fetched anew each time, so that their version is that of their pages."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers.update({"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"})
        return response


def money(value: Mapping[str, Any]) -> str:
    """Return `{"amount": 1990, "currency": "EUR"}` as `€19.90`."""
    return f"{CURRENCY_SIGN}{value['amount'] / 100:,.2f}"


def instant(value: datetime | str) -> str:
    """Return an instant in UTC, to the second."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{at:%Y-%m-%d %H:%M:%S}"


_ENVIRONMENT = Environment(
    loader=PackageLoader("studio.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(money=money, instant=instant)
