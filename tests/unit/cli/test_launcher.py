"""What the command line does on signals."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from cli import launcher
from cli.commands.up import _end
from cli.launcher import Launch
from patternmill.errors import PatternmillError
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import RunSpec, run_spec
from prefect_host.connection import PrefectConnection
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
    launch, loop = Launch(cast(Any, None)), asyncio.new_event_loop()
    launch.begun, launch._loop = cast(Any, run), loop
    launch.on_signal("Stopped by Ctrl-C.")
    with pytest.raises(Exited, match="130"):
        launch.on_signal("Stopped by Ctrl-C.")
    assert "A second Ctrl-C ends it at once." in capsys.readouterr().err
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert stops == ["Stopped by Ctrl-C."]


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_signals_are_called_what_a_person_did(number: signal.Signals, name: str) -> None:
    reasons: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), number)
        while not reasons:
            await asyncio.sleep(0.01)

    run_in_thread(work, reasons.append)
    assert reasons == [f"Stopped by {name}."]


@pytest.mark.parametrize(("signals", "ends"), [(0, 0), (1, 0), (2, -signal.SIGTERM)])
def test_second_signal_ends_the_worker_of_up_at_once(signals: int, ends: int) -> None:
    """Also where it came before the first one was answered; else it drains."""
    stop = Interruption()
    for _ in range(signals):
        stop.interrupt(2, None)
    drains = "import sys, time; sys.stdin.read(); time.sleep(0.4)"
    worker = subprocess.Popen([sys.executable, "-S", "-c", drains], stdin=subprocess.PIPE)
    _end(worker, stop)
    assert worker.returncode == ends


def test_results_are_shown_while_the_flow_still_ends() -> None:
    """Its thread goes on; before there are results its end, or its error, is waited for."""
    done = asyncio.Event()

    async def frozen() -> None:
        await done.wait()

    async def ends() -> None:
        raise PatternmillError("refused")

    began = time.monotonic()
    assert not run_in_thread(frozen, print, lambda: time.monotonic() > began + 0.3).done()
    assert time.monotonic() < began + 5
    with pytest.raises(PatternmillError, match="refused"):
        run_in_thread(ends, print)


def test_prefect_is_loaded_before_its_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both load Prefect, and two threads that do at once get it half loaded."""
    steps: list[str] = []

    def load(launch: Launch) -> None:
        time.sleep(0.1)
        steps.append("loaded")

    async def run_alone(launch: Launch, spec: object) -> None:
        steps.append("run")

    connection = SimpleNamespace(is_chosen=True, start=str, wait=lambda: steps.append("asked"))
    monkeypatch.setattr(Launch, "_flow", load)
    monkeypatch.setattr(Launch, "_run_alone", run_alone)
    asyncio.run(Launch(cast(Any, None)).drive(cast(Any, None), cast(Any, connection)))
    assert steps == ["loaded", "asked", "run"]


def test_summary_does_not_wait_for_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []

    class Connection(PrefectConnection):
        def start(self) -> None:
            self.is_available = True

        def finish(self, flow_run_id: str | None, task_runs: int = 0) -> bool:
            calls.append("record")
            return True

    async def nothing(launch: Launch, *arguments: object) -> None:
        launch._is_shown = True

    def agreed(*arguments: object, **more: object) -> bool:
        return True

    def look(launch: Launch, spec: RunSpec, questions: object) -> RunSpec:
        launch.preview = cast(Any, SimpleNamespace(proposal=SimpleNamespace(to_buy={})))
        return spec

    monkeypatch.chdir(tmp_path)
    (tmp_path / "tea.csv").write_text("sku,prompt,category\nA-1,tea,Mug\n")
    monkeypatch.setattr(launcher, "PrefectConnection", Connection)
    monkeypatch.setattr(launcher, "available_service", lambda settings: nullcontext(settings))
    monkeypatch.setattr(Launch, "look", look)
    monkeypatch.setattr(Launch, "drive", nothing)
    monkeypatch.setattr(launcher, "agreed", agreed)
    monkeypatch.setattr(Launch, "print_ending", lambda launch: calls.append("summary"))
    request = ImportRequest(file=Path("tea.csv"))
    launcher.run_request(request, run_spec(request))
    assert calls == ["summary", "record"]
