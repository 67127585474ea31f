"""Our own Prefect server, with its UI, where no other is configured, and Prefect's settings for all who use a server.

The server's history is kept under the home. One that dies in use is restarted on the same port, which stays bound
meanwhile: what Prefect's client sends waits there, so that the record of the run stays complete.

Prefect reads its settings from the environment, on import; only `use_server` sets them in this process.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Self

from patternmill.errors import PatternmillError
from patternmill.files import fresh_secret, replace_private
from prefect_host.bound_socket import HOST, bound_socket, port_of
from prefect_host.shared_process import SharedProcess

API_URL = "PREFECT_API_URL"
#: The user name of our own server's credential; the password is secret.
USER = "patternmill"
#: The page of our own server that logs a browser in.
LOGIN_PATH = "/patternmill-login"


#: In the server's directory.
DATABASE = "prefect.db"
CREDENTIAL = "credential"


def template_folder() -> Path:
    """Where this installation keeps the database of a fresh home: another Prefect makes another one."""
    return Path(sys.prefix) / "share" / "patternmill" / f"prefect-{version('prefect')}"


def use_server(api_url: str, home: Path | None = None) -> None:
    """Point Prefect at a server, in this process and those that it starts. Call it before Prefect is imported."""
    os.environ.update(client_environment(api_url, home))


def client_environment(api_url: str, home: Path | None = None) -> dict[str, str]:
    """The environment of a client of the server at `api_url`.

    With `home` (our own server) Prefect's files and profiles are kept there too; without it (the user's server) the
    user's Prefect home and profile apply, which may have the key to that server.
    """
    quiet = {
        API_URL: api_url,
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "DO_NOT_TRACK": "1",
        # The terminal is ours; the server still gets every log, with its traceback.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_HANDLERS_DEBUG_LEVEL": "CRITICAL",
        # A "Finished in state" log a task run repeats its state.
        "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        # 2, 4 and 8 seconds: enough for a restart, without a long delay when the server is gone.
        "PREFECT_CLIENT_MAX_RETRIES": "3",
        "PREFECT_API_REQUEST_TIMEOUT": "10",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    }
    if home is None:
        return quiet
    directory = home.resolve() / "prefect"
    return quiet | {
        "PREFECT_API_AUTH_STRING": own_password(home),
        "PREFECT_HOME": str(directory),
        "PREFECT_PROFILES_PATH": str(directory / "profiles.toml"),
        "PREFECT_PROFILE": "ephemeral",
    }


def server_environment(directory: Path, port: int) -> dict[str, str]:
    """Our own server's settings, in place of the caller's."""
    return {
        "PREFECT_HOME": str(directory),
        "PREFECT_PROFILES_PATH": str(directory / "profiles.toml"),
        # From its working directory: what Prefect remembers of a database goes by this text (first_database.py).
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:///prefect.db",
        # Where it listens, and which address its pages call.
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_UI_API_URL": f"http://{HOST}:{port}/api",
        # One row a commit by default, which cannot keep up with a run.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        # Nothing is scheduled or automated on a server that lives as long as a command.
        "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_COLORS": "false",
        "DO_NOT_TRACK": "1",
        "PYTHONUNBUFFERED": "1",
    }


def own_password(home: Path) -> str:
    """The credential of our own server on this home, `user:password`: of the one that runs, or ran last."""
    return (home.resolve() / "prefect" / CREDENTIAL).read_text().strip()


#: The first start makes the database, which is slow on a slow disk.
READY_SECONDS = 120.0
#: How often a server that dies in use is restarted, and how soon.
RESTARTS = 3
RESTART_SECONDS = 2.0
#: For closing what an earlier command left open, which may be most of the record of a large run.
CLOSING_SECONDS = 120.0
REMEDY = "set PREFECT_API_URL to a server of yours."


def server_answers(api_url: str, timeout: float = 5.0) -> bool:
    """Whether a Prefect API answers at `api_url` (which ends with `/api`)."""
    if not api_url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{api_url.rstrip('/')}/health", timeout=timeout) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


class OwnServer:
    """One user of the server of a home; the server ends with its last user."""

    def __init__(self, home: Path, *, port: int | None = None) -> None:
        self.directory = home.resolve() / "prefect"
        self.port = 0
        self._named_port = port
        #: Bound by the first start, and kept until this user leaves.
        self._listener: socket.socket | None = None
        self._process = SharedProcess(self.directory, "The Prefect server")
        self._changing = threading.Lock()
        self._is_supervised = False

    @property
    def ui_url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def api_url(self) -> str:
        return f"{self.ui_url}/api"

    def login_url(self) -> str:
        """Logs the browser in that opens it: only for the person's own terminal."""
        return f"{self.ui_url}{LOGIN_PATH}#{self._auth_string().removeprefix(f'{USER}:')}/"

    @property
    def is_owner(self) -> bool:
        return self._process.child is not None

    @property
    def has_database(self) -> bool:
        """Whether it has, or gets a copy of, the database that Prefect would take seconds to make."""
        return any(os.access(place / DATABASE, os.R_OK) for place in (self.directory, template_folder()))

    @property
    def is_running(self) -> bool:
        """Whether another command serves it now, or its processes use it."""
        return (self.directory / "server.lock").exists() and self._process.is_alive()

    def start(self) -> None:
        """Join the running server, or start one. Does not wait for it to answer.

        Raises PatternmillError when the named port is taken.
        """
        try:
            if not self._start_or_join():
                self._join()
        except PatternmillError:
            self.stop()
            raise

    def _join(self) -> None:
        self.port = self._last_port()
        if self._named_port not in (None, self.port):
            raise PatternmillError(
                f"The Prefect server of this home runs on port {self.port} already.",
                code="port",
                remedy="Leave --port out, or end what uses it first.",
            )

    def _start_or_join(self) -> bool:
        """Whether this user has started it."""
        return self._process.start_or_join(self._listen, lambda: ["prefect"], self._environment)

    def for_this_process(self) -> Self:
        """Start it, and point Prefect in this process at it. Call it before Prefect is imported."""
        self.start()
        use_server(self.api_url, self.directory.parent)
        return self

    def wait_ready(self) -> None:
        """Return when the server answers. Raises PatternmillError, with the end of its log, if it does not."""
        if self._process.was_alone:
            # Slow, so it is done while the server starts.
            importlib.import_module("prefect_host.record")
        deadline = time.monotonic() + READY_SECONDS
        while not server_answers(self.api_url, timeout=2.0):
            if not self._process.is_alive():
                raise self._process.failure("ended while it started.", REMEDY)
            if time.monotonic() > deadline:
                raise self._process.failure(f"did not answer within {READY_SECONDS:.0f} s.", REMEDY)
            time.sleep(0.1)
        if self.is_owner and not self._is_supervised:
            self._supervise()

    def wait_end(self, stop: threading.Event) -> None:
        """Return when `stop` is set. Raises PatternmillError when the server ends before."""
        is_alive = self._process.is_alive
        while not stop.wait(0.5):
            if not is_alive() and not stop.wait(RESTART_SECONDS) and not is_alive():
                raise self._process.failure("ended.", REMEDY)

    def stop(self) -> None:
        """Leave the server. The last user waits for its end."""
        with self._changing:
            self._is_supervised = False
            self._process.release()
            self._close_port()

    def __enter__(self) -> Self:
        if not self._process.is_in_use:
            self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _supervise(self) -> None:
        self._is_supervised = True
        if self._process.was_alone:
            # Their processes are gone.
            with suppress(Exception):
                asyncio.run(self._close_abandoned_runs())
        threading.Thread(target=self._keep_running, name="prefect-server-watch", daemon=True).start()

    async def _close_abandoned_runs(self) -> None:
        from prefect.client.orchestration import PrefectClient

        from prefect_host.record import close_abandoned_runs

        async with (
            asyncio.timeout(CLOSING_SECONDS),
            PrefectClient(self.api_url, auth_string=self._auth_string()) as client,
        ):
            await close_abandoned_runs(client)

    def _keep_running(self) -> None:
        for _ in range(RESTARTS):
            child = self._process.child
            if child is not None:
                child.wait()
            with self._changing:
                if not self._is_supervised:
                    return
                if not self._start_or_join():
                    # Another command was faster; its server has another port.
                    self._close_port()
                    return

    def _listen(self) -> socket.socket:
        """The bound port: with a fresh credential at first, and then the same, which nobody else has had."""
        if self._listener is None:
            self._listener = self._bound()
            self.port = port_of(self._listener)
            replace_private(self.directory / "server.json", json.dumps({"port": self.port}))
            fresh_secret(self.directory / CREDENTIAL, f"{USER}:")
        return self._listener

    def _bound(self) -> socket.socket:
        """The named port alone, or else the last one, so that addresses stay valid, or any."""
        if self._named_port is not None:
            return bound_socket(self._named_port)
        try:
            return bound_socket(self._last_port())
        except PatternmillError:
            return bound_socket()

    def _close_port(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _environment(self) -> dict[str, str]:
        return server_environment(self.directory, self.port) | {
            "PREFECT_SERVER_API_AUTH_STRING": self._auth_string(),
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.ui_url,
        }

    def _auth_string(self) -> str:
        return own_password(self.directory.parent)

    def _last_port(self) -> int:
        """The port of the server that runs or ran here."""
        try:
            return int(json.loads((self.directory / "server.json").read_text())["port"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0
