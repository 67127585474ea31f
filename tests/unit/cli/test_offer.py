"""The verb `offer`: what can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import main


def test_offer_fits_a_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every category with its options, what has to be chosen, and the values."""
    assert main.run(["offer"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "Mug  (cat_stg_mug)" in lines
    assert "  colour  optional  white, black, navy, red, sage" in lines


def test_offer_of_named_categories(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However they are spelled."""
    assert main.run(["offer", "tote-bag", "cat_stg_mug"]) == 0
    found = capsys.readouterr().out
    assert found.index("Tote bag  (") < found.index("Mug  (cat_stg_mug)") and "Cushion" not in found
    assert "  size    required  11oz, 15oz" in found


def test_category_that_is_not_offered(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest one is named."""
    assert main.run(["offer", "cusion"]) == 2
    assert "Did you mean `Cushion`?" in capsys.readouterr().err
