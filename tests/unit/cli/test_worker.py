"""How `patternmill up --worker` ends: a supervisor sees by its exit code whether to start it again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.main import run
from cli.worker import ended_by_itself
from patternmill.errors import ConfigurationError
from prefect_host.process_worker import DrainingWorker


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the caller's, and an address where nothing answers."""
    for name in list(os.environ):
        if name.startswith(("PATTERNMILL_", "PREFECT_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    # All are set for the process by the verb.
    monkeypatch.setenv("PATTERNMILL_WORKER_FOLDER", str(tmp_path))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")


def serve(monkeypatch: pytest.MonkeyPatch, start: Any) -> int:
    monkeypatch.setattr(DrainingWorker, "start", start)
    return run(["up", "--worker"])


def test_worker_that_fails_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says why: Prefect's loops raise groups."""

    async def start(self: DrainingWorker, **options: Any) -> None:
        raise ExceptionGroup("unhandled", [RuntimeError("Service exceeded error threshold.")])

    assert serve(monkeypatch, start) == 1
    assert "RuntimeError: Service exceeded error threshold." in capsys.readouterr().err


def test_worker_that_just_ends_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(self: DrainingWorker, **options: Any) -> None:
        """Nobody stopped it."""

    assert serve(monkeypatch, start) == 1


def test_worker_that_is_stopped_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(self: DrainingWorker, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)

    assert serve(monkeypatch, start) == 0


def test_wrong_setting_of_the_worker_ends_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL")
    assert run(["up", "--worker"]) == 2


def test_refusal_keeps_its_own_kind() -> None:
    """So that it keeps its exit code."""
    refusal = ConfigurationError("The pool is of another type.")
    assert ended_by_itself(ExceptionGroup("unhandled", [refusal])) is refusal
