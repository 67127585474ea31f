"""Whatever a text holds, a terminal is given nothing that it obeys."""

from __future__ import annotations

import re

import pytest

from cli.terminal import echo
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
