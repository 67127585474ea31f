"""`patternmill map`, and the same question from `import` and `check`: shown, changed, confirmed, remembered."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cli import main
from cli.mapping_prompt import confirmed_input
from patternmill.errors import InputRefused
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.runs.spec import import_spec, refresh_spec

SHEET = """Art.-Nr.,Prompt text,Produktart,Größe (cm),Stoff,Bemerkung
K-100,"Blaue Reiher im Schilf, Morgennebel",Cushion,50x50,linen,neu
K-101,Rote Rosen auf Leinen,Cushion,40x40,cotton,
"""


@pytest.fixture
def sheet(home: Path, tmp_path: Path) -> Path:
    file = tmp_path / "spring.csv"
    file.write_text(SHEET, encoding="utf-8")
    return file


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> Iterator[str]:
    """A terminal at which a person types these."""
    left = iter(answers)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(left))
    return left


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def columns_of(text: str) -> dict[str, str]:
    """The table that is shown: by column, what it is."""
    lines: Iterable[str] = text.partition("because\n")[2].partition("\n\n")[0].splitlines()
    return {line[5:27].strip(): line[28:44].strip() for line in lines}


def test_without_a_terminal_the_proposal_is_shown_and_not_remembered(
    sheet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In lines of at most 80 columns; with the rows as they would be read."""
    assert main.run(["map", "spring.csv"]) == 2
    out, err = capsys.readouterr()
    assert columns_of(out) == {
        "Art.-Nr.": "sku",
        "Prompt text": "prompt",
        "Produktart": "category",
        "Größe (cm)": "option:size",
        "Stoff": "option:fabric",
    }
    assert "carried through to the results: F Bemerkung." in out
    assert "row 2: K-100  Cushion  size=50x50  fabric=linen\n    Blaue Reiher im Schilf, Morgennebel" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "--yes" in err
    assert main.run(["map", "spring.csv", "--show"]) == 2


def test_with_yes_it_is_remembered_shown_and_forgotten(
    sheet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["map", "spring.csv", "--yes"]) == 0
    assert shown(capsys).endswith("Remembered for catalog spring.\n")
    assert main.run(["map", "spring.csv", "--show"]) == 0
    assert "  prompt text  prompt\n" in shown(capsys)
    assert main.run(["check", "spring.csv"]) == 0
    assert main.run(["map", "spring.csv", "--forget"]) == 0
    assert "Forgotten" in shown(capsys)
    assert main.run(["map", "spring.csv", "--forget"]) == 0
    assert main.run(["map", "spring.csv", "--show"]) == 2


def test_person_changes_a_column_and_accepts(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its letter or its name; what is not understood is asked again."""
    answers = answering(
        monkeypatch, "", "what?", "Z=note", "E=colour", "e=note", "Größe (CM) = option:width", "y"
    )
    assert main.run(["map", "spring.csv"]) == 0
    out, err = capsys.readouterr()
    assert next(answers, None) is None
    assert columns_of(out[out.rindex("because") - 50 :])["Stoff"] == "note:Stoff"
    assert "There is no column `Z`." in err
    assert "`colour`, for the column `Stoff`, is no column of a catalog." in err
    main.run(["map", "spring.csv", "--show"])
    assert "option:width" in shown(capsys)


def test_written_mapping_is_read_by_check(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Next to the file by itself, elsewhere by --mapping; with how the file is read."""
    sheet.write_bytes(SHEET.replace(",", ";").encode("cp1252"))
    asked = ["map", "spring.csv", "--yes", "--encoding", "cp1252"]
    assert main.run([*asked, "--out", "spring.mapping.toml"]) == 0
    assert main.run(["map", "spring.csv", "--forget"]) == 0
    text = Path("spring.mapping.toml").read_text(encoding="utf-8")
    assert '"Prompt text" = "prompt"' in text
    assert '"Bemerkung" = "carried"' in text
    assert text.endswith('[reading]\nencoding = "cp1252"\n')
    assert main.run(["check", "spring.csv"]) == 0
    Path("spring.mapping.toml").rename("agreed.toml")
    assert main.run(["check", "spring.csv"]) == 2
    assert main.run(["check", "spring.csv", "--mapping", "agreed.toml"]) == 0


def test_check_reads_certain_columns_as_if_confirmed(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All their mistakes are seen at once; the exit code says that an import would be refused."""
    sheet.write_text(SHEET.replace("cotton", "coton"), encoding="utf-8")
    assert main.run(["check", "spring.csv"]) == 2
    out = shown(capsys)
    assert "2 rows, 1 accepted, 1 refused" in out
    assert "did you mean `cotton`?" in out
    assert "Nothing is bought until you confirm them: `patternmill map spring.csv`." in out


def test_import_asks_on_a_terminal(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: the next import, and a refresh, use what was confirmed. Without a yes nothing begins."""
    spec = import_spec(ImportRequest(file=sheet))
    with pytest.raises(InputRefused, match="`patternmill map"):
        confirmed_input(spec)
    answering(monkeypatch, "s")
    with pytest.raises(InputRefused, match="`patternmill map"):
        confirmed_input(spec)
    answering(monkeypatch, "y")
    assert confirmed_input(spec).columns.prompt == 1
    assert columns_of(shown(capsys))["Prompt text"] == "prompt"
    assert confirmed_input(spec).columns.prompt == 1
    refresh = refresh_spec(RefreshRequest(source=str(sheet), catalog="spring"))
    assert confirmed_input(refresh).columns.sku == 0
    assert shown(capsys) == ""


def test_import_accepts_what_is_proposed_with_yes(sheet: Path) -> None:
    """Without a terminal, and once."""
    spec = import_spec(ImportRequest(file=sheet))
    assert confirmed_input(spec, yes=True).columns.prompt == 1
    assert confirmed_input(spec).columns.prompt == 1


def test_changed_columns_are_asked_for_again(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was confirmed and is still there stays as it was."""
    assert main.run(["map", "spring.csv", "--yes", "--set", "F=option:filling"]) == 0
    sheet.write_text(SHEET.replace("Prompt text", "Motiv"), encoding="utf-8")
    answering(monkeypatch, "y")
    shown(capsys)
    file = confirmed_input(import_spec(ImportRequest(file=sheet)))
    out = shown(capsys)
    assert "`prompt text`, which was `prompt`, is gone" in out
    assert columns_of(out)["Bemerkung"] == "option:filling"
    assert file.columns.prompt == 1
