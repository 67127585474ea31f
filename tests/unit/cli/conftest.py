"""A home with a ledger in it, which the command finds by its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patternmill.ledger.ledger import Ledger
from patternmill.ledger.sqlite import SqliteDatabase
from tests.unit.cli.ledgers import Clock, Past


@pytest.fixture(autouse=True)
def _program_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name commands as they are typed where the program's environment is active, and show each step anew."""
    monkeypatch.setattr("cli.terminal.steps._last", "")
    monkeypatch.setattr("cli.terminal.shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home, in a working directory of its own, without any setting of the caller."""
    for name in list(os.environ):
        if name.startswith(("PATTERNMILL_", "PREFECT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is typed on a terminal, one text for each question; Enter after the last one, Ctrl-C for `^C`."""
    left: list[str] = []
    asked: list[str] = []

    def typed(prompt: str) -> str:
        answer = left.pop(0) if left else ""
        print(f"{prompt}{answer}")
        asked.append(prompt)
        if answer == "^C" or len(asked) > 50:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", typed)
    return left


@pytest.fixture
def approved() -> Callable[[str, Path], None]:
    """Return a function that compares a text with the approved one, or approves it if APPROVE=1 is set."""

    def compare(text: str, place: Path) -> None:
        if os.environ.get("APPROVE"):
            place.write_text(text, encoding="utf-8")
        assert text == place.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def past(home: Path) -> Iterator[Past]:
    """Yield a ledger in the home, which tests give a past."""
    clock = Clock()
    with Ledger(SqliteDatabase(home / "ledger.sqlite3"), clock=clock) as ledger:
        yield Past(ledger, clock)
