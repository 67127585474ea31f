"""A Prefect server of our own, with its UI, for those who have none; its history lives under the home.

One that dies while it is used is started again, on the same port: Prefect's client tries again for some seconds
and sends what was not confirmed, so that the record of the run stays whole.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from patternmill.private_files import write_private
from prefect_host.record import (
    LOGIN_PATH,
    USER,
    PrefectApi,
    api_with_password,
    close_abandoned_runs,
    own_password,
)
from prefect_host.shared_process import HOST, SharedProcess, usable_port

#: The first start makes the database, and on a slow disk that takes its time.
READY_SECONDS = 120.0
#: How often a server that dies in use is started again, and how soon that has happened.
RESTARTS = 3
RESTART_SECONDS = 2.0
REMEDY = "set PREFECT_API_URL to a server of yours."


def server_is_there(api_url: str, timeout: float = 5.0) -> bool:
    """Whether a Prefect API answers at `api_url` (which ends with `/api`)."""
    if not api_url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{api_url.rstrip('/')}/health", timeout=timeout) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


def start_own_server(home: Path, *, port: int | None = None) -> OwnServer:
    """Start a server on the history under `home`, or join the one there. At once; see `wait_ready`."""
    server = OwnServer(home, port=port)
    server.start()
    return server


class OwnServer:
    """A hold on the server of one home; the server ends with its last hold."""

    def __init__(self, home: Path, *, port: int | None = None) -> None:
        self.directory = home.resolve() / "prefect"
        self.port = port or 0
        self._process = SharedProcess(self.directory, "The Prefect server")
        self._changing = threading.Lock()
        self._on_duty = False

    @property
    def ui_url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def api_url(self) -> str:
        return f"{self.ui_url}/api"

    @property
    def api(self) -> PrefectApi:
        """With the credential that opens it."""
        return api_with_password(self.api_url, self._auth_string())

    def login_url(self, page: str = "") -> str:
        """Logs the browser in that opens it, and shows a page of the UI. For the person's own terminal alone."""
        return f"{self.ui_url}{LOGIN_PATH}#{self._auth_string().removeprefix(f'{USER}:')}/{page}"

    @property
    def log_path(self) -> Path:
        return self._process.log_path

    @property
    def is_owner(self) -> bool:
        """Whether this hold started the server."""
        return self._process.child is not None

    def start(self) -> None:
        """Take hold of the running server, or start one. Does not wait for it to answer."""
        if not self._process.take(self._arguments, self._environment):
            self.port = self._noted_port()

    def wait_ready(self, timeout: float = READY_SECONDS) -> None:
        """Return when the server answers. Raises PatternmillError, with the end of its log, if it does not."""
        deadline = time.monotonic() + timeout
        while not server_is_there(self.api_url, timeout=2.0):
            if not self._process.is_alive():
                raise self._process.failure("ended while it started.", REMEDY)
            if time.monotonic() > deadline:
                raise self._process.failure(f"did not answer within {timeout:.0f} s.", REMEDY)
            time.sleep(0.1)
        if self.is_owner and not self._on_duty:
            self._begin_duty()

    def wait_end(self, stop: threading.Event) -> None:
        """Return when `stop` is set. Raises PatternmillError when the server ends before."""
        while not stop.wait(0.5):
            if (
                not self._process.is_alive()
                and not stop.wait(RESTART_SECONDS)
                and not self._process.is_alive()
            ):
                raise self._process.failure("ended.", REMEDY)

    def stop(self) -> None:
        """Let go of the server. The last to do so waits for its end."""
        with self._changing:
            self._on_duty = False
            self._process.release()

    def __enter__(self) -> Self:
        if not self._process.is_held:
            self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _begin_duty(self) -> None:
        self._on_duty = True
        if self._process.was_alone:
            # Nobody runs what this history still shows as running.
            with suppress(OSError):
                close_abandoned_runs(self.api)
        threading.Thread(target=self._keep_running, name="prefect-server-watch", daemon=True).start()

    def _keep_running(self) -> None:
        for _ in range(RESTARTS):
            child = self._process.child
            if child is not None:
                child.wait()
            with self._changing:
                if not self._on_duty:
                    return
                self._process.take(self._arguments, self._environment)

    def _arguments(self) -> list[str]:
        self.port = usable_port(self.port or self._noted_port())
        note = self.directory / "server.json"
        fresh = note.with_suffix(".new")
        write_private(fresh, json.dumps({"port": self.port}))
        fresh.replace(note)
        return ["prefect"]

    def _environment(self) -> dict[str, str]:
        return server_environment(self.directory, self.port) | {
            "PREFECT_SERVER_API_AUTH_STRING": self._auth_string(),
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.ui_url,
        }

    def _auth_string(self) -> str:
        return own_password(self.directory.parent)

    def _noted_port(self) -> int:
        """The port of the server that runs or ran here; kept, so that addresses given to people stay good."""
        try:
            return int(json.loads((self.directory / "server.json").read_text())["port"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0


def server_environment(directory: Path, port: int) -> dict[str, str]:
    """What our own server is set to, in place of the caller's Prefect settings."""
    return {
        "PREFECT_HOME": str(directory),
        "PREFECT_PROFILES_PATH": str(directory / "profiles.toml"),
        # Where it listens, and what the pages tell the browser to talk to.
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
