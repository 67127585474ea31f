"""`with Studio() as studio:` a whole studio for tests, in a thread of this process or in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Self

from studio.instruments.control_client import ControlClient, Json, post_json
from studio.server import Running, read_options, serve

START_SECONDS = 30.0
KEY = "studio-test-key"
Plan = Mapping[str, Any]


class StudioFailed(Exception):
    """The studio could not be started; the message says why."""


class ClockHandle:
    """The studio's clock: moved by hand with `Studio(clock="manual")`."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    @property
    def now(self) -> datetime:
        return _instant(self._studio.control("state"))

    def advance(self, time: timedelta | float) -> datetime:
        """Move it by this time, or so many seconds; where it is then."""
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        return _instant(self._studio.control("clock/advance", seconds=seconds))

    def advance_to_next_job_end(self) -> bool:
        """Whether a job was running that ends."""
        return bool(self._studio.control("clock/next-job-end")["moved"])


class FaultHandle:
    """The studio's fault plan."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def use(self, *faults: Plan) -> None:
        """Take these faults in place of all before; counting begins anew. Raises ControlFailed."""
        self._studio.control("faults/set", faults=list(faults))

    def clear(self) -> None:
        self.use()

    def report(self) -> list[Json]:
        """Of each: name, calls that it fits, how often it fired, and how often it has to at least."""
        return list(self._studio.control("faults")["faults"])

    @property
    def unfired(self) -> list[str]:
        """The names of those that did not fire as often as expected: a test with them has not shown much."""
        return list(self._studio.control("faults")["unfired"])


class MeterHandle:
    """The studio's charge meter."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def read(self) -> Json:
        """All of it: see `studio.instruments.meter.read_meter`."""
        return self._studio.control("meter")

    @property
    def total(self) -> int:
        """What was bought, in minor units."""
        return int(self.read()["total"])

    @property
    def double_purchases(self) -> list[Json]:
        """What looks as if it was bought twice: same account, operation and body, under another requestId."""
        return list(self.read()["suspectedDoublePurchases"])


class Studio:
    """One studio. Options are those of `python -m studio`, as texts; without `home` nothing of it stays."""

    def __init__(
        self,
        *options: str,
        process: bool = False,
        home: Path | None = None,
        pace: Literal["instant", "quick", "realistic"] = "instant",
        clock: str = "real",
    ) -> None:
        self._options = (*options, "--control", "--pace", pace, "--clock", clock)
        self._host: _Thread | _Process = _Process() if process else _Thread()
        #: Removed with all that is in it once the studio is no longer used.
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
        """Also again, at the same address and with the same state. Raises StudioFailed."""
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "test-key").write_text(f"{self.key}\n", "utf-8")
        port = self.base_url.rpartition(":")[2].partition("/")[0] or "0"
        arguments = ["--home", str(self.home), "--key-file", str(self.home / "test-key"), "--port", port]
        self.base_url = self._host.start([*arguments, *self._options])
        self._control = ControlClient(self.home)

    def stop(self) -> None:
        self._host.stop()

    def kill(self) -> None:
        """As `kill -9` does; only with `process=True`. `start` goes on with what was acknowledged."""
        assert isinstance(self._host, _Process), "a thread cannot be killed: Studio(process=True)"
        self._host.stop(signal.SIGKILL)

    def ask(self, operation: str, /, **body: object) -> tuple[int, Json]:
        """Status and body of an operation's answer, as a client without any care gets them."""
        return post_json(f"{self.base_url}/{operation}", self.key, body)

    def control(self, command: str, /, **body: object) -> Json:
        """The answer of a command of the control interface. Raises ControlFailed."""
        return self._control.ask(command, body)

    def reset(self) -> None:
        """Remove all objects; keys stay, and clock and faults are as at the start."""
        self.control("reset")

    def pay(self, checkout_id: str) -> str:
        """Pay a checkout as its page does; the order's ID."""
        return str(self.control("checkout/pay", checkoutId=checkout_id)["orderId"])


class _Thread:
    """A studio in a thread of this process, with a real socket."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._running: Future[Running] = Future()

    def start(self, arguments: Sequence[str]) -> str:
        self._running = Future()
        self._thread = threading.Thread(target=self._serve, args=(arguments,), name="studio", daemon=True)
        self._thread.start()
        return str(self._running.result(START_SECONDS).announcement["base_url"])

    def stop(self) -> None:
        if self._thread is not None and not self._running.exception():
            self._running.result().server.should_exit = True
            self._thread.join()

    def _serve(self, arguments: Sequence[str]) -> None:
        try:
            asyncio.run(serve(read_options(arguments), self._running.set_result))
        except BaseException as error:
            if self._running.done():
                raise
            failed = StudioFailed(str(error))
            failed.__cause__ = error
            self._running.set_exception(failed)


class _Process:
    """A studio in a process of its own, which ends with this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, arguments: Sequence[str]) -> str:
        ready = Path(arguments[1]) / "ready.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", "studio", *arguments]
        command += ["--ready-file", str(ready), "--parent", str(os.getpid())]
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._process = subprocess.Popen(command, env=environment)
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise StudioFailed("the studio did not start; its reason is on standard error")
            time.sleep(0.01)
        return str(json.loads(ready.read_text("utf-8"))["base_url"])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()


def _instant(answer: Json) -> datetime:
    return datetime.fromisoformat(str(answer["clock"]))
