"""What programs leave in sheets and what can mean one thing only: it is read so, or said in one sentence."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import openpyxl
import pytest

from patternmill.planning.offer import Category, Offer, Option
from patternmill.tables.checks import Checked, check_rows

from .samples import codes, read
from .sheet_files import ods_row, open_document, raw_workbook, saved, workbook, xml_row

CUSHION = Category(
    "cat_1",
    "Cushion",
    (
        Option("size", ("40x40", "50x50"), True),
        Option("fabric", ("linen", "velvet"), True),
        Option("trim", ("none",)),
    ),
)
OFFER = Offer((CUSHION, Category("cat_2", "Mug", (Option("size", ("11oz",), True),))), None)
HEADER = ("sku", "prompt", "category", "option:size", "option:fabric", "option:trim", "remark")
LINE = ",".join(HEADER)


def checked(raw: bytes | str, columns: Mapping[str, str] | None = None, **reading: Any) -> Checked:
    return check_rows(read(raw, columns, **reading), OFFER)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # Of empty last columns the separators may be left out.
        ("A,herons,Cushion,50x50,linen", []),
        ("A,herons,Cushion,50x50,linen,none", []),
        ("A,herons,Mug,11oz", []),
        # What the row needs is not guessed to be empty: it may have been cut off.
        ("A,herons,Cushion,50x50", ["missing_cells"]),
        ("A,herons,Mug", ["missing_cells"]),
        ("A,herons", ["missing_cells"]),
        ("A", ["missing_cells"]),
        ("A,herons,Nope", ["unknown_category"]),
    ],
)
def test_row_may_end_before_columns_that_it_does_not_need(row: str, expected: list[str]) -> None:
    found = checked(f"{LINE}\n{row}\n")
    assert codes(found).get(2, []) == expected
    if not expected:
        assert next(found.catalog.sheet.records())[1] == (
            *row.split(","),
            *[""] * (len(HEADER) - len(row.split(","))),
        )


@pytest.mark.parametrize("end", ["\n\x1a", "\x1a", "\r\n\x1a\x1a\x1a", "\n\x1a\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_end_of_file_of_dos_is_no_row(end: str, encoding: str) -> None:
    text = f"{LINE}\nA,hérons,Mug,11oz{end}"
    found = checked(text.encode(encoding), encoding="cp1252")
    assert codes(found) == {} and len(found.rows) == 1
    assert found.accepted[0].selections == {"size": "11oz"}


def test_row_without_a_category_has_that_fault_alone() -> None:
    """What its options mean is said once the category is known; so it is where nobody offers the category."""
    columns = {"Nr": "sku", "Titel": "prompt", "Typ": "category", "Wahl 1": "option", "Wahl 2": "option"}
    text = "Nr,Titel,Typ,Wahl 1,Wahl 2,Size\nA,herons,,50x50,linen,x\nB,ferns,Nope,50x50,linen,x\nC,,,50x50,#REF!,\n"
    assert codes(checked(text, columns)) == {
        2: ["empty_category"],
        3: ["unknown_category"],
        # Faults of their own remain.
        4: ["empty_prompt", "empty_category", "spreadsheet_error"],
    }


NOTHING = [
    "nan",
    "None",
    "NaN",
    "null",
    "undefined",
    "NA",
    "n/a",
    "#N/A",
    "<null>",
    "N.A.",
    "keine Angabe",
    "TBD",
    "-",
]
DITTO = [
    "same as above",
    "Ditto",
    "dto.",
    "s.o.",
    '"',
    "''",
    "〃",
    '-"-',
    "wie oben",
    "siehe oben",
    "idem",
    "同上",
]


@pytest.mark.parametrize("prompt", [*NOTHING, *DITTO])
def test_what_stands_for_no_prompt_is_no_prompt(prompt: str) -> None:
    cell = prompt.replace('"', '""')
    found = checked(f'{LINE}\nA,"{cell}",Mug,11oz\n')
    assert codes(found) == {2: ["spreadsheet_error" if prompt == "#N/A" else "placeholder"]}
    assert ("that row's prompt" in found.problems["remedy"][0]) is (prompt in DITTO)


@pytest.mark.parametrize(
    "prompt", ["nanas", "none of the herons", "above the clouds", "a null field", "O", "🦩", "xx"]
)
def test_words_in_a_prompt_are_a_prompt(prompt: str) -> None:
    assert codes(checked(f"{LINE}\nA,{prompt},Mug,11oz\n")) == {}


def hidden_rows(*, by_filter: bool) -> bytes:
    rows = [HEADER, *((sku, "herons", "Mug", "11oz", "", "", "") for sku in "ABC")]
    book = openpyxl.load_workbook(io.BytesIO(workbook({"Artikel": rows})))
    if by_filter:
        book.worksheets[0].auto_filter.ref = "A1:G4"
    for number in (3, 4, 9):
        book.worksheets[0].row_dimensions[number].hidden = True
    return saved(book)


@pytest.mark.parametrize(
    ("raw", "note"),
    [
        (
            hidden_rows(by_filter=True),
            "2 rows of the sheet are hidden by a filter, and read like the others.",
        ),
        (hidden_rows(by_filter=False), "2 rows of the sheet are hidden, and read like the others."),
        (
            open_document(
                ods_row(HEADER)
                + ods_row(["A", "herons", "Mug", "11oz"])
                + ods_row(["B", "herons", "Mug", "11oz"], 'table:visibility="filter"')
            ),
            "1 row of the sheet is hidden by a filter, and read like the others.",
        ),
    ],
)
def test_hidden_rows_are_counted(raw: bytes, note: str) -> None:
    found = checked(raw)
    assert codes(found) == {} and note in found.notes
    assert not any("hidden" in note for note in checked(workbook({"Artikel": [HEADER, HEADER]})).notes)


def numbers(*formats: str) -> bytes:
    """A workbook whose skus are the number 12, each in another format."""
    rows = [HEADER, *((12, "herons", "Mug", "11oz", "", "", "") for _ in formats)]
    return workbook({"Artikel": rows}, {f"A{number}": code for number, code in enumerate(formats, 2)})


def test_skus_that_are_numbers_are_taken_as_shown_where_the_mapping_says_so() -> None:
    raw = numbers("00000", "General", '"ART-"000')
    found = checked(raw)
    assert codes(found) == {row: ["not_text"] for row in (2, 3, 4)}
    assert 'sheet shows them (`00012`), write `sku_numbers = "as shown"`' in found.problems["remedy"][0]
    assert "Data > Text to Columns > Text" in found.problems["remedy"][0]
    found = checked(raw, sku_numbers="as shown")
    assert [row.sku for row in found.accepted] == ["00012", "12", "ART-012"]


@pytest.mark.parametrize("code", ["#,##0", "0%", "0.00E+00", "[>9]000;0"])
def test_number_in_a_format_that_is_not_told_stays_refused(code: str) -> None:
    found = checked(numbers(code), sku_numbers="as shown")
    assert codes(found) == {2: ["not_text"]}
    assert "as shown" not in found.problems["remedy"][0]


def test_numbers_elsewhere_are_not_changed_by_their_format() -> None:
    cells = '<c r="A2" t="inlineStr"><is><t>A</t></is></c><c r="B2"><v>7</v></c>'
    found = checked(
        raw_workbook(xml_row(1, HEADER[:3]) + f'<row r="2">{cells}</row>'),
        sku_numbers="as shown",
    )
    assert codes(found) == {2: ["empty_category"]}


def test_cells_beyond_the_header_are_kept() -> None:
    sheet = read(f"{LINE}\nA,blue, red, green,Mug,11oz,,,,x\nB,ferns,Mug,11oz,,,,,\n").sheet
    assert sheet.surplus == {2: ("", "", "x"), 3: ("", "")}
    found = checked(f"{LINE}\nA,blue, red, green,Mug,11oz,,,,x\nB,ferns,Mug,11oz,,,,,\n")
    assert list(found.problems["message"]) == [
        "the row has 10 cells, but the header has 7",
        "the row has 9 cells, but the header has 7",
    ]
