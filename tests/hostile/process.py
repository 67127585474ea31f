"""The hostile service as a child process, for tests that kill, restart and outlive it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.hostile.plan import Plan
from tests.hostile.record import Line, lines_of

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass
class Hostile:
    """`with Hostile(plan, folder) as hostile:` then `hostile.url`, `hostile.key`, `hostile.record`."""

    plan: Plan
    folder: Path
    key: str = field(default_factory=lambda: f"sk_{secrets.token_hex(12)}")
    certificate: Path | None = None
    url: str = ""
    elsewhere: str = ""
    _port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def record(self) -> Path:
        return self.folder / "hostile-record.jsonl"

    @property
    def environment(self) -> dict[str, str]:
        """What a run of patternmill needs to find this service."""
        return {"PATTERNMILL_STUDIO_URL": self.url, "PATTERNMILL_API_KEY": self.key}

    def __enter__(self) -> Hostile:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start, or start again: on the same port and the same record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        ready = self.folder / "hostile-ready.json"
        ready.unlink(missing_ok=True)
        plan = self.folder / "hostile-plan.json"
        plan.write_text(self.plan.to_json(), "utf-8")
        command = [sys.executable, "-m", "tests.hostile", "--port", str(self._port)]
        command += ["--record", str(self.record), "--ready-file", str(ready), "--plan", str(plan)]
        if self.certificate:
            command += ["--certificate", str(self.certificate)]
        with (self.folder / "hostile.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=CHECKOUT, env={**os.environ, "HOSTILE_API_KEY": self.key}, stdout=log, stderr=log
            )
        facts = self._await_ready(ready)
        self.url, self.elsewhere = facts["url"], facts["elsewhere"]
        self._port = int(self.url.split(":")[2].split("/")[0])

    def _await_ready(self, ready: Path, patience: float = 20.0) -> dict[str, Any]:
        assert self._process is not None
        until = time.monotonic() + patience
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(
                    "the hostile service did not start:\n" + (self.folder / "hostile.log").read_text()
                )
            time.sleep(0.02)
        return dict(json.loads(ready.read_text()))

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> None:
        """End it: in order, or with SIGKILL; a second stop does nothing."""
        if self._process is None:
            return
        self._process.send_signal(sign)
        self._process.wait(20)
        self._process = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def change(self, plan: Plan) -> None:
        """Another plan from now on, without a restart."""
        self.plan = plan
        request = urllib.request.Request(self._control("plan"), plan.to_json().encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10):
            pass

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(self._control("stats"), timeout=10) as answer:
            return dict(json.load(answer))

    def _control(self, name: str) -> str:
        return self.url.removesuffix("/v1") + f"/_hostile/{name}"

    def lines(self) -> list[Line]:
        return list(lines_of(self.record))
