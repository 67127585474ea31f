"""Prefect's settings for all who use a server; Prefect reads them from the environment, as it is imported."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Mapping
from pathlib import Path

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
    """The environment of a client of the server at `api_url`; the key to it is exported."""
    return {API_URL: api_url, **NO_PROFILES, **_QUIET}


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


def server_answers(api_url: str, timeout: float = 5.0) -> bool:
    """Whether a Prefect API answers at `api_url` (which ends with `/api`)."""
    if not api_url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{api_url.rstrip('/')}/health", timeout=timeout) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False
