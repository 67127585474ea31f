"""A real studio process on a loopback port, and a small client for it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from studio.testing import Studio

KEY = "key-for-tests"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, object]:
        found = json.loads(self.raw)
        assert isinstance(found, dict)
        return found

    @property
    def code(self) -> object:
        error = self.body["error"]
        assert isinstance(error, dict)
        return error["code"]


@dataclass
class StudioProcess:
    """One studio that can be stopped, killed and started again in the same home."""

    home: Path
    arguments: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    base_url: str = ""
    announcement: dict[str, object] = field(default_factory=dict)

    def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        key_file, ready_file = self.home / "keys", self.home / "ready.json"
        key_file.write_text(f"# for tests\n{KEY}\nanother-key\n")
        ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "studio", "--home", str(self.home), "--key-file", str(key_file)]
        command += ["--ready-file", str(ready_file), "--parent", str(os.getpid()), *self.arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        wait_for(ready_file.exists, "the studio listens")
        self.announcement = json.loads(ready_file.read_text())
        self.base_url = str(self.announcement["base_url"])

    def end(self, number: signal.Signals) -> tuple[int, bytes]:
        """Send the signal; the exit code and the text on standard error."""
        assert self.process is not None
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        code = self.process.returncode
        self.process = None
        return code, errors

    def ask(self, operation: str, body: object, *, key: str | None = KEY, **headers: str) -> Answer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **headers}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        return self.request("POST", f"{self.base_url}/{operation}", raw, sent)

    def request(
        self, method: str, url: str, raw: bytes = b"", headers: dict[str, str] | None = None
    ) -> Answer:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        try:
            connection.request(method, f"{parts.path}?{parts.query}", raw, headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def ended(self, job: dict[str, object]) -> dict[str, object]:
        """The job once it is no longer running."""
        wait_for(lambda: self._job(job)["status"] != "running", "the job ends")
        return self._job(job)

    def _job(self, job: dict[str, object]) -> dict[str, object]:
        return self.ask("jobs/get", {"jobId": job["jobId"]}).body


def wait_for(condition: object, what: str, seconds: float = 20) -> None:
    """Look until it is so."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


@pytest.fixture
def new_studio(tmp_path: Path) -> Iterator[StudioProcess]:
    """A studio that is not started yet."""
    made = StudioProcess(tmp_path / "studio")
    yield made
    if made.process is not None:
        made.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioProcess]:
    """One running studio for a whole module."""
    made = StudioProcess(tmp_path_factory.mktemp("studio"), ("--pace", "instant"))
    made.start()
    yield made
    made.end(signal.SIGTERM)


@pytest.fixture(scope="session")
def running() -> Iterator[Studio]:
    with Studio(clock="2026-01-31T12:00:00Z", pace="realistic") as studio:
        yield studio


@pytest.fixture
def instruments(running: Studio) -> Studio:
    """A studio whose clock, faults and meter the test has; empty."""
    running.reset()
    return running
