"""The command line at signals; nobody waits for the Prefect server to see how a run ended."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from cli.launcher import Launch
from patternmill.errors import PatternmillError
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import run_spec
from prefect_host.stop_signals import run_in_thread


class Exited(Exception):
    """Stands for the end of the process, which raises nothing."""


@pytest.fixture
def launch(home: Path) -> Launch:
    request = ImportRequest(file=Path("tea.csv"))
    launch = Launch(request, run_spec(request))
    launch.preview = cast(Any, SimpleNamespace(has_work=True))
    return launch


def test_second_signal_ends_at_once_however_soon_it_comes(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does so even before the loop has stopped the run at the first one."""

    def exit_now(code: int) -> NoReturn:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", exit_now)
    stops: list[str] = []
    spec = SimpleNamespace(options=SimpleNamespace(drain=timedelta(seconds=20)))
    run = SimpleNamespace(ending=None, results=None, is_stopped=False, spec=spec, stop=stops.append)
    loop = asyncio.new_event_loop()
    launch.begun, launch._loop = cast(Any, run), loop
    launch.on_signal("Stopped by Ctrl-C.")
    with pytest.raises(Exited, match="130"):
        launch.on_signal("Stopped by Ctrl-C.")
    assert "A second Ctrl-C ends it at once." in capsys.readouterr().err
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert stops == ["Stopped by Ctrl-C."]


def test_results_are_shown_while_the_flow_still_ends() -> None:
    """The flow's thread goes on; before there are results, its end or error is waited for."""

    async def frozen() -> None:
        await asyncio.Event().wait()

    async def ends() -> None:
        raise PatternmillError("refused")

    assert not run_in_thread(frozen, print, lambda: True).done()
    with pytest.raises(PatternmillError, match="refused"):
        run_in_thread(ends, print)


def test_summary_does_not_wait_for_the_record(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    async def nothing(launch: Launch) -> None:
        """Make nothing."""

    monkeypatch.setattr(Launch, "_drive", nothing)
    monkeypatch.setattr(Launch, "print_ending", lambda launch: calls.append("summary"))
    monkeypatch.setattr(launch.connection, "finish", lambda *ids: calls.append("record"))
    launch.run()
    assert calls == ["summary", "record"]
