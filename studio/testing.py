"""`with Studio() as studio:` a whole studio for tests, in a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

CONTROL_FILE = "control.json"
START_SECONDS = 30.0
ANSWER_SECONDS = 60.0
KEY = "studio-test-key"
Json = dict[str, Any]


class StudioFailed(Exception):
    """The studio could not be started or reached, or refused a command; the message says why."""


class Studio:
    """One studio. Options are those of `python -m studio`, as texts; without `home` nothing of it stays."""

    def __init__(
        self,
        *options: str,
        home: Path | None = None,
        pace: Literal["instant", "quick", "realistic"] = "instant",
        clock: str = "real",
    ) -> None:
        self._options = ("--control", "--pace", pace, "--clock", clock, *options)
        self._process: subprocess.Popen[bytes] | None = None
        #: The studio's home, which is removed once the studio is no longer used.
        self._directory = tempfile.TemporaryDirectory(prefix="studio-")
        self.home = home or Path(self._directory.name)
        self.key = KEY
        self.base_url = ""
        self.clock = ClockHandle(self)
        self.faults = FaultHandle(self)
        self.meter = MeterHandle(self)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._directory.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._directory.cleanup()

    def start(self) -> None:
        """Start it, or start it again at the same address and with the same state. Raises StudioFailed."""
        self.home.mkdir(parents=True, exist_ok=True)
        keys, ready = self.home / "test-key", self.home / "ready.json"
        keys.write_text(f"{self.key}\n", "utf-8")
        ready.unlink(missing_ok=True)
        files = {"--home": self.home, "--key-file": keys, "--ready-file": ready}
        port = urlsplit(self.base_url).port or 0
        command = [sys.executable, "-P", "-m", "studio", "--port", str(port), "--parent", str(os.getpid())]
        command += [str(part) for option in files.items() for part in option]
        paths = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._process = subprocess.Popen([*command, *self._options], env=environment)
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise StudioFailed("the studio did not start; its reason is on standard error")
            time.sleep(0.01)
        self.base_url = str(json.loads(ready.read_text("utf-8"))["base_url"])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it as asked. `start` goes on with its state."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()

    def kill(self) -> None:
        """Kill it as `kill -9` does; `start` goes on with what was acknowledged."""
        self.stop(signal.SIGKILL)

    def ask(self, operation: str, /, **body: object) -> tuple[int, Json]:
        """Return status and body of an operation's answer, as a careless client gets them."""
        return post_json(f"{self.base_url}/{operation}", self.key, body)

    def control(self, command: str, /, **body: object) -> Json:
        """Return the answer of a command of the control interface. Raises StudioFailed."""
        file = json.loads((self.home / CONTROL_FILE).read_text("utf-8"))
        try:
            status, answer = post_json(f"{file['url']}/control/{command}", file["key"], body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # The last two mean that it ended while it answered.
            raise StudioFailed(f"the studio at {file['url']} cannot be reached: {error}") from error
        if status >= http.client.BAD_REQUEST:
            raise StudioFailed(str(answer["error"]["message"]))
        return answer

    def reset(self) -> None:
        """Remove all objects; keys stay, and clock and faults are as at the start."""
        self.control("reset")

    def pay(self, checkout_id: str) -> str:
        """Pay a checkout as its page does; return the order's ID."""
        return str(self.control("checkout/pay", checkoutId=checkout_id)["orderId"])


class _Handle:
    """One instrument of a studio."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio


class ClockHandle(_Handle):
    """The studio's clock: moved by hand with `Studio(clock="manual")`."""

    @property
    def now(self) -> datetime:
        return _instant(self._studio.control("faults"))

    def advance(self, time: timedelta | float) -> datetime:
        """Move it by this time, or so many seconds; return where it is then."""
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        return _instant(self._studio.control("clock/advance", seconds=seconds))

    def advance_to_next_job_end(self) -> bool:
        """Move it to the next end of a running job; return False if none is going to end."""
        return bool(self._studio.control("clock/next-job-end")["moved"])


class FaultHandle(_Handle):
    """The studio's fault plan."""

    def use(self, *faults: Mapping[str, Any]) -> None:
        """Take these faults in place of all before; counting begins anew. Raises StudioFailed."""
        self._studio.control("faults/set", faults=faults)

    def clear(self) -> None:
        self.use()

    @property
    def unfired(self) -> list[str]:
        """Return the names of those that did not fire as often as expected: a test with them has not shown much."""
        return list(self._studio.control("faults")["unfired"])


class MeterHandle(_Handle):
    """The studio's charge meter."""

    def read(self) -> Json:
        """Return all of it: see `studio.instruments.meter.read_meter`."""
        return self._studio.control("meter")

    @property
    def total(self) -> int:
        """Return what was bought, in minor units."""
        return int(self.read()["total"])

    @property
    def double_purchases(self) -> list[Json]:
        """Return what looks bought twice: same account, operation and body, under another requestId."""
        return list(self.read()["suspectedDoublePurchases"])


def _instant(answer: Json) -> datetime:
    return datetime.fromisoformat(str(answer["clock"]))


def post_json(url: str, key: str, body: object) -> tuple[int, Json]:
    """Post JSON; return status and JSON body of the answer. Raises OSError, http.client.HTTPException, ValueError."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=ANSWER_SECONDS)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
