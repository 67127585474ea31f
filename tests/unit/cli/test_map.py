"""`patternmill map`, and the same question from `import` and `check`: shown, changed, confirmed, remembered."""

from __future__ import annotations

import shlex
import sys
import unicodedata
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
TWO_PROMPTS = "SKU,Title,Description,Type\nM-1,Blue herons,Herons in the mist,Tote bag\n"


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


@pytest.mark.parametrize("width", [60, 80, 120])
def test_proposal_fits_the_terminal(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Wide characters count twice."""
    sheet.write_text(SHEET.replace("Bemerkung", "備考" * 30).replace("neu", "新" * 90), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", str(width))
    main.run(["map", "spring.csv", "--set", "F=option:" + "x" * 40])
    assert max(map(columns_taken, shown(capsys).splitlines())) <= width


def columns_taken(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


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


def test_person_stops(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, "s")
    assert main.run(["map", "spring.csv"]) == 2
    assert "Nothing was remembered" in capsys.readouterr().err


def test_yes_decides_no_question(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two columns may be the prompt: a person says which, on the terminal or with --set."""
    sheet.write_text(TWO_PROMPTS, encoding="utf-8")
    assert main.run(["map", "spring.csv", "--yes"]) == 2
    assert '--set "Title=prompt"' in capsys.readouterr().err
    assert main.run(["map", "spring.csv", "--yes", "--set", "Description=prompt"]) == 0
    assert columns_of(shown(capsys))["Description"] == "prompt"


def test_column_that_is_missing_cannot_be_accepted(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with --yes nor on a terminal, until it is named."""
    sheet.write_text("Prompt,Type,Page\nherons,Tote bag,3\nroses,Tote bag,4\n", encoding="utf-8")
    assert main.run(["map", "spring.csv", "--yes"]) == 2
    assert 'no column for sku.\n  Say which it is: --set "COLUMN=sku"' in capsys.readouterr().err
    answering(monkeypatch, "y", "C=sku", "y")
    assert main.run(["map", "spring.csv"]) == 0


def test_two_columns_of_one_name_are_refused(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet.write_text("Nr,Prompt text,Prompt text,Type\n1,a,b,Tote bag\n", encoding="utf-8")
    assert main.run(["map", "spring.csv", "--yes"]) == 2
    assert "the same column twice: `Prompt text` in column B" in capsys.readouterr().err


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


def test_command_to_confirm_names_what_was_named(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Typed as it is shown, it reads the file as it was checked."""
    sheet.write_bytes(SHEET.replace("cotton", "cötton").encode("cp1252"))
    assert main.run(["check", "spring.csv", "--encoding", "cp1252"]) == 2
    assert "`patternmill map spring.csv --encoding cp1252`" in shown(capsys)


@pytest.mark.parametrize("name", ["spring(1).csv", "R&D;1.csv", "it's 5.csv", "a b.csv", "Grün.csv"])
def test_command_to_confirm_is_typed_as_it_is_shown(
    sheet: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Browsers number what they download again."""
    sheet.rename(name)
    assert main.run(["check", name]) == 2
    command = shown(capsys).rpartition("confirm them: `")[2].partition("`")[0]
    assert list(shlex.shlex(command, posix=True, punctuation_chars=True)) == ["patternmill", "map", name]


def test_check_shows_what_the_columns_could_be(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where that is a question."""
    sheet.write_text(TWO_PROMPTS, encoding="utf-8")
    assert main.run(["check", "spring.csv"]) == 2
    out, err = capsys.readouterr()
    assert columns_of(out)["Description"] == "carried"
    assert "`patternmill map spring.csv`" in err


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


LIKE_OPTIONS = "sku,prompt,category,Size,Colour,finish,Status\nM-1,blue herons,Mug,11oz,navy,glossy,sold\n"


def test_columns_that_look_like_options_are_asked_for(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file has all that it needs; without a terminal their rows are refused, as ever."""
    sheet.write_text(LIKE_OPTIONS.replace(",Status", ",Remark"), encoding="utf-8")
    spec = import_spec(ImportRequest(file=sheet))
    assert confirmed_input(spec).columns.options == ()
    assert main.run(["check", "spring.csv"]) == 2
    assert "1 row, all accepted" in shown(capsys)
    answering(monkeypatch, "s")
    with pytest.raises(InputRefused, match="look like options"):
        confirmed_input(spec)
    answering(monkeypatch, "D=note", "y")
    assert [option.name for option in confirmed_input(spec).columns.options] == ["colour", "finish"]
    assert [option.name for option in confirmed_input(spec).columns.options] == ["colour", "finish"]


def test_column_with_the_name_of_a_result_is_proposed_as_a_note(
    sheet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet.write_text(LIKE_OPTIONS, encoding="utf-8")
    assert main.run(["map", "spring.csv", "--yes"]) == 0
    assert columns_of(shown(capsys))["Status"] == "note:Status"
    assert main.run(["check", "spring.csv"]) == 0


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


def test_answers_on_the_embedded_studio_are_proposed_for_a_service(
    sheet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing could be bought by them there: one key confirms them, and nothing is used without it."""
    assert main.run(["map", "spring.csv", "--yes", "--set", "F=option:filling"]) == 0
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "key-1")
    monkeypatch.setattr("cli.mapping_prompt.offer_if_any", lambda settings: None)
    spec = import_spec(ImportRequest(file=sheet))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(InputRefused, match="`patternmill map"):
        confirmed_input(spec)
    answering(monkeypatch, "y")
    shown(capsys)
    confirmed_input(spec)
    assert columns_of(shown(capsys))["Bemerkung"] == "option:filling"
    answering(monkeypatch)
    assert confirmed_input(spec).columns.options[-1].name == "filling"


def test_mapping_file_next_to_the_source_is_that_of_its_corrected_copy(
    sheet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it the copy's columns would be asked for once more."""
    assert main.run(["map", "spring.csv", "--yes", "--out", "spring.mapping.toml"]) == 0
    assert main.run(["map", "spring.csv", "--forget"]) == 0
    sheet.write_text(SHEET.replace("Cushion,50", "Cusion,50"), encoding="utf-8")
    shown(capsys)
    assert main.run(["check", "spring.csv", "--fix", "--yes"]) == 0
    assert main.run(["check", "spring.corrected.csv"]) == 0
    assert "confirm" not in shown(capsys)


def test_columns_of_an_address_need_its_catalog(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["map", "https://example.com/spring.csv"]) == 2
    assert "--catalog" in capsys.readouterr().err
