"""Runs the embedded studio as a process, on a loopback port and with a key that are its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from socket import socket
from typing import Any

from pydantic import SecretStr

from patternmill.errors import ConfigurationError
from patternmill.files import fresh_secret
from prefect_host.shared_process import SharedProcess, bound_socket


class EmbeddedStudio(SharedProcess):
    """One user of the studio of a home, which is started by the first command and gone with the last.

    Its jobs and pictures are kept under `<home>/studio`; its key is there, a new one at each start.
    """

    title = "The embedded studio"
    remedy = "set PATTERNMILL_STUDIO_URL to a service."

    def __init__(
        self, home: Path, *, environment: str = "staging", pace: str = "quick", port: int = 0
    ) -> None:
        """`pace` and `port`: of the studio, if this user starts it."""
        super().__init__(home.resolve() / "studio")
        self._environment, self._pace, self._port = environment, pace, port
        self._ready_file, self._key_file = self.directory / "running.json", self.directory / "api-key"

    @property
    def url(self) -> str:
        """Ends with the version segment, as PATTERNMILL_STUDIO_URL does."""
        return str(self._running()["base_url"])

    @property
    def key(self) -> SecretStr:
        return SecretStr(self._key_file.read_text().strip())

    def is_ready(self) -> bool:
        return self._ready_file.exists()

    def wait_ready(self) -> None:
        """Raises ConfigurationError when the running one is for another environment, too."""
        super().wait_ready()
        environment = self._running()["environment"]
        if environment != self._environment:
            raise ConfigurationError(
                f"An embedded studio for {environment} runs on this home, and {self._environment} is requested.",
                remedy="Wait for the command that uses it, or set another PATTERNMILL_HOME.",
            )

    def prepared(self) -> tuple[socket, Sequence[str], Mapping[str, str]]:
        bound = bound_socket(self._port)
        self._ready_file.unlink(missing_ok=True)
        fresh_secret(self._key_file, "studio_")
        options = {
            "--fd": "0",
            "--home": str(self.directory),
            "--key-file": str(self._key_file),
            "--pace": self._pace,
            "--environment": self._environment,
            "--ready-file": str(self._ready_file),
        }
        return bound, ["studio", *chain.from_iterable(options.items())], {}

    def _running(self) -> dict[str, Any]:
        return dict(json.loads(self._ready_file.read_text()))
