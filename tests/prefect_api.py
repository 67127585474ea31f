"""Plain questions to a Prefect server, past Prefect's own client: what is on record there, as the API has it."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prefect_host.own_server import OwnServer

REQUEST_SECONDS = 20
#: The states of a run that may still change.
OPEN_STATES = ("SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING")


@dataclass(frozen=True)
class PrefectApi:
    """A Prefect API: its address, ending with `/api`, and the headers that open it."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, body)

    def patch(self, path: str, body: Any) -> None:
        self._ask("PATCH", path, body)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **self.headers},
            method=method,
        )
        until = time.monotonic() + REQUEST_SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                # SQLite's writers refuse one another; Prefect's own client asks again, too.
                if error.code != 503 or time.monotonic() > until:
                    raise
                error.close()
                time.sleep(0.5)


def api_of(server: OwnServer) -> PrefectApi:
    """Return the API of our own server, with the credential that opens it."""
    basic = base64.b64encode(server.credential.encode()).decode()
    return PrefectApi(server.api_url, {"Authorization": f"Basic {basic}"})
