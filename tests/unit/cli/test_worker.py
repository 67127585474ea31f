"""How `patternmill up --worker` ends: a supervisor sees by its exit code whether to start it again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.commands import up
from cli.main import run
from cli.worker import ended_by_itself
from patternmill.errors import ConfigurationError
from patternmill.settings import read_settings
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


async def fails(self: DrainingWorker, **options: Any) -> None:
    raise ExceptionGroup("unhandled", [RuntimeError("Service exceeded error threshold.")])


async def just_ends(self: DrainingWorker, **options: Any) -> None:
    """Nobody stopped it."""


async def is_stopped(self: DrainingWorker, **options: Any) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("start", "code", "message"),
    [
        (fails, 1, "RuntimeError: Service exceeded error threshold."),
        (just_ends, 1, "ended by itself"),
        (is_stopped, 0, ""),
    ],
)
def test_worker_ends_with_a_code_for_its_supervisor(
    start: Any, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says why: Prefect's loops raise groups."""
    monkeypatch.setattr(DrainingWorker, "start", start)
    assert run(["up", "--worker"]) == code
    assert message in capsys.readouterr().err


def test_refusal_keeps_its_own_kind() -> None:
    """So that it keeps its exit code."""
    refusal = ConfigurationError("The pool is of another type.")
    assert ended_by_itself(ExceptionGroup("unhandled", [refusal])) is refusal


def test_worker_has_the_settings_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs elsewhere: the file here holds all the same. What is exported goes first, but for a looser limit."""
    Path(".env").write_text(
        "PATTERNMILL_STUDIO_URL=https://studio.example/v1\nPATTERNMILL_API_KEY=key\n"
        "PATTERNMILL_DAY_BUDGET=100\nPATTERNMILL_APPROVE_ABOVE_ITEMS=5\nPATTERNMILL_PATTERN_PRICE=\nOTHER=1\n"
        "PATTERNMILL_MAX_IN_FLIGHT=2\n"
    )
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "7")
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "3")
    with up._environment(read_settings()) as environment:
        names = ("DAY_BUDGET", "APPROVE_ABOVE_ITEMS", "MAX_IN_FLIGHT", "STUDIO_URL")
        values = [environment[f"PATTERNMILL_{name}"] for name in names]
        assert values == ["100", "5", "3", "https://studio.example/v1"]
        assert "PATTERNMILL_PATTERN_PRICE" not in environment and "OTHER" not in environment
