"""Our own Prefect server: serves its own address and its own pages alone, and has a page that logs a browser in.

Prefect checks the credential itself (PREFECT_SERVER_API_AUTH_STRING), over HTTP and on its websockets. This checks
what Prefect does not: the Host, against DNS rebinding, and the Origin, against requests of other pages.
"""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from patternmill.files import UMASK
from prefect_host.bound_socket import handed_on
from prefect_host.first_database import keeping_first_database, stage_first_database
from prefect_host.own_server import LOGIN_PATH, USER, template_folder

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: FastAPI's descriptions of the API, which need no credential.
_DESCRIPTIONS = frozenset({"/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"})
#: Against clickjacking, and against pictures and requests to other servers from texts in the UI.
_SEALED = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'self'; object-src 'none'",
}

# The secret is in the fragment, which no browser sends and no log has. Prefect's UI reads it from the local storage.
_SCRIPT = f"""
const [secret, ...path] = location.hash.slice(1).split('/');
history.replaceState(null, '', location.pathname);
const password = btoa('{USER}:' + secret);
fetch('/api/admin/version', {{headers: {{Authorization: 'Basic ' + password}}}}).then(answer => {{
  if (!answer.ok) throw new Error(answer.status);
  localStorage.setItem('prefect-password', password);
  location.replace('/' + path.filter(Boolean).join('/'));
}}).catch(() => {{
  document.body.textContent = 'This address does not log in. `patternmill status --open`, on a terminal, shows one.';
}});
"""
_PAGE = f'<!doctype html><meta charset="utf-8"><title>Patternmill</title><body>Logging in …<script>{_SCRIPT}</script>'
_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_LOGIN_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'sha256-{_HASH}'; connect-src 'self'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


class Guard:
    """Lets through requests with this server's Host, and its own Origin or none."""

    def __init__(self, app: ASGIApp, authority: str) -> None:
        self._app = app
        self._authority = authority
        self._hosts = [authority.encode()]
        self._origin = f"http://{authority}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        answer = self._answer(scope)
        if answer is None:
            await self._app(scope, receive, _sealed(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        """A response in place of Prefect's server's; None lets the request through."""
        headers = scope["headers"]
        if [value for name, value in headers if name == b"host"] != self._hosts:
            return PlainTextResponse(f"This server is http://{self._authority} alone.\n", 421)
        if any(value != self._origin for name, value in headers if name == b"origin"):
            return PlainTextResponse("No other page may use this server.\n", 403)
        if scope["path"] in _DESCRIPTIONS:
            return PlainTextResponse("Not here.\n", 404)
        return HTMLResponse(_PAGE, headers=_LOGIN_HEADERS) if scope["path"] == LOGIN_PATH else None


def _sealed(send: Send) -> Send:
    async def send_sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_SEALED)
        await send(message)

    return send_sealed


def serve() -> None:
    """Serve until a signal, as `prefect server start` does, with the settings in the environment."""
    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings

    settings = get_current_settings().server
    api, directory = settings.api, get_current_settings().home
    is_staged = stage_first_database(directory, template_folder())
    assert api.auth_string is not None, "our own server never answers without a credential"
    # Before the umask: it may write the UI's files, for all users of that installation of Prefect.
    app = create_app(final=True)
    os.umask(UMASK)
    guarded = Guard(app, f"{api.host}:{api.port}")
    config = uvicorn.Config(
        guarded if is_staged else keeping_first_database(guarded, directory, template_folder()),
        timeout_keep_alive=api.keepalive_timeout,
        ws_ping_interval=api.websocket_ping_interval,
        ws_ping_timeout=api.websocket_ping_timeout,
        log_level=settings.logging_level.lower(),
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[handed_on()])
