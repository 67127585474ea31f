"""The corrected copy: the source's own form with other texts in it, under a name that is free."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from patternmill.catalog.fixes import Edits
from patternmill.catalog.remote import source_stem
from patternmill.catalog.row_checks import check_rows
from patternmill.catalog.sheet_choices import SheetChoices
from patternmill.errors import InputRefused
from patternmill.sheets.corrected_copy import NO_TEXT, write_corrected
from patternmill.sheets.sheet_reader import read_catalog

from .sheet_files import HEADER, TABLE, ods_row, open_document, workbook


def copy_of(source: Path, edits: Edits) -> bytes:
    return write_corrected(source, read_catalog(source), edits)[0].read_bytes()


def test_rows_keep_their_numbers_and_texts(tmp_path: Path) -> None:
    """Blank rows, quoted line breaks and the ends of lines too; in UTF-8 with its mark, as spreadsheets need it."""
    source = tmp_path / "spring.csv"
    source.write_bytes(b'sku,prompt,category\r\n\r\nA,"a\nb, c",Mugg\r\nB,b,Mug\r\n')
    assert copy_of(source, Edits(cells={(3, 2): "Mug"})) == (
        b'\xef\xbb\xbfsku,prompt,category\r\n\r\nA,"a\nb, c",Mug\r\nB,b,Mug\r\n'
    )


def test_other_encodings_become_utf_8(tmp_path: Path) -> None:
    source = tmp_path / "spring.csv"
    source.write_bytes("sku,prompt,category\nA,Lüneburg,Mugg\n".encode("utf-16"))
    assert (
        copy_of(source, Edits(cells={(2, 2): "Mug"})).decode("utf-8-sig").splitlines()[1] == "A,Lüneburg,Mug"
    )


def test_new_column_is_the_last_of_each_row(tmp_path: Path) -> None:
    """But not of one that does not fit the header."""
    source = tmp_path / "spring.csv"
    source.write_text("sku,prompt,category\nA,b,Cushion\nB,b\n")
    edits = Edits({3: "option:fabric"}, {(2, 3): "linen"})
    rows = list(csv.reader(io.StringIO(copy_of(source, edits).decode("utf-8-sig"))))
    assert rows == [
        ["sku", "prompt", "category", "option:fabric"],
        ["A", "b", "Cushion", "linen"],
        ["B", "b"],
    ]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Neither the source nor an earlier copy; a copy of a copy is numbered."""
    source = tmp_path / "spring.csv"
    source.write_text("sku,prompt,category\nA,b,Mugg\n")
    edits = Edits(cells={(2, 2): "Mug"})
    first, copy = write_corrected(source, read_catalog(source), edits)
    second, _ = write_corrected(first, copy, edits)
    assert [first.name, second.name] == ["spring.corrected.csv", "spring.corrected-2.csv"]
    assert source.read_text() == "sku,prompt,category\nA,b,Mugg\n"


def test_cells_of_results_stay_defused(tmp_path: Path) -> None:
    """A corrected failures.csv is one still."""
    source = tmp_path / "failures.csv"
    source.write_text("sku,prompt,category,status,run\n'=A,b,Mugg,refused,run-1\n")
    assert copy_of(source, Edits(cells={(2, 1): "=b"})).decode().splitlines()[1].startswith("'=A,'=b,Mugg")


def test_texts_keep_their_delimiter_and_titles(tmp_path: Path) -> None:
    """What the copy is read as is what the source was read as; in UTF-8, so that nothing has to be said of it."""
    source = tmp_path / "herbst.csv"
    source.write_bytes("Herbst;;\r\nsku;prompt;category\r\nA;Fluß;Mugg\r\n".encode("cp1252"))
    file = read_catalog(source, choices=SheetChoices(encoding="cp1252"))
    place, copy = write_corrected(source, file, Edits(cells={(3, 2): "Mug"}))
    assert place.read_text(encoding="utf-8-sig") == "Herbst;;\nsku;prompt;category\nA;Fluß;Mug\n"
    assert copy.records[0].cells == ("A", "Fluß", "Mug")


def test_workbook_becomes_csv_with_the_same_row_numbers(tmp_path: Path) -> None:
    source = tmp_path / "herbst.xlsx"
    source.write_bytes(workbook({"Artikel": [["Herbst"], [], *TABLE], "Notes": [["as it was"]]}))
    place, copy = write_corrected(source, read_catalog(source), Edits(cells={(5, 2): "=Mug"}))
    assert place.name == "herbst.corrected.csv"
    assert [(record.line, record.cells[2]) for record in copy.records] == [(4, "Mug"), (5, "=Mug")]


def test_json_lines_become_csv(tmp_path: Path) -> None:
    source = tmp_path / "spring.jsonl"
    source.write_text('{"sku": "A", "prompt": "b", "category": "Mugg"}\n')
    place, copy = write_corrected(source, read_catalog(source), Edits(cells={(2, 2): "Mug"}))
    assert (place.name, copy.records[0].cells) == ("spring.corrected.csv", ("A", "b", "Mug"))


def test_source_that_changed_meanwhile_is_not_copied(tmp_path: Path) -> None:
    """It was saved while the questions were answered: its rows may be others."""
    source = tmp_path / "spring.csv"
    source.write_text("sku,prompt,category\nA,b,Mugg\n")
    file = read_catalog(source)
    source.write_text("sku,prompt,category\nB,b,Mug\nA,b,Mugg\n")
    with pytest.raises(InputRefused, match="saved by another program"):
        write_corrected(source, file, Edits(cells={(2, 2): "Mug"}))
    assert [path.name for path in tmp_path.iterdir()] == ["spring.csv"]


@pytest.mark.parametrize("name", ["spring.csv", "spring.corrected.csv", "spring.Corrected-12.xlsx"])
def test_copies_belong_to_the_catalog_of_their_source(name: str) -> None:
    assert source_stem(Path(name)) == "spring"


def test_cells_that_are_no_text_are_refused_in_a_copy_as_csv(tmp_path: Path) -> None:
    """There a date would be a text like any other; what was answered for such a cell is written."""
    cell = '<table:table-cell office:value-type="{}" {}><text:p>{}</text:p></table:table-cell>'
    date = cell.format("date", 'office:date-value="2026-05-01"', "01.05.26")
    source = tmp_path / "spring.ods"
    source.write_bytes(open_document(ods_row(HEADER) + ods_row([date, date, "Cusion", date, date])))
    edits = Edits(cells={(2, 2): "Cushion", (2, 3): "11oz"})
    _, copy = write_corrected(source, read_catalog(source), edits)
    assert copy.records[0].cells == (NO_TEXT, NO_TEXT, "Cushion", "11oz", "2026-05-01")
    found = check_rows(copy, None, prompt_limit=100).problems
    assert [str(one.code) for one in found] == ["spreadsheet_error"] * 2
