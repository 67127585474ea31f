"""The verb `check`: its report as JSON, its questions, and the corrected copy that they end in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest

from cli import main
from patternmill.runs.spec import catalog_name

ROWS = """sku,prompt,category,option:size,option:fabric,option:finish
A-1,blue herons,Cusion,50x50,Linnen,
A-2,blue herons,Cusion,50x50,linen,
A-3,,Mug,11oz,,glossy
A-4,green ferns,Mug,12oz,,matte
"""


@pytest.fixture
def file(home: Path) -> Path:
    path = Path("spring.csv")
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is typed, one a question; Enter where there is nothing more."""
    left: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        "click.prompt", lambda text, default, **kind: (left.pop(0) if left else "") or default
    )
    return left


def test_report_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but JSON on the standard output; the exit code is that of the report."""
    assert main.run(["check", str(file), "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["accepted"], report["refused"]) == (4, 0, 4)
    first = report["problems"][0]
    assert (first["row"], first["column"], first["cell"], first["sku"]) == (2, "category", "Cusion", "A-1")
    assert (first["code"], first["suggestion"]) == ("unknown_category", "Cushion")
    assert "Cushion" in first["offered"]
    assert report["problems"][-1]["value"] == "12oz"


def test_unknown_answer_is_followed_by_the_choices(
    file: Path, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """So that the number that is asked for then is one of something."""
    answers += ["Pillow", "1"]
    main.run(["check", str(file), "--fix"])
    shown = capsys.readouterr().out
    assert "`Pillow` is not among them." in shown
    assert "1) Cushion   2) Mug" in shown
    assert "A-1,blue herons,Cushion" in Path("spring.corrected.csv").read_text(encoding="utf-8-sig")


def test_copy_has_the_answers(file: Path, answers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One question a word; what was left is named with the copy's rows, and the source is as it was."""
    answers += ["", "11oz", ""]
    assert main.run(["check", str(file), "--fix"]) == 3
    shown = capsys.readouterr().out
    assert "4 cells in 3 rows corrected in a copy, spring.corrected.csv" in shown
    assert "spring.corrected.csv: 4 rows, 3 accepted, 1 refused." in shown
    assert "row 4 (A-3), prompt: the prompt is empty" in shown
    lines = Path("spring.corrected.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[1:3] == ["A-1,blue herons,Cushion,50x50,linen,", "A-2,blue herons,Cushion,50x50,linen,"]
    assert lines[4] == "A-4,green ferns,Mug,11oz,,matte"
    assert file.read_text(encoding="utf-8") == ROWS


def test_certain_corrections_need_no_answer(file: Path) -> None:
    """Of a number nothing is certain."""
    assert main.run(["check", str(file), "--fix", "--yes"]) == 3
    text = Path("spring.corrected.csv").read_text(encoding="utf-8-sig")
    assert "A-1,blue herons,Cushion,50x50,linen" in text
    assert "Mug,12oz" in text


def test_copy_that_is_right_can_be_imported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next command is named; the copy belongs to the catalog of its source."""
    file.write_text(
        ROWS.replace("Linnen", "linen").replace("A-3,,", "A-3,x,").replace("12oz", "11oz"), encoding="utf-8"
    )
    assert main.run(["check", str(file), "--fix", "--yes"]) == 0
    assert capsys.readouterr().out.endswith("Next: patternmill import spring.corrected.csv\n")
    assert catalog_name(Path("spring.corrected.csv")) == "spring"


def test_encoding_is_asked_for(home: Path, answers: list[str]) -> None:
    """And the columns after it: a German Excel's file is right after one command."""
    rows = "Herbst;;;;\nsku;Prompt text;Product type;Size;Finish\nA1;Reiher am Fluß;Mugg;11oz;matte\n"
    Path("herbst.csv").write_bytes(rows.encode("cp1252"))
    answers += ["cp1252", "y", "y"]
    assert main.run(["check", "herbst.csv", "--fix"]) == 0
    assert main.run(["check", "herbst.corrected.csv"]) == 0


def test_interrupted_questions_keep_what_was_answered(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the first answer there is nothing to keep: no copy, and the exit code of an interruption."""
    left: list[str] = ["y"]

    def prompt(text: str, default: str, **kind: object) -> str:
        if not left:
            raise click.Abort
        return left.pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.prompt", prompt)
    assert main.run(["check", str(file), "--fix"]) == 3
    assert "Stopped: what was answered is kept." in capsys.readouterr().out
    assert "A-1,blue herons,Cushion,50x50,Linnen" in Path("spring.corrected.csv").read_text(
        encoding="utf-8-sig"
    )
    assert main.run(["check", str(file), "--fix"]) == 130
    assert len(list(Path().glob("spring.*"))) == 2
