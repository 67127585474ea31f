"""The page of metrics of our own server, behind the server's credential: figures of the ledger that `up` serves."""

from __future__ import annotations

import asyncio
import base64
import hmac
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from patternmill.errors import PatternmillError
from patternmill.ledger.ledger import Ledger, open_database
from patternmill.ledger.reports.metrics import CONTENT_TYPE, metrics

_EMPTY = b"# EOF\n"


def metrics_route(path: str, credential: str, ledger_url: str) -> Route:
    """Serve the figures of a ledger to whoever has the credential, `user:password`, as Basic or as Bearer."""
    basic = base64.b64encode(credential.encode()).decode()
    accepted = [f"{kind} {text}".encode() for kind, text in (("Basic", basic), ("Bearer", credential))]

    async def page(request: Request) -> Response:
        given = request.headers.get("authorization", "").encode()
        if not any([hmac.compare_digest(given, known) for known in accepted]):
            return PlainTextResponse("Unauthorized", 401, {"WWW-Authenticate": 'Basic realm="Patternmill"'})
        try:
            content = await asyncio.to_thread(_read, ledger_url)
        except PatternmillError as error:
            return PlainTextResponse(error.message, 503)
        return Response(content, media_type=CONTENT_TYPE)

    return Route(path, page)


def _read(ledger_url: str) -> bytes:
    """Return the figures as they are now; a ledger that nobody has made is not made here."""
    file = Path(ledger_url.removeprefix("sqlite:///"))
    if ledger_url.startswith("sqlite:///") and not file.exists():
        return _EMPTY
    with Ledger(open_database(ledger_url, file.parent)) as ledger:
        return metrics(ledger)
