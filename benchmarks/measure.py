"""Starting the processes of a measurement, and reading what they used: standard library only, so that we weigh little.

A child's peak memory can never read less than what its parent held when it was started; that is why nothing heavy
is imported here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

CHECKOUT = Path(__file__).resolve().parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
MEGABYTE = 1024 if sys.platform != "darwin" else 1024 * 1024


@dataclass(frozen=True)
class Usage:
    """What one child used, from its start to its end, its own children included."""

    code: int
    wall: float
    cpu: float
    peak_mb: float
    output: str


def run(command: Sequence[str], env: Mapping[str, str], folder: Path, *, timeout: float) -> Usage:
    """Run a command to its end; past `timeout` seconds it is killed and its code is negative."""
    log = folder / "output.log"
    began = time.monotonic()
    with log.open("wb") as file:
        child = subprocess.Popen(command, cwd=CHECKOUT, env=dict(env), stdout=file, stderr=file)
    guard = threading.Timer(timeout, child.kill)
    guard.start()
    _, status, used = os.wait4(child.pid, 0)
    guard.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return Usage(
        code=child.returncode,
        wall=time.monotonic() - began,
        cpu=used.ru_utime + used.ru_stime,
        peak_mb=used.ru_maxrss / MEGABYTE,
        output=log.read_text("utf-8", errors="replace"),
    )


class FakeService:
    """The service of one measurement, fresh for each, so that none finds another's requests there."""

    def __init__(
        self, pattern_seconds: float, product_seconds: float, sigma: float, *, failing: int = 0
    ) -> None:
        self._command = [sys.executable, "-m", "benchmarks.fake", "--sigma", str(sigma)]
        self._command += ["--pattern-seconds", str(pattern_seconds)]
        self._command += ["--product-seconds", str(product_seconds), "--failing", str(failing)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.address = json.loads(self._process.stdout.readline())["url"]
        return self

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    def stats(self, window: int) -> dict[str, Any]:
        return dict(get_json(f"{self.address}/stats?window={window}"))

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


#: How the project's own server records task runs; a stock one records them one by one.
BATCHED = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}


class PrefectServer:
    """A real Prefect server whose CPU is counted apart; by default set as the project sets its own."""

    def __init__(self, folder: Path, settings: Mapping[str, str] = BATCHED) -> None:
        self._folder = folder
        self._settings = settings
        self.port = free_port()
        self.api_url = f"http://127.0.0.1:{self.port}/api"

    def __enter__(self) -> Self:
        self.start()
        self._await_health()
        return self

    def start(self) -> None:
        """Start it, or start it again after `kill`."""
        command = [sys.executable, "-m", "prefect", "server", "start"]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        self._log = (self._folder / "prefect-server.log").open("ab")
        self._process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment(),
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def send(self, number: signal.Signals) -> None:
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PREFECT_HOME": str(self._folder / "prefect-server"),
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            **self._settings,
        }

    def _await_health(self) -> None:
        until = time.monotonic() + 90.0
        while time.monotonic() < until:
            with suppress(OSError, urllib.error.URLError):
                get_json(f"{self.api_url}/health")
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.3)
        raise RuntimeError(f"the Prefect server did not start; see {self._folder / 'prefect-server.log'}")

    def cpu(self) -> float:
        """Seconds of CPU used so far by the server and its children; 0 where there is no /proc."""
        return sum(_cpu_of(stat) for stat in _stats_of_session(self._process.pid))

    def settle(self, patience: float = 60.0) -> None:
        """Until it has nothing left to write down: what it does late counts for the run that caused it."""
        until, before = time.monotonic() + patience, self.cpu()
        while time.monotonic() < until:
            time.sleep(2.0)
            now = self.cpu()
            if now - before < 0.2:
                return
            before = now

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def _stats_of_session(leader: int) -> list[list[str]]:
    """The fields of /proc/<pid>/stat, from the state on, of every process in the leader's session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == leader:
                found.append(fields)
    return found


def _cpu_of(fields: list[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / TICKS


def get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
