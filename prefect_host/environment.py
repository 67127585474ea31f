"""Prefect's settings in the environment: for processes that use a server, and for our own server.

Prefect reads them on import; only `use_server` sets them in this process.
"""

from __future__ import annotations

import os
from pathlib import Path

from patternmill.private_files import lasting_secret, private_folder

API_URL = "PREFECT_API_URL"
HOST = "127.0.0.1"
#: The user name of our own server's credential; the password is secret.
USER = "patternmill"
#: The page of our own server that logs a browser in.
LOGIN_PATH = "/patternmill-login"


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
    """The credential of our own server on this home, `user:password`; made once."""
    directory = private_folder(home.resolve() / "prefect")
    return lasting_secret(directory / "credential", f"{USER}:")
