"""Start the processes of a measurement, and read what they used.

A child's peak memory never reads less than what its parent held when it was started; that is why nothing heavy is
imported here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

CHECKOUT = Path(__file__).resolve().parents[1]
MEGABYTE = 1024 if sys.platform != "darwin" else 1024 * 1024


@dataclass(frozen=True)
class Usage:
    """The resources that one child used from its start to its end, its own children included. Times are in seconds."""

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

    def __init__(self, pattern_seconds: float, product_seconds: float, sigma: float) -> None:
        times = map(str, (pattern_seconds, product_seconds, sigma))
        self._command = [sys.executable, "-m", "tests.hostile", *times]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        return self

    def stats(self, window: int) -> dict[str, Any]:
        """Return the score of the jobs so far; see `tests.hostile.__main__`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(window, file=self._process.stdin, flush=True)
        return dict(json.loads(self._process.stdout.readline()))

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=10)


def cpu_of(folder: Path) -> float:
    """Return the seconds of CPU of the processes whose command line names a folder; 0 where there is no /proc."""
    used = 0
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder).encode() in (place / "cmdline").read_bytes():
                fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
                used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


def settle(folder: Path) -> None:
    """Wait, for a minute at most, until a server has little left to do: what it does late counts for its run."""
    before = cpu_of(folder)
    for _ in range(30):
        time.sleep(2.0)
        now = cpu_of(folder)
        if now - before < 0.2:
            return
        before = now
