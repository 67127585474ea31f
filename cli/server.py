"""The Prefect server that shows runs: the configured one, or one that the commands on a home share."""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from cli.shared import HOST, Launch, Shared, environment, shared_process
from patternmill.errors import Refusal

_STARTUP, _SETTLING, _SILENCE = 120.0, 10.0, 5.0
#: How often, in whole seconds, the recorder writes task runs: of less, Prefect makes 0, and its server spins.
_FLUSH = 1
#: What the terminal need not say, and how long a lost server is tried for (2, 4 and 8 seconds).
_CLIENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_API_REQUEST_TIMEOUT": "10",
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_HANDLERS_DEBUG_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
}


@dataclass(frozen=True)
class Server:
    """A Prefect server: its API's address, the one for people, whether it answers, and whether it is the home's."""

    address: str
    ui: str
    answers: bool
    is_shared: bool = False

    async def settled(self, flow_run_id: UUID | str) -> bool:
        """Wait, for some seconds at most, until the server has all of an ended flow run; return whether it has."""
        from prefect.events.worker import EventsWorker
        from prefect.logging.handlers import APILogWorker

        until = time.monotonic() + _SETTLING
        if not self.answers or not await _is_up():
            return False
        # Only these know what has not been sent yet; a process that ended earlier would take it along.
        for sender in (EventsWorker, APILogWorker):
            await asyncio.to_thread(sender.drain_all, max(0.0, until - time.monotonic()))
        try:
            async with asyncio.timeout(max(1.0, until - time.monotonic())):
                return await _recorded(str(flow_run_id))
        except Exception:  # whatever the client raises: a run's end does not depend on its screen
            return False


async def _is_up() -> bool:
    from prefect import get_client
    from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}), contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5), get_client() as client:
            return await client.api_healthcheck() is None
    return False


async def _recorded(flow_run_id: str) -> bool:
    """Return once no task run is open, and their number has been the same for longer than the recorder takes."""
    from prefect import get_client

    of_run = {"flow_runs": {"id": {"any_": [flow_run_id]}}}
    unended = {"task_runs": {"state": {"type": {"any_": ["SCHEDULED", "PENDING", "RUNNING"]}}}}
    before = -1
    async with get_client() as client:
        while True:
            total = (await client.request("POST", "/task_runs/count", json=of_run)).json()
            still = (await client.request("POST", "/task_runs/count", json=of_run | unended)).json()
            if total == before and not still:
                return True
            before = total
            await asyncio.sleep(1.5 * _FLUSH)


@contextlib.asynccontextmanager
async def prefect_server(home: Path, say: Callable[[str], None], port: int = 0) -> AsyncIterator[Server]:
    """Have Prefect in this process use a server meanwhile: the configured one, or the one of the home.

    Import nothing else of Prefect before. Raises Refusal where the server refuses us.
    """
    with _settings(_of_client()):
        from prefect.settings import PREFECT_API_URL, PREFECT_UI_URL

        # Else each line of the log that cannot be sent is a traceback on the terminal.
        logging.raiseExceptions = False
        if configured := PREFECT_API_URL.value():
            ui = str(PREFECT_UI_URL.value() or configured)
            yield Server(configured, ui, await _accepts(configured))
            return
        with contextlib.ExitStack() as used:
            try:
                folder = (home / "prefect").resolve()
                shared = used.enter_context(shared_process(folder, partial(_launch, folder), port))
            except OSError as error:
                say(f"The Prefect server of {home} cannot be started: {error}.")
                yield Server("", "", answers=False)
                return
            address = f"{shared.address}/api"
            own = {"PREFECT_API_URL": address, "PREFECT_HOME": str(folder)}
            used.enter_context(_settings(own))
            yield Server(address, shared.address, await _ready(shared, say), is_shared=True)


