"""Whatever a text holds, a terminal is given nothing that it obeys."""

from __future__ import annotations

import io
import re

import pytest

from cli.terminal import Steps, echo, said_yes
from patternmill.text import visible_lines
from tests.hostile.texts import HOSTILE_TEXTS

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")


def test_text_is_printed_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    """With its lines."""
    for name, text in HOSTILE_TEXTS.items():
        echo(text, err=True)
        said = capsys.readouterr().err
        assert said == visible_lines(text) + "\n", name
        assert not OBEYED.search(said), name
        assert said.count("\n") == text.count("\n") + 1, name
        assert OBEYED.search(text) or "\u00ad" in text or visible_lines(text) == text, name


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
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = Steps()
    for left in (3, 3, 2):
        steps.show(f"Drawing: {left} left")
    steps.clear()
    assert capsys.readouterr().err == "Drawing: 3 left\nDrawing: 2 left\n"


@pytest.mark.parametrize(
    ("typed", "default", "answer"),
    [
        ("y\n", False, True),
        ("no\n", True, False),
        ("\n", True, True),
        ("j\nwhat\ny\n", False, True),
        ("j\noui\nsi\ny\n", True, False),
    ],
)
def test_question_is_asked_three_times_at_most(
    typed: str, default: bool, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is no answer in the end is no."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert said_yes("Make 3 items?", default=default) is answer
