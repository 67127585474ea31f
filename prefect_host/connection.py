"""The Prefect server that shows a run: the configured one, one of our own, or none.

Until a server is chosen nothing here imports Prefect, which reads its settings from the environment as it is imported.
Our own server's module is loaded only where no other server is configured.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from patternmill.errors import ConfigurationError, PatternmillError
from prefect_host import client_settings

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

    from prefect_host.own_server import OwnServer

logger = logging.getLogger(__name__)

_HOW_TO_LOG_IN = "set PREFECT_API_AUTH_STRING; for a server of `up`, leave PREFECT_API_URL out."
#: For a server's first answer: a busy machine needs some seconds. One that refuses connections gets one more try.
ANSWER_SECONDS = 20.0
#: How long an ended run waits for its server: as long as Prefect's client tries (2, 4, 8 s); and while that answers.
END_SECONDS, MOST_END_SECONDS = 15.0, 60.0
_OPEN_STATES = ("SCHEDULED", "PENDING", "RUNNING")
_POLL_SECONDS = 0.2
#: A status of a server that may be another one a moment later.
_PASSING = frozenset({408, 429})
UNRECORDED = "The Prefect server did not get all of this run; `patternmill status` has it."


class PrefectConnection:
    """A run's connection to its Prefect server."""

    def __init__(self, home: Path, go_without: Callable[[str], None]) -> None:
        """Read which server is configured; `go_without` is called with the reason why there is none.

        Raises ConfigurationError when PREFECT_API_URL is no address.
        """
        self._home = home
        self._go_without = go_without
        self._own: OwnServer | None = None
        given = os.environ.get(client_settings.API_URL)
        self._configured = client_settings.api_address(given) if given else None
        self._is_started = self._is_available = False
        #: Whether Prefect's client could send everything, the flow run's end included.
        self.delivered = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._own is not None:
            # Ctrl-C waits no longer for its end, and changes nothing about how the run ended.
            with suppress(KeyboardInterrupt):
                self._own.stop()

    def start(self) -> bool:
        """Choose the server, and start our own where none is configured; return whether there is one to wait for.

        From now on Prefect can be imported.
        """
        if not self._is_started:
            self._is_started = True
            if self._configured:
                client_settings.use_server(client_settings.client_environment(self._configured))
            else:
                self._start_own()
        return bool(self._configured) or self._own is not None

    def _start_own(self) -> None:
        from prefect_host.own_server import OwnServer

        try:
            self._own = OwnServer(self._home).for_this_process()
        except (PatternmillError, OSError) as error:
            self._go_without(f"The Prefect server of {self._home} cannot be started: {error}")

    def wait(self) -> bool:
        """Wait until the server answers; returns whether it does. Raises ConfigurationError when it rejects us."""
        if not self.start():
            return False
        try:
            if self._own is not None:
                self._own.wait_ready()
            elif self._configured:
                asyncio.run(require_server(self._configured))
        except ConfigurationError:
            raise
        except PatternmillError as error:
            self._go_without(str(error))
            return False
        # Else Prefect's handlers print what they cannot send.
        logging.raiseExceptions = False
        self._is_available = True
        return True

    def require_accepted(self, error: Exception) -> None:
        """Raise ConfigurationError when `error`, of a flow that has not begun, is the configured server's rejection."""
        if self._configured and (why := _rejection(error)):
            raise _refusal(self._configured, why) from error

    def finish(self, flow_run_id: str | None, task_runs: int, running: Future[None] | None = None) -> bool:
        """Wait for a flow that still ends in a thread, for Prefect's client to send what it has, and for our own server
        to record so many task runs.

        A minute at most, and no longer than the server answers; whether it came to that. Call it once the event loop
        has ended: a process that ends without this may wait minutes for a server that is gone.
        """
        began = time.monotonic()
        if running is not None and (not _waited_for(running.done, began) or running.exception() is not None):
            self.delivered = False
            return False
        if not self._is_available:
            return False
        from prefect_host.internals import start_sending

        sending = start_sending()
        self.delivered = _waited_for(lambda: all(sent.done() for sent in sending), began) and self.delivered
        if not self.delivered or flow_run_id is None or self._own is None:
            return self.delivered
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            return _waited_for(lambda: _is_recorded(client, flow_run_id, task_runs), began)

    def run_line(self, flow_run_id: str) -> str:
        """Return where a recorded run is shown."""
        base = self._own.ui_url if self._own is not None else (self._configured or "").removesuffix("/api")
        hint = "" if self._own is None else "  (open it with `patternmill status --open`)"
        return f"In the Prefect UI: {base}/runs/flow-run/{flow_run_id}{hint}"


async def require_server(api_url: str) -> None:
    """Raise ConfigurationError when the configured server rejects us, and PatternmillError when it does not answer."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 1}):
            async with asyncio.timeout(ANSWER_SECONDS), get_client() as client:
                await client.hello()
                await client.raise_for_api_version_mismatch()
    except Exception as error:
        if right := _right_address(api_url):
            raise _refusal(
                api_url, f"answers at another address: {client_settings.API_URL}={right}"
            ) from error
        if why := _rejection(error):
            raise _refusal(api_url, why) from error
        logger.info("The Prefect server does not answer: %s", error)
        raise PatternmillError(f"The Prefect server at {api_url} does not answer.") from error


def _right_address(api_url: str) -> str | None:
    """Return where the API is, if an address is another page of its server, or differs in http or https alone."""
    parts = urlsplit(api_url)
    other = {"http": "https", "https": "http"}[parts.scheme]
    addresses = (f"{scheme}://{parts.netloc}/api" for scheme in (parts.scheme, other))
    return next((a for a in addresses if a != api_url and client_settings.server_answers(a, 2.0)), None)


def _rejection(error: BaseException) -> str | None:
    """Return why a server that answers rejects this client; None where it may accept it later."""
    from prefect.exceptions import PrefectHTTPStatusError

    if isinstance(error, PrefectHTTPStatusError):
        status = error.response.status_code
        if status in {401, 403}:
            return f"asks for a password: {_HOW_TO_LOG_IN}"
        return f"answers {status}." if 400 <= status < 500 and status not in _PASSING else None
    return f"is another version: {error}" if "incompatible versions" in str(error) else None


def _refusal(api_url: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"The Prefect server at {api_url} {why}",
        remedy=f"Nothing was begun. Without {client_settings.API_URL} a command starts a server of its own.",
    )


def _is_recorded(client: SyncPrefectClient, flow_run_id: str, task_runs: int) -> bool:
    """Return whether the server has so many task runs of the flow run, and none that is open."""

    def count(**which: Any) -> int:
        wanted = {"flow_runs": {"id": {"any_": [flow_run_id]}}, **which}
        return int(client.request("POST", "/task_runs/count", json=wanted).json())

    try:
        return count() >= task_runs and not count(task_runs={"state": {"type": {"any_": _OPEN_STATES}}})
    except Exception as error:
        logger.info("The record of flow run %s cannot be read: %s", flow_run_id, type(error).__name__)
        return False


def _waited_for(condition: Callable[[], bool], began: float) -> bool:
    """Return whether it comes true: END_SECONDS after `began`, or within a minute as long as the server answers."""
    while not condition():
        waited = time.monotonic() - began
        if waited > MOST_END_SECONDS:
            return False
        if waited > END_SECONDS and not client_settings.server_answers(
            os.environ.get(client_settings.API_URL, ""), 2.0
        ):
            return False
        time.sleep(_POLL_SECONDS)
    return True
