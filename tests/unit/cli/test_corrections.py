"""The verb `corrections`: what it lists, undoes and writes."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest

from cli import main
from patternmill.catalog.row_corrections import Correction
from tests.unit.cli.ledgers import HERON, Past

CATEGORY = Correction("sku:h-1", "sku:h-1", "H-1", "category", "Cusion", "Cushion")
PROMPT = Correction("sku:h-2", "sku:h-2", "H-2", "prompt", "TBD", "blue herons")


@pytest.fixture
def corrected(past: Past) -> Past:
    run = past.begin(HERON)
    with past.ledger.transaction():
        past.ledger.add_corrections(run.record, [CATEGORY, PROMPT])
    return past


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main.run(["corrections", "spring", *options]) == 0
    return capsys.readouterr().out


def test_corrections_are_listed(corrected: Past, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    assert text.startswith("spring (staging): 2 corrections applied to the source at each refresh.\n")
    assert "  H-1  category `Cusion` -> `Cushion`, by run run-1, 2027-01-15 12:01:00\n" in text
    assert json.loads(shown(capsys, "--json"))[1]["value"] == "blue herons"


def test_corrections_are_written_into_a_copy(
    corrected: Past, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Only where the sheet has the old text; other columns and rows stay, and so does the sheet."""
    sheet = tmp_path / "spring.csv"
    sheet.write_text("Note;sku;Prompt;category\n;H-1;blue herons;Cusion\nx;H-2;green ferns;Mug\n")
    before = sheet.read_bytes()
    text = shown(capsys, "--write", str(sheet))
    assert "spring.corrected.csv: spring.csv with 1 correction.\n  1 cell there already" in text
    with (tmp_path / "spring.corrected.csv").open(encoding="utf-8-sig", newline="") as lines:
        assert list(csv.reader(lines, delimiter=";")) == [
            ["Note", "sku", "Prompt", "category"],
            ["", "H-1", "blue herons", "Cushion"],
            ["x", "H-2", "green ferns", "Mug"],
        ]
    assert sheet.read_bytes() == before
    again = shown(capsys, "--write", str(tmp_path / "spring.corrected.csv"))
    assert "spring.corrected.csv has none of the texts that were corrected: no copy was written." in again


def checked_file(tmp_path: Path, *lines: str) -> Path:
    sheet = tmp_path / "spring.csv"
    sheet.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sheet


def test_check_judges_what_an_import_would_import(
    corrected: Past, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the corrections on record, and a line that names them; the checksum is that of the file."""
    sheet = checked_file(
        tmp_path, "sku,prompt,category,option:size,option:fabric", "H-1,blue herons,Cusion,50x50,linen"
    )
    assert main.run(["check", str(sheet)]) == 0
    shown = capsys.readouterr().out
    assert "spring.csv: 1 row, all accepted." in shown
    assert "Note: 1 correction applied to the source's rows: H-1, category `Cusion` -> `Cushion`." in shown
    assert main.run(["check", str(sheet), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["file"]["sha256"] == hashlib.sha256(sheet.read_bytes()).hexdigest()
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT", "production")
    assert main.run(["check", str(sheet)]) == 3


def test_fix_asks_for_what_is_not_corrected_yet(
    corrected: Past, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The copy has the answers alone: the corrections on record are applied to it as to its source."""
    sheet = checked_file(
        tmp_path,
        "sku,prompt,category,option:size,option:fabric",
        "H-1,blue herons,Cusion,50x50,Linnen",
        "H-2,TBD,Cushion,50x50,linen",
    )
    assert main.run(["check", str(sheet), "--fix", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "1 cell in 1 row corrected in a copy" in shown
    assert "2 corrections applied to the source's rows" in shown
    lines = (tmp_path / "spring.corrected.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[1:] == ["H-1,blue herons,Cusion,50x50,linen", "H-2,TBD,Cushion,50x50,linen"]
