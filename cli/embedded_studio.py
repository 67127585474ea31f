"""Runs the embedded studio as a process, on a loopback port and with a key that are its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from socket import socket
from typing import Any

from pydantic import SecretStr

from patternmill.errors import ConfigurationError
from patternmill.files import fresh_secret, private_folder
from prefect_host.shared_process import SharedProcess, bound_socket

REMEDY = "set PATTERNMILL_STUDIO_URL to a service."


@dataclass(frozen=True)
class RunningStudio:
    #: Ends with the version segment, as PATTERNMILL_STUDIO_URL does.
    url: str
    key: SecretStr
    process: SharedProcess


@contextmanager
def embedded_studio(
    home: Path, *, environment: str = "staging", pace: str = "quick", port: int = 0
) -> Iterator[RunningStudio]:
    """Serve the studio while the context lasts, or share the one that another command serves on this home.

    Its jobs and pictures are kept under `<home>/studio`; its key is there, a new one at each start. Raises
    ConfigurationError when the running one is for another environment, PatternmillError when it does not start.
    """
    directory = home.resolve() / "studio"
    private_folder(directory)
    ready_file, key_file = directory / "running.json", directory / "api-key"
    process = SharedProcess(directory, "The embedded studio")

    def prepared() -> tuple[socket, list[str], dict[str, str]]:
        bound = bound_socket(port)
        ready_file.unlink(missing_ok=True)
        fresh_secret(key_file, "studio_")
        return bound, _arguments(directory, ready_file, key_file, environment=environment, pace=pace), {}

    try:
        process.start_or_join(prepared)
        process.wait_until(ready_file.exists, REMEDY)
        running = json.loads(ready_file.read_text())
        _check_environment(running, environment)
        yield RunningStudio(str(running["base_url"]), SecretStr(key_file.read_text().strip()), process)
    finally:
        process.release()


def _arguments(
    directory: Path, ready_file: Path, key_file: Path, *, environment: str, pace: str
) -> list[str]:
    options = {
        "--fd": "0",
        "--home": str(directory),
        "--key-file": str(key_file),
        "--pace": pace,
        "--environment": environment,
        "--ready-file": str(ready_file),
    }
    return ["studio", *chain.from_iterable(options.items())]


def _check_environment(running: dict[str, Any], wanted: str) -> None:
    if running["environment"] != wanted:
        raise ConfigurationError(
            f"An embedded studio for {running['environment']} runs on this home, and {wanted} is requested.",
            remedy="Wait for the command that uses it, or set another PATTERNMILL_HOME.",
        )