async def look_at_server(home: Path) -> dict[str, Any]:
    """Return which Prefect server there is, what it says to us, and the schedules there. Starts none."""
    if not _is_there(home / "prefect"):
        return {"address": "", "says": "none runs: commands and `up` start it", "schedules": []}
    try:
        async with prefect_server(home, lambda text: None) as server:
            if not server.answers:
                return {"address": server.address, "says": "does not answer", "schedules": []}
            from tasks.deployments import schedules

            return {"address": server.address, "says": "answers", "schedules": await schedules()}
    except Refusal as refusal:
        return {"address": "", "says": refusal.message, "schedules": []}


def _is_there(folder: Path) -> bool:
    """Return whether a server is configured, or that of the home runs."""
    if "PREFECT_API_URL" in os.environ or (folder.is_dir() and Shared(folder, 0).is_alive()):
        return True
    profiles = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser() / "profiles.toml"
    if not profiles.exists():  # then Prefect, which takes a second, need not be imported
        return False
    from prefect.context import refresh_global_settings_context
    from prefect.settings import PREFECT_API_URL

    refresh_global_settings_context()
    return bool(PREFECT_API_URL.value())


def _of_client() -> dict[str, str]:
    """Return settings of clients in this process: unless made already, and to reach this machine without a proxy."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = ",".join(filter(None, (given, HOST, "localhost")))
    settings = {"NO_PROXY": hosts, "no_proxy": hosts}
    for name in _CLIENT.keys() - os.environ.keys():
        settings[name] = _CLIENT[name]
    return settings


@contextlib.contextmanager
def _settings(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables meanwhile, in the settings that Prefect has read from them too."""
    from prefect.context import refresh_global_settings_context

    try:
        with environment(variables):
            refresh_global_settings_context()
            yield
    finally:
        refresh_global_settings_context()


def _launch(folder: Path, port: int) -> Launch:
    variables = {
        "PREFECT_HOME": str(folder),
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),  # else its pages ask port 4200
        "PREFECT_UI_URL": f"http://{HOST}:{port}",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://{HOST}:{port}",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": str(_FLUSH),
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    return [__name__], variables


async def _ready(shared: Shared, say: Callable[[str], None]) -> bool:
    """Wait until our server answers; say so where that takes long."""
    import httpx

    began, told = time.monotonic(), False
    async with httpx.AsyncClient(trust_env=False, timeout=2) as http:
        while shared.is_alive() and (waited := time.monotonic() - began) < _STARTUP:
            if waited > _SILENCE and not told:
                told = True
                say("Waiting for the Prefect server …")
            with contextlib.suppress(httpx.HTTPError):
                if (await http.get(f"{shared.address}/api/health")).is_success:
                    return True
            await asyncio.sleep(0.1)
    return False


async def _accepts(address: str) -> bool:
    """Return whether the configured server answers. Raises Refusal where it refuses us."""
    from prefect import get_client
    from prefect.exceptions import PrefectHTTPStatusError
    from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
            async with asyncio.timeout(20), get_client() as client:
                await client.hello()
                await client.raise_for_api_version_mismatch()
    except PrefectHTTPStatusError as error:
        status = error.response.status_code
        if status in (408, 429) or status >= 500:
            return False
        asks = "asks for a password: set PREFECT_API_AUTH_STRING or PREFECT_API_KEY"
        raise _refusal(address, asks if status in (401, 403) else f"answers with {status}") from None
    except Exception as error:  # a version is told apart by its words alone
        if "incompatible versions" in str(error):
            raise _refusal(address, f"has another version: {error}") from None
        return False
    return True


def _refusal(address: str, why: str) -> Refusal:
    remedy = "Nothing was bought. Set PREFECT_API_URL to one that can be used."
    address = address.rpartition("@")[2]  # without a password
    return Refusal("server_refuses", f"The Prefect server at {address} {why.rstrip('.')}.", remedy)


def _serve() -> None:
    """Serve Prefect's application on the socket that is standard input."""
    import uvicorn
    from prefect.server.api.server import create_app
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    # A page of another origin could otherwise reach it by a name that leads here.
    app = TrustedHostMiddleware(create_app(final=True), allowed_hosts=[HOST, "localhost"])
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=0)])


if __name__ == "__main__":
    _serve()
