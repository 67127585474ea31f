"""Whatever a text holds, a terminal is given nothing that it obeys."""

from __future__ import annotations

import io
import re

import pytest

import cli.terminal
from cli.terminal import Steps, echo, fitted, unbroken
from patternmill.text import visible_lines
from tests.hostile.texts import HOSTILE_TEXTS

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
def test_text_is_printed_unchanged(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With its lines."""
    echo(text, err=True)
    said = capsys.readouterr().err
    assert said == visible_lines(text) + "\n"
    assert not OBEYED.search(said)
    assert said.count("\n") == text.count("\n") + 1
    assert OBEYED.search(text) or "\u00ad" in text or visible_lines(text) == text


def test_escape_sequence_is_spelled_out() -> None:
    assert visible_lines("\x1b[31mred") == r"\u001b[31mred"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal(width: int) -> None:
    """Wrapped between words; what continues a line is below its text."""
    lines = [
        "  2 × missing_option: option `size` is required; offered: 40x40, 50x50, 60x40; fill in `option:size`",
        "  PATTERNMILL_CURRENCY     EUR, USD, ...: how amounts are shown; they are set in minor units",
    ]
    shown = fitted("\n".join(lines), width)
    assert all(len(line) <= width for line in shown.split("\n"))
    assert shown.split() == " ".join(lines).split()
    assert width > 80 or "\n" + " " * 27 in shown


def test_paths_stay_whole() -> None:
    """To be copied."""
    path = "results/spring-catalog-of-the-year/20261122-135743-688520/results.csv"
    assert fitted(f"Results:  {path}", 60).split() == ["Results:", path]


def test_paths_with_spaces_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Where they are marked as one; without a terminal the mark is a space too."""
    path = "/home/ada/My Spring Orders 2026 from the shop (final)/spring.corrected.csv"
    line = f"4 cells in 3 rows corrected in a copy, {unbroken(path)}"
    echo(line)
    assert capsys.readouterr().out == f"4 cells in 3 rows corrected in a copy, {path}\n"
    assert fitted(line, 60) == f"4 cells in 3 rows corrected in a copy,\n{path}"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_steps_are_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortened to the terminal, and gone when something else is written."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    steps = Steps()
    steps.show("Reading spring.csv …")
    steps.show("Drawing the gallery's pictures: 1,840 left, about 4 min")
    steps.clear()
    assert "\n" not in terminal.getvalue()
    first, second, rest = terminal.getvalue().split("\r\x1b[K")[1:]
    assert (first, rest) == ("Reading spring.csv …", "")
    assert second.startswith("Drawing the gallery's pictures: 1,840") and len(second) < 40


def test_steps_are_lines_without_repetition_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """How far a step is comes again after a while."""
    now = 100.0
    monkeypatch.setattr(cli.terminal.time, "monotonic", lambda: now)
    steps = Steps()
    for left in (3, 2):
        steps.show(f"Drawing: {left} left")
    now += Steps.SECONDS
    steps.show("Drawing: 1 left")
    steps.clear()
    assert capsys.readouterr().err == "Drawing: 3 left\nDrawing: 1 left\n"


@pytest.mark.parametrize(
    "command",
    ["patternmill import 'my big.csv' --environment production --budget 500", "`patternmill up --port 4200`"],
)
def test_commands_stay_whole(command: str) -> None:
    """Pasted in two pieces, the first would run without what limits it."""
    line = f"To go on with what is left of this run now: {command}"
    assert fitted(line, 60) == f"To go on with what is left of this run now:\n{command}"
