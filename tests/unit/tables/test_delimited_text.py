"""Text of every kind that spreadsheets save: delimiters, encodings, title lines; what is unsure is shown."""

from __future__ import annotations

import codecs
from typing import Any

import pytest

from patternmill.errors import InputRefused
from patternmill.reading import FileCode
from patternmill.tables.text_encodings import likely_encodings

from .samples import cells, read, rows
from .sheet_files import HEADER, ROWS, TABLE, delimited


def refused(raw: bytes, **choices: Any) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        read(raw, **choices)
    return caught.value


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(b"", "utf-8"), (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le")],
)
def test_table_is_read_in_every_dialect(delimiter: str, mark: bytes, encoding: str) -> None:
    """Of Excel's: CSV with the system's delimiter, and Unicode text."""
    catalog = read(mark + delimited(TABLE, delimiter, encoding))
    assert catalog.sheet.header == HEADER
    assert cells(catalog) == list(ROWS)


def test_german_excel_needs_the_encoding_alone() -> None:
    """Semicolons, a title line, cp1252. What is UTF-8 is read as that, whatever is named."""
    raw = delimited([["Frühjahr 2025"], [], *TABLE], ";", "cp1252")
    assert refused(raw).code == FileCode.UNREADABLE_ENCODING
    sheet = read(raw, encoding="cp1252").sheet
    assert list(sheet.rows.index) == [4, 5]
    assert sheet.layout.text == "CSV, columns separated by semicolons, CP1252, header in row 3"
    assert rows(read(delimited(TABLE), encoding="cp1252")) == rows(read(delimited(TABLE)))


POLISH = [
    "Grüne Reiher über Wasser",
    "weiße Blüten",
    *["Fächer in Grün"] * 300,
    "źdźbła w świetle",
    "Łódź nocą",
]


@pytest.mark.parametrize("between", [0, 2 << 20])
def test_likely_encodings_show_words_that_they_read_differently(between: int) -> None:
    """Here the first hundreds read alike in both of Windows: nobody could choose by them. However far down they are."""
    prompts = [*POLISH[:-2], "x" * between, *POLISH[-2:]]
    raw = "\n".join(f"A{i},{text},Mug" for i, text in enumerate(prompts)).encode("cp1250")
    first, second = (one for one in likely_encodings(raw) if one[0].startswith("cp125"))
    assert (first[0], first[1][:3]) == ("cp1250", ("źdźbła", "świetle", "Łódź"))
    assert (second[0], second[1][:3]) == ("cp1252", ("ŸdŸb³a", "œwietle", "£ódŸ"))
    assert (first[2], second[2]) == (True, False)


@pytest.mark.parametrize(
    ("text", "codec", "certain"),
    [
        ("Größe,weiß,Kissenhülle", "cp1252", True),
        ("žluťoučký kůň", "cp1250", True),
        ("café “x” für 5 €", "cp1252", True),
        ("鷺と葦の水辺,Mug\nB,青い波|x", "cp932", True),
        ("Catégorie,Référence", "mac_roman", True),
        # Both read as words: a person sees which is meant.
        ("crème,Matière", "cp1252", False),
        ("Größe", "mac_roman", False),
    ],
)
def test_encoding_is_certain_where_no_other_reads_as_words(text: str, codec: str, certain: bool) -> None:
    likely = [name for name, _, are_words in likely_encodings(text.encode(codec)) if are_words]
    assert codec in likely and (likely == [codec]) is certain


def test_line_that_names_the_delimiter_is_no_row() -> None:
    """As in Excel, which does not show it."""
    sheet = read(b"\xef\xbb\xbfsep=;\r\n" + delimited(TABLE, ";")).sheet
    assert list(sheet.rows.index) == [2, 3]


def test_exact_header_decides_between_delimiters() -> None:
    table = [("sku", "prompt", "category", "a,b,c"), ("A", "x", "Mug", "1,2,3")]
    raw = "\n".join(";".join(row) for row in table).encode()
    assert cells(read(raw)) == table[1:]


def test_header_is_found_below_titles() -> None:
    """The rows above it are not rows of the catalog; the numbers stay those of the file."""
    sheet = read(delimited([["Spring list"], ["by", "Ann"], [], *TABLE])).sheet
    assert list(sheet.rows.index) == [5, 6]
    assert sheet.layout.header_row == 4
    table = [["x", "y", "z"], ["1", "2", "3"], *TABLE]
    assert read(delimited(table)).sheet.notes == ("2 rows of a table above the header not read.",)


def test_header_is_found_by_the_mapping() -> None:
    columns = {"Art.": "sku", "Text": "prompt", "Typ": "category"}
    catalog = read(delimited([["Liste"], ["Art.", "Text", "Typ"], ["A", "Rosen", "Mug"]], ";"), columns)
    assert (catalog.columns.prompt, list(catalog.sheet.rows.index)) == (1, [3])


def test_delimiter_may_be_chosen() -> None:
    assert len(cells(read(delimited(TABLE, "~"), delimiter="~"))) == 2
    assert refused(delimited(TABLE, ";"), delimiter="semicolon").code == FileCode.WRONG_DELIMITER


def test_header_row_may_be_chosen() -> None:
    assert list(read(delimited([*TABLE, *TABLE]), header=4).sheet.rows.index) == [5, 6]
    assert refused(delimited(TABLE), header=9).code == FileCode.MISSING_COLUMN
