"""Text of every kind that spreadsheets save: delimiters, encodings, title lines; what is unsure is shown."""

from __future__ import annotations

import codecs
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.problems import FileCode
from patternmill.errors import InputRefused
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.sheets.text_encodings import likely_encodings

from .sheet_files import HEADER, ROWS, TABLE, delimited, read


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
    file = read(mark + delimited(TABLE, delimiter, encoding))
    assert file.header == HEADER
    assert [record.cells for record in file.records] == list(ROWS)
    assert parse_catalog(file.raw, name="spring", encoding=file.encoding).records == file.records


def test_german_excel_needs_the_encoding_alone() -> None:
    """Semicolons, a title line, cp1252. What is UTF-8 is read as that, whatever is named."""
    raw = delimited([["Frühjahr 2025"], [], *TABLE], ";", "cp1252")
    assert refused(raw).code == FileCode.UNREADABLE_ENCODING
    file = read(raw, encoding="cp1252")
    assert [record.line for record in file.records] == [4, 5]
    assert file.layout is not None
    assert file.layout.text == "CSV, columns separated by semicolons, CP1252, header in row 3"
    assert read(delimited(TABLE), encoding="cp1252").records == read(delimited(TABLE)).records


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
    file = read(b"\xef\xbb\xbfsep=;\r\n" + delimited(TABLE, ";"))
    assert [record.line for record in file.records] == [2, 3]


def test_exact_header_decides_between_delimiters() -> None:
    rows = [("sku", "prompt", "category", "a,b,c"), ("A", "x", "Mug", "1,2,3")]
    raw = "\n".join(";".join(row) for row in rows).encode()
    assert read(raw).records[0].cells == rows[1]


def test_header_is_found_below_titles() -> None:
    """The rows above it are not rows of the catalog; the numbers stay those of the file."""
    file = read(delimited([["Spring list"], ["by", "Ann"], [], *TABLE]))
    assert [record.line for record in file.records] == [5, 6]
    assert file.layout is not None and file.layout.header_row == 4
    table = [["x", "y", "z"], ["1", "2", "3"], *TABLE]
    assert read(delimited(table)).notes == ("2 rows of a table above the header not read.",)


def test_header_is_found_by_the_mapping() -> None:
    mapping = ColumnMapping.of({"Art.": "sku", "Text": "prompt", "Typ": "category"})
    file = read(delimited([["Liste"], ["Art.", "Text", "Typ"], ["A", "Rosen", "Mug"]], ";"), mapping)
    assert (file.columns.prompt, file.records[0].line) == (1, 3)


def test_delimiter_may_be_chosen() -> None:
    assert len(read(delimited(TABLE, "~"), delimiter="~").records) == 2
    assert refused(delimited(TABLE, ";"), delimiter="semicolon").code == FileCode.WRONG_DELIMITER


def test_header_row_may_be_chosen() -> None:
    assert [record.line for record in read(delimited([*TABLE, *TABLE]), header=4).records] == [5, 6]
    assert refused(delimited(TABLE), header=9).code == FileCode.MISSING_COLUMN


def test_plain_csv_is_read_as_it_is() -> None:
    """The bytes are kept, and nothing is said."""
    raw = delimited(TABLE)
    file = read(raw)
    assert (file.raw, file.layout, file.notes) == (raw, None, ())


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"Art.;Text;Typ\nA;Rosen;Mug\n", FileCode.MISSING_COLUMN),
        (b"sku;Text;Typ\nA;Rosen;Mug\n", FileCode.MISSING_COLUMN),
        (b"sku;prompt;category;SKU\nA;Rosen;Mug;A\n", FileCode.DUPLICATE_HEADER),
        (b'sku;prompt;category\nA;"Rosen;Mug\n', FileCode.OPEN_QUOTE),
        (b'sku;prompt;category\nA;"Ro"sen;Mug\n', FileCode.STRAY_QUOTE),
        (b"sku;prompt;category\n", FileCode.HEADER_ONLY),
        (b"sep=;\n", FileCode.EMPTY_FILE),
        (b'sep="\nsku\n', FileCode.WRONG_DELIMITER),
    ],
)
def test_refusals_are_those_of_csv(raw: bytes, code: FileCode) -> None:
    assert refused(raw).code == code


CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=8)


@settings(max_examples=25)
@given(st.lists(st.tuples(CELL.filter(str.strip), CELL, CELL), min_size=1, max_size=4))
def test_texts_survive_every_format(rows: list[tuple[str, ...]]) -> None:
    table = [("sku", "prompt", "category"), *rows]
    for raw in (delimited(table, ";"), delimited(table, "\t", "utf-16")):
        assert [record.cells for record in read(raw).records] == rows
