"""Prefect's settings for all who use a server; Prefect reads them from the environment, as it is imported."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from patternmill.addresses import is_loopback
from patternmill.errors import ConfigurationError

#: The work pool of our deployments, and its job template.
POOL = "patternmill"
TEMPLATE = Path(__file__).resolve().parent.parent / "deployments" / "process-pool.json"
#: The worker hands its own folder on to its runs, which Prefect begins in the folder of the code.
WORKER_FOLDER = "PATTERNMILL_WORKER_FOLDER"
#: In the home: the log of the worker that `patternmill up` starts.
WORKER_LOG = "worker.log"
API_URL = "PREFECT_API_URL"
#: A path of nothing, and nobody can put anything there.
_NOWHERE = f"{os.devnull}/none"
#: Prefect's profile file is never read: it may be a folder's, and names a logging configuration, which runs code.
NO_PROFILES = {"PREFECT_PROFILES_PATH": _NOWHERE}
_QUIET = {
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
}


def client_environment(api_url: str) -> dict[str, str]:
    """Return the environment of a client of the server at `api_url`; the key to it is exported."""
    return {API_URL: api_url, **NO_PROFILES, **direct_to_loopback(), **_QUIET}


def direct_to_loopback() -> dict[str, str]:
    """Return the variables that have a client reach this machine directly, whatever proxies are set."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = dict.fromkeys(filter(None, (*given.replace(" ", "").split(","), "127.0.0.1", "localhost", "::1")))
    return dict.fromkeys(("NO_PROXY", "no_proxy"), "*" if "*" in hosts else ",".join(hosts))


def api_address(given: str) -> str:
    """Return a server's address as Prefect's client wants it: that of its API. Raises ConfigurationError."""
    parts = urlsplit(given.strip())
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ConfigurationError(
            f"{API_URL} is no address of a Prefect server: {given}.",
            remedy="Write it as http://HOST:4200/api.",
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/api'}"


def kept_in(directory: Path) -> dict[str, str]:
    """Return where our own server and its clients keep their files; none of them configures Prefect."""
    return {
        "PREFECT_HOME": str(directory),
        **NO_PROFILES,
        "PREFECT_PROFILE": "ephemeral",
        # Else Prefect reads logging.yml of its home.
        "PREFECT_LOGGING_CONFIG_PATH": _NOWHERE,
    }


def use_server(environment: Mapping[str, str]) -> None:
    """Set it in this process, and those that it starts. Call it before Prefect is imported."""
    os.environ.update(environment)


def use_address(given: str) -> str:
    """Point Prefect in this process at a server, with its logs as they are; return the address of its API."""
    url = api_address(given)
    use_server({API_URL: url, **direct_to_loopback(), **NO_PROFILES})
    return url


def server_answers(api_url: str, timeout: float = 5.0) -> bool:
    """Return whether a Prefect API answers at `api_url`; no credential is sent."""
    if not api_url.startswith(("http://", "https://")):
        return False
    proxies = urllib.request.ProxyHandler({} if is_loopback(api_url) else None)
    try:
        with urllib.request.build_opener(proxies).open(f"{api_url}/health", timeout=timeout) as answer:
            return bool(answer.status == 200 and answer.read(16).strip() == b"true")
    except (OSError, ValueError):
        return False
