"""The verb `check`: its questions, the mapping that they end in, and its report as JSON."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cli import main

ROWS = """sku,prompt,category,option:size,option:fabric,option:finish
A-1,blue herons,Cusion,50x50,linen,
A-2,blue herons,Cushion,50x50,Linnen,
A-3,,Mug,11oz,,glossy
A-4,green ferns,Mug,12oz,,matte
"""
MAPPING = Path("spring.mapping.toml")


@pytest.fixture
def file(home: Path) -> Path:
    path = Path("spring.csv")
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is typed, one a question; Enter where there is nothing more, and Ctrl-C for `^C`."""
    left: list[str] = []

    def typed(prompt: str) -> str:
        answer = left.pop(0) if left else ""
        if answer == "^C":
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", typed)
    return left


def mapping() -> dict[str, Any]:
    return tomllib.loads(MAPPING.read_text(encoding="utf-8"))


def test_report_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but JSON on the standard output; the exit code is that of the report."""
    assert main.run(["check", str(file), "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["accepted"], report["refused"]) == (4, 0, 4)
    first = report["problems"][0]
    assert (first["row"], first["column"], first["cell"], first["sku"]) == (2, "category", "Cusion", "A-1")
    assert (first["code"], first["suggestion"]) == ("unknown_category", "Cushion")
    assert "Cushion" in first["offered"]
    assert report["problems"][-1]["value"] == "12oz" and not MAPPING.exists()


def test_answers_are_asked_once_and_kept(
    file: Path, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is certain in one question; a number is asked about, and never taken. The sheet stays as it is."""
    answers += ["y", "10oz", "11oz"]
    assert main.run(["check", str(file)]) == 3
    shown = capsys.readouterr().out
    assert "It seems that:\n  Cusion -> Cushion\n  Linnen -> linen\n" in shown
    assert "What does `12oz` mean in `option:size` of row 5?\n  1) 11oz   2) 15oz\n" in shown
    assert "`10oz` is not among them." in shown
    assert shown.endswith("[empty_prompt]\n\nspring.csv: 4 rows, 3 accepted, 1 refused.\n")
    assert mapping() == {"values": {"Cusion": "Cushion", "Linnen": "linen", "12oz": "11oz"}}
    assert file.read_text(encoding="utf-8") == ROWS
    answers += ["^C"]
    assert main.run(["check", str(file)]) == 3
    assert answers == ["^C"]


def test_what_is_not_certain_is_left_open(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --yes, and without a terminal: the one command that asks is named."""
    assert main.run(["check", str(file)]) == 3
    asks = "`patternmill check spring.csv` asks on a terminal about 3 names of columns or words"
    assert capsys.readouterr().out.endswith(f"{asks}; with --yes it takes what is certain (2).\n")
    assert not MAPPING.exists()
    assert main.run(["check", str(file), "--yes"]) == 3
    assert "What does `12oz` mean" in capsys.readouterr().out
    assert mapping() == {"values": {"Cusion": "Cushion", "Linnen": "linen"}}


@pytest.mark.parametrize("verb", ["check", "import"])
def test_columns_that_nobody_confirmed_are_refused(
    home: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal, with the one command that asks."""
    Path("spring.csv").write_text("Nr;Motiv;Produkt\nA;blaue Reiher;Kissen\n", encoding="utf-8")
    assert main.run([verb, "spring.csv"]) == 2
    assert "`patternmill check spring.csv` asks on a terminal" in capsys.readouterr().err


def test_one_command_from_anybodys_sheet(home: Path, answers: list[str]) -> None:
    """The encoding first, then the columns, then the words; `n` to what seems certain asks each on its own."""
    rows = "Herbst;;;;\nArt.-Nr.;Motiv;Produktart;Größe;Oberfläche\nA1;Reiher am Fluß;Becher;11 oz;glänzend\n"
    Path("spring.csv").write_bytes(rows.encode("cp1252"))
    answers += ["y", "n", "Produktart", "Art.-Nr.", "option:size", "option:finish", "Motiv"]
    assert main.run(["check", "spring.csv"]) == 0
    assert mapping()["reading"] == {"encoding": "cp1252"}
    assert mapping()["columns"]["Motiv"] == "prompt"
    assert mapping()["values"] == {"Becher": "Mug", "11 oz": "11oz", "glänzend": "glossy"}


def test_worksheet_is_asked_for(home: Path, answers: list[str]) -> None:
    from tests.unit.sheets.sheet_files import TABLE, workbook

    header = [*TABLE[0][:3], "option:size", "option:finish"]
    sheet = [header, ["A", "x", "Mug", "11oz", "matte"]]
    Path("spring.xlsx").write_bytes(workbook({"Artikel": sheet, "Archiv": sheet}))
    answers += ["2"]
    assert main.run(["check", "spring.xlsx"]) == 0
    assert mapping() == {"reading": {"worksheet": "Archiv"}}


def test_mapping_of_a_named_catalog_is_kept_in_the_home(file: Path, home: Path) -> None:
    """There every file of the catalog finds it, under whatever name and in whatever folder; or where --mapping says."""
    assert main.run(["check", str(file), "--catalog", "all", "--yes"]) == 3
    assert (home / "all.mapping.toml").exists() and not MAPPING.exists()
    assert main.run(["check", str(file), "--mapping", "agreed.toml", "--yes"]) == 2
    Path("agreed.toml").touch()
    assert main.run(["check", str(file), "--mapping", "agreed.toml", "--yes"]) == 3
    assert "Cusion" in Path("agreed.toml").read_text(encoding="utf-8")


def test_interrupted_questions_keep_what_was_answered(
    file: Path, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answers += ["y", "^C"]
    assert main.run(["check", str(file)]) == 3
    assert "Stopped: what was answered is kept." in capsys.readouterr().out
    assert set(mapping()["values"]) == {"Cusion", "Linnen"}
