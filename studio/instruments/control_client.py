"""A client of the control interface, on nothing but the standard library."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from studio.instruments.control_file import read_control_file

Json = dict[str, Any]
TIMEOUT = 60.0


class ControlFailed(Exception):
    """The studio refused the command, or could not be reached; the message says why."""


class ControlClient:
    """Asks one studio, by the control file in its home. Raises ControlFailed when there is none."""

    def __init__(self, home: Path) -> None:
        try:
            self._file = read_control_file(home)
        except OSError as error:
            raise ControlFailed(f"no studio was started with --control in {home}") from error

    def ask(self, command: str, body: Mapping[str, object] | None = None) -> Json:
        """The answer. Raises ControlFailed."""
        try:
            status, answer = post_json(f"{self._file.url}/control/{command}", self._file.key, body or {})
        except (OSError, http.client.HTTPException, ValueError) as error:
            # The last two: it ended within its answer.
            raise ControlFailed(f"the studio at {self._file.url} cannot be reached: {error}") from error
        if status >= http.client.BAD_REQUEST:
            raise ControlFailed(str(answer["error"]["message"]))
        return answer


def post_json(url: str, key: str, body: object) -> tuple[int, Json]:
    """Status and JSON body of the answer. Raises OSError, http.client.HTTPException, ValueError."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=TIMEOUT)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
