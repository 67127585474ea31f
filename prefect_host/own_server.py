"""Our own Prefect server, with its UI, where no other is configured.

It is Prefect's application with a credential, its history kept under the home, and a page that logs a browser in.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Self

from patternmill.errors import PatternmillError
from patternmill.files import UMASK, fresh_secret, replace_private
from prefect_host import client_settings
from prefect_host.client_settings import API_URL, server_answers
from prefect_host.shared_process import HOST, SharedProcess, bound_socket

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

#: The user name of our own server's credential; the password is secret.
USER = "patternmill"
#: The page of our own server that logs a browser in.
LOGIN_PATH = "/patternmill-login"

# The secret is in the fragment, which no browser sends and no log has. Prefect's UI reads it from the local storage.
_LOGIN_PAGE = f"""<!doctype html><meta charset="utf-8"><title>Patternmill</title><body>Logging in …<script>
const password = btoa('{USER}:' + location.hash.slice(1));
history.replaceState(null, '', location.pathname);
fetch('/api/admin/version', {{headers: {{Authorization: 'Basic ' + password}}}}).then(answer => {{
  if (!answer.ok) throw new Error(answer.status);
  localStorage.setItem('prefect-password', password);
  location.replace('/');
}}).catch(() => {{
  document.body.textContent = 'This address does not log in. `patternmill status --open`, on a terminal, shows one.';
}});
</script>"""
#: Against clickjacking, and against pictures and requests to other servers from texts in the UI.
_POLICY = "frame-ancestors 'none'; img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'self'"
#: The settings of every server that shows our runs.
SETTINGS = Path(__file__).resolve().parent.parent / "deployments" / "prefect-server.env"
#: The variable with the ledger whose figures a server shows on its page of metrics; unset, it has no such page.
LEDGER_URL = "PATTERNMILL_LEDGER_URL"
METRICS_PATH = "/metrics"
#: More settings of a server that lives as long as a command: nothing is scheduled or automated there.
UNATTENDED = {
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    # What only a person uses in the UI of `up`; it takes most of a second.
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
}


def server_environment(directory: Path, port: int) -> dict[str, str]:
    """Return the settings of a server that keeps all in `directory`, in place of the caller's."""
    lines = [line for line in SETTINGS.read_text("utf-8").splitlines() if line and line[0] != "#"]
    return {
        **dict(line.split("=", 1) for line in lines),
        **client_settings.kept_in(directory),
        # In its working folder: no letter of a path has to be quoted.
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:///prefect.db",
        # Which address its pages call.
        "PREFECT_SERVER_UI_API_URL": f"http://{HOST}:{port}/api",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "DO_NOT_TRACK": "1",
    }


