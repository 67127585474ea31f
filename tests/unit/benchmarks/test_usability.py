"""Files as spreadsheets and shops write them are right after one round of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.usability import RealSheet, real_sheets, rounds

SHEETS = list(real_sheets())


@pytest.mark.parametrize("sheet", SHEETS, ids=[sheet.name for sheet in SHEETS])
def test_one_round_is_enough(sheet: RealSheet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is named at once, and corrected by the answers of one command and by hand in its copy."""
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert rounds(sheet, Path()) <= 1


def test_page_shows_these_files() -> None:
    """The table of docs/usability.md is of the files that are tested."""
    page = (Path(__file__).parents[3] / "docs" / "usability.md").read_text(encoding="utf-8")
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == [
        one.name for one in SHEETS
    ]
