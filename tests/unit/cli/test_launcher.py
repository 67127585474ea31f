"""What the command line does on signals."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from cli import launcher
from cli.commands.up import _end
from cli.launcher import _WatchedRun
from patternmill.errors import PatternmillError
from prefect_host.stop_signals import Interruption, run_in_thread


class Exited(Exception):
    """In place of the end of the process, which has no exception."""


def test_second_signal_ends_at_once_however_soon_it_comes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also before the loop has stopped the run for the first one."""

    def exit_now(code: int) -> NoReturn:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", exit_now)
    stops: list[str] = []
    options = SimpleNamespace(drain=timedelta(seconds=20))
    run = SimpleNamespace(
        ending=None, results=None, is_stopped=False, spec=SimpleNamespace(options=options), stop=stops.append
    )
    watched, loop = _WatchedRun(cast(Any, None)), asyncio.new_event_loop()
    watched.begun, watched._loop = cast(Any, run), loop
    watched.on_signal("SIGINT")
    with pytest.raises(Exited, match="130"):
        watched.on_signal("SIGINT")
    assert "A second signal ends it at once." in capsys.readouterr().err
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert stops == ["Stopped by SIGINT."]


@pytest.mark.parametrize("signals", [0, 1, 2])
def test_second_signal_ends_the_worker_of_up_at_once(signals: int) -> None:
    """Also where it came before the first one was answered; else it drains."""
    stop = Interruption()
    for _ in range(signals):
        stop.interrupt(2, None)
    drains = "import sys, time; sys.stdin.read(); time.sleep(1)"
    worker = subprocess.Popen([sys.executable, "-c", drains], stdin=subprocess.PIPE)
    _end(worker, stop)
    assert worker.returncode == (-signal.SIGTERM if signals == 2 else 0)


def test_server_that_keeps_an_ended_run_waiting_is_left() -> None:
    """The thread of the flow is left alone as soon as it is overdue; else its end, or its error, is waited for."""
    done = asyncio.Event()

    async def frozen() -> None:
        await done.wait()

    async def ends() -> None:
        raise PatternmillError("refused")

    began = time.monotonic()
    assert not run_in_thread(frozen, print, lambda: time.monotonic() > began + 0.3)
    assert time.monotonic() < began + 5
    with pytest.raises(PatternmillError, match="refused"):
        run_in_thread(ends, print)


@pytest.mark.parametrize("is_finished", [False, True])
def test_only_the_server_is_not_waited_for(is_finished: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is not finished is never overdue, however long it takes."""
    watched = _WatchedRun(cast(Any, None))
    watched._work = cast(Any, SimpleNamespace(is_finished=is_finished))
    monkeypatch.setattr(launcher, "END_SECONDS", -1.0)
    assert watched.is_overdue() is is_finished
