"""What `patternmill up` has its worker run with."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.commands import up
from patternmill.settings import read_settings


def test_worker_has_the_settings_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs elsewhere: the file here holds all the same. What is exported goes first, but for a looser limit."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        "PATTERNMILL_STUDIO_URL=https://studio.example/v1\nPATTERNMILL_API_KEY=key\n"
        "PATTERNMILL_DAY_BUDGET=100\nPATTERNMILL_APPROVE_ABOVE_ITEMS=5\nPATTERNMILL_PATTERN_PRICE=\nOTHER=1\n"
        "PATTERNMILL_MAX_IN_FLIGHT=2\n"
    )
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "7")
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "3")
    with up._environment(read_settings()) as environment:
        assert environment["PATTERNMILL_DAY_BUDGET"] == "100"
        assert environment["PATTERNMILL_APPROVE_ABOVE_ITEMS"] == "5"
        assert environment["PATTERNMILL_MAX_IN_FLIGHT"] == "3"
        assert environment["PATTERNMILL_STUDIO_URL"] == "https://studio.example/v1"
        assert "PATTERNMILL_PATTERN_PRICE" not in environment
        assert "OTHER" not in environment
