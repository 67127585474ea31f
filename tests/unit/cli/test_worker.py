"""How `patternmill up` and its worker end: the exit code tells a supervisor whether to start it again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.commands import up
from cli.main import run
from patternmill.errors import ConfigurationError
from patternmill.settings import read_settings
from prefect_host.process_worker import DrainingWorker
from prefect_host.stop_signals import Interruption


@pytest.fixture(autouse=True)
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set an address where nothing answers."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    # The verb sets both for the whole process.
    monkeypatch.setenv("PATTERNMILL_WORKER_FOLDER", str(Path.cwd()))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")


REFUSAL = ConfigurationError("The pool is of another type.")
FAULT = RuntimeError("Service exceeded error threshold.")


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        # Prefect's loops raise groups; a refusal keeps its own exit code.
        (ExceptionGroup("unhandled", [FAULT]), 1, "RuntimeError: Service exceeded error threshold."),
        (ExceptionGroup("unhandled", [REFUSAL]), 2, "The pool is of another type."),
        (None, 1, "ended by itself"),
        (signal.SIGTERM, 0, ""),
    ],
)
def test_worker_ends_with_a_code_for_its_supervisor(
    end: Any, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def start(self: DrainingWorker, **options: Any) -> None:
        if isinstance(end, Exception):
            raise end
        if end is not None:
            os.kill(os.getpid(), end)
            await asyncio.Event().wait()

    monkeypatch.setattr(DrainingWorker, "start", start)
    assert run(["up", "--worker"]) == code
    assert message in capsys.readouterr().err


def test_worker_has_the_settings_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in another folder, but the file here counts. What is exported goes first, except for a looser limit."""
    values = {"STUDIO_URL": "https://studio.example/v1", "API_KEY": "key", "DAY_BUDGET": "100"}
    values |= {"APPROVE_ABOVE_ITEMS": "5", "PATTERN_PRICE": "", "MAX_IN_FLIGHT": "2"}
    lines = [f"PATTERNMILL_{name}={value}" for name, value in values.items()]
    Path(".env").write_text("\n".join([*lines, "OTHER=1"]))
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "7")
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "3")
    with up._environment(read_settings()) as environment:
        read = {name: environment.get(f"PATTERNMILL_{name}") for name in values}
        assert read == values | {"MAX_IN_FLIGHT": "3", "PATTERN_PRICE": None}
        assert "OTHER" not in environment


@pytest.mark.parametrize(("signals", "ends"), [(0, 0), (1, 0), (2, -signal.SIGTERM)])
def test_second_signal_ends_the_worker_of_up_at_once(signals: int, ends: int) -> None:
    """It does so even if it came before the first one was handled; otherwise the worker drains."""
    stop = Interruption()
    for _ in range(signals):
        stop.interrupt(2, None)
    drains = f"import sys, time; sys.stdin.read(); time.sleep({0 if signals < 2 else 60})"
    worker = subprocess.Popen([sys.executable, "-S", "-c", drains], stdin=subprocess.PIPE)
    up._end(worker, stop)
    assert worker.returncode == ends