class OwnServer(SharedProcess):
    """One user of the server of a home; the server ends with its last user."""

    title = "The Prefect server"
    remedy = f"set {API_URL} to a server of yours."

    def __init__(
        self, home: Path, *, port: int | None = None, settings: Mapping[str, str] = UNATTENDED
    ) -> None:
        """Use the server of a home; `port` and `settings` count if this user starts it."""
        super().__init__(home.resolve() / "prefect")
        self._named_port, self._settings = port, settings

    @property
    def ui_url(self) -> str:
        """Return the address of its pages."""
        return f"http://{HOST}:{self._port()}"

    @property
    def api_url(self) -> str:
        """Return the address of its API."""
        return f"{self.ui_url}/api"

    @property
    def credential(self) -> str:
        """Return what opens it, `user:password`; of the server that runs, or ran last."""
        return (self.directory / "credential").read_text().strip()

    @property
    def client_environment(self) -> dict[str, str]:
        """Return the environment of its clients, with its credential; Prefect's files and profiles are kept with it."""
        return {
            **client_settings.client_environment(self.api_url),
            **client_settings.kept_in(self.directory),
            "PREFECT_API_AUTH_STRING": self.credential,
        }

    def login_url(self) -> str:
        """Return an address that logs the browser in that opens it: only for the person's own terminal."""
        return f"{self.ui_url}{LOGIN_PATH}#{self.credential.removeprefix(f'{USER}:')}"

    def for_this_process(self) -> Self:
        """Start it, and point Prefect in this process at it. Call it before Prefect is imported."""
        self.start()
        client_settings.use_server(self.client_environment)
        return self

    def is_ready(self) -> bool:
        """Return whether it answers, and is ours."""
        # In this order: while its process lives, nobody else can have its port and be sent the credential.
        return server_answers(self.api_url, timeout=2.0) and self.is_alive()

    def prepared(self) -> tuple[socket, Sequence[str], Mapping[str, str]]:
        """Return how it is started, with a credential that nobody else has had."""
        # Not the last port again: a browser keeps what another user may have served there since.
        bound = bound_socket(self._named_port or 0)
        port: int = bound.getsockname()[1]
        replace_private(self.directory / "port", str(port))
        fresh_secret(self.directory / "credential", f"{USER}:")
        secret = {
            "PREFECT_SERVER_API_AUTH_STRING": self.credential,
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.ui_url,
            # For the links to runs in its messages.
            "PREFECT_UI_URL": self.ui_url,
        }
        return bound, [__name__], {**server_environment(self.directory, port), **self._settings, **secret}

    def _port(self) -> int:
        """Return the port of the server that runs or ran here; 0: none ever did."""
        try:
            return int((self.directory / "port").read_text())
        except (OSError, ValueError):
            return 0


def serve() -> None:
    """Serve Prefect's application until a signal, with the settings in the environment, on standard input's socket."""
    import uvicorn
    from prefect.server.api.server import create_app
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    credential, ledger_url = os.environ["PREFECT_SERVER_API_AUTH_STRING"], os.environ.pop(LEDGER_URL, None)
    assert credential, "our own server never answers without a credential"
    # Before the umask: it may write the UI's files, for all users of that installation of Prefect.
    app = create_app(final=True)
    os.umask(UMASK)
    app.router.routes.insert(0, Route(LOGIN_PATH, lambda request: HTMLResponse(_LOGIN_PAGE)))
    if ledger_url is not None:
        app.router.routes.insert(0, metrics_route(METRICS_PATH, credential, ledger_url))
    # Around the application, not in it: the server's own automations ask it by another name.
    guarded = TrustedHostMiddleware(app, allowed_hosts=[HOST])
    config = uvicorn.Config(guarded, log_level="warning", headers=[("Content-Security-Policy", _POLICY)])
    uvicorn.Server(config).run(sockets=[socket(fileno=0)])


def metrics_route(path: str, credential: str, ledger_url: str) -> Route:
    """Serve the figures of a ledger to whoever has the credential, `user:password`, as Basic or as Bearer."""
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    from patternmill.ledger.reports.metrics import CONTENT_TYPE

    basic = base64.b64encode(credential.encode()).decode()
    accepted = [f"{kind} {text}".encode() for kind, text in (("Basic", basic), ("Bearer", credential))]

    async def page(request: Request) -> Response:
        given = request.headers.get("authorization", "").encode()
        if not any([hmac.compare_digest(given, header) for header in accepted]):
            return PlainTextResponse("Unauthorized", 401, {"WWW-Authenticate": 'Basic realm="Patternmill"'})
        try:
            return Response(await asyncio.to_thread(_metrics, ledger_url), media_type=CONTENT_TYPE)
        except PatternmillError as error:
            return PlainTextResponse(error.message, 503)

    return Route(path, page)


def _metrics(ledger_url: str) -> bytes:
    """Return the figures as they are now; a ledger that nobody has made is not made here."""
    from patternmill.ledger.ledger import Ledger, open_database
    from patternmill.ledger.reports.metrics import metrics

    file = Path(ledger_url.removeprefix("sqlite:///"))
    if ledger_url.startswith("sqlite:///") and not file.exists():
        return b"# EOF\n"
    with Ledger(open_database(ledger_url)) as ledger:
        return metrics(ledger)


if __name__ == "__main__":
    serve()
