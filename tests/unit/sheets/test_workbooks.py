"""Workbooks: a cell is the text that it displays, or its row is refused with the cell's address."""

from __future__ import annotations

import datetime
import io
from typing import Any

import openpyxl
import pytest
from openpyxl.styles import Font

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.problems import FileCode
from patternmill.catalog.row_checks import CheckedCatalog, check_rows
from patternmill.errors import InputRefused
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.sheets.number_formats import displayed
from tests.unit.catalog.samples import OFFER, codes

from .sheet_files import (
    HEADER,
    ROWS,
    TABLE,
    archive,
    ods_row,
    open_document,
    raw_workbook,
    read,
    saved,
    workbook,
    xml_row,
)


def checked(file: CatalogFile) -> CheckedCatalog:
    return check_rows(file, OFFER, prompt_limit=100)


def refused(raw: bytes, **choices: Any) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        read(raw, **choices)
    return caught.value


def test_workbook_is_read_as_its_rows_are_written() -> None:
    file = read(workbook({"Artikel": TABLE}))
    assert file.header == HEADER
    assert [(record.line, record.cells) for record in file.records] == [(2, ROWS[0]), (3, ROWS[1])]
    assert file.layout is not None
    assert file.layout.text == "Excel workbook, worksheet “Artikel”"


def test_ledger_keeps_csv_with_the_same_row_numbers() -> None:
    """Title, blank rows and a table that does not begin in column A: what is kept reads back alike."""
    rows = [["", "Frühjahr"], [], ["", *HEADER], [], ["", *ROWS[0]], [], ["", *ROWS[1]]]
    file = read(workbook({"Artikel": rows}))
    again = parse_catalog(file.raw, name="spring", encoding=file.encoding)
    assert [record.line for record in file.records] == [5, 7]
    assert (again.header, again.records) == (file.header, file.records)
    assert file.layout is not None and file.layout.header_row == 3
    assert file.layout.sha256 != file.sha256


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (12, "General", "12"),
        (12, "00000", "00012"),
        (12, '"A-"000', "A-012"),
        (12, "@", "12"),
        (1.5, "0.00", "1.50"),
        (1.5, "General", "1.5"),
        (1234, "#,##0", "1,234"),
        (4006381333931, "0", "4006381333931"),
        (True, "General", "TRUE"),
        ("007", "General", "007"),
        (" spaced ", "General", " spaced "),
        ("two\nlines", "General", "two\nlines"),
    ],
)
def test_cell_is_the_text_that_it_displays(value: Any, code: str, text: str) -> None:
    row = (value, *ROWS[0][1:])
    file = read(workbook({"Artikel": [HEADER, row]}, {"A2": code}))
    assert file.records[0].cells[0] == text
    assert not file.faults


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.5, "0%", "50%"),
        (0.125, "0.0%", "12.5%"),
        (0.125, "0%", "13%"),
        (1 / 3, "0%", "33%"),
        (1, "0 %", "100 %"),
        (-0.005, "0.00%", "-0.50%"),
        (7e-05, "0%", "0%"),
        (True, "General", "TRUE"),
    ],
)
def test_carried_cells_read_the_same_in_both_kinds_of_workbooks(value: Any, code: str, text: str) -> None:
    """As LibreOffice writes it into the `.ods` of the same sheet."""
    file = read(workbook({"Artikel": [HEADER, (*ROWS[0][:4], value)]}, {"E2": code}))
    assert (file.records[0].cells[4], dict(file.faults)) == (text, {})


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (datetime.date(2025, 3, 1), "yyyy-mm-dd", "the date 2025-03-01"),
        (datetime.datetime.fromisoformat("2025-03-01 12:00"), "d.m.yy h:mm", "the date 2025-03-01 12:00:00"),
        (datetime.time(12, 30), "h:mm", "the time 12:30:00"),
        (4006381333931, "General", "the number 4006381333931, which is displayed as 4.00638E+12"),
        (1 / 3, "General", "which is displayed rounded"),
        (1.55, "0.0", "the number 1.55 in the format `0.0`"),
        (0.5, "0%", "the number 0.5 in the format `0%`"),
        (5, "0.00 €", "the number 5 in the format `0.00 €`"),
        (12345, "0.00E+00", "the number 12345 in the format `0.00E+00`"),
        (1234567890123456, "0", "the number 1.23456789012346e+15 in the format `0`"),
    ],
)
def test_cell_that_displays_something_else_is_refused_with_its_address(
    value: Any, code: str, shown: str
) -> None:
    """Only its row, and only in the columns that a catalog uses."""
    rows = [HEADER, ("A-1", value, *ROWS[0][2:]), ("A-2", *ROWS[0][1:4], value)]
    found = checked(read(workbook({"Artikel": rows}, {"B2": code, "E3": code})))
    assert codes(found) == {2: ["not_text"]}
    assert shown in str(found.problems[0]) and "Artikel!B2" in str(found.problems[0])
    assert "format the cell as Text" in found.problems[0].remedy
    assert ("format `0`" in found.problems[0].remedy) == (value == 4006381333931)


def test_errors_and_formulas_without_a_result_are_refused() -> None:
    cells = '<c r="A2" t="e"><v>#REF!</v></c><c r="B2"><f>A1</f><v></v></c><c r="C2"><f>A1</f></c>'
    calculated = '<c r="A3" t="str"><f>A1</f><v>S-3</v></c><c r="B3"><f>6*2</f><v>12</v></c>'
    rows = f'<row r="2">{cells}</row><row r="3">{calculated}<c r="C3" t="inlineStr"><is><t>Mug</t></is></c></row>'
    found = checked(read(raw_workbook(xml_row(1, HEADER[:3]) + rows)))
    assert [problem.column for problem in found.problems] == ["sku", "prompt", "category"]
    assert "Artikel!A2 holds the error #REF!" in str(found.problems[0])
    assert "a formula whose result is not stored" in str(found.problems[1])
    assert (found.rows[0].sku, found.rows[0].prompt) == ("S-3", "12")


def test_rows_keep_their_numbers_whatever_the_workbook_leaves_out() -> None:
    """Cells without addresses, shared texts in several fonts, hidden rows: all are read, and the hidden ones named."""
    shared = '<si><r><t xml:space="preserve">blue </t></r><r><t>herons</t></r><rPh><t>x</t></rPh></si>'
    without = "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in HEADER[:3])
    hidden = '<row r="5" hidden="1"><c t="inlineStr"><is><t>A</t></is></c><c t="s"><v>0</v></c>'
    mug = '<c t="inlineStr"><is><t>Mug</t></is></c></row>'
    file = read(raw_workbook(f'<row r="3">{without}</row>{hidden}{mug}', shared))
    assert [(record.line, record.cells) for record in file.records] == [(5, ("A", "blue herons", "Mug"))]
    assert "1 row hidden in the worksheet, and read like the others: 5." in file.notes


def test_struck_rows_of_a_workbook_are_known() -> None:
    """By the line through their sku or prompt; one through a price, an empty cell or a part of a text is none."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (HEADER, *(("A", "herons", "Mug", "11oz", "9.90") for _ in range(5))):
        sheet.append(row)
    for cell in ("A2", "B2", "B3", "A1", "E4", "F5"):
        sheet[cell].font = Font(strike=True, bold=True)
    sheet["B6"].font = Font(strike=False, italic=True)
    assert read(saved(book)).struck == {2, 3}


def test_struck_rows_of_an_open_document_are_known() -> None:
    struck = '<table:table-cell table:style-name="ce1"><text:p>A-9</text:p></table:table-cell>'
    row = ods_row([struck, *ROWS[0][1:]], 'table:number-rows-repeated="2"')
    kept = ods_row([*ROWS[1][:4], struck])
    styles = (
        '<style:style style:name="ce1"><style:text-properties style:text-line-through-style="solid"/></style:style>'
        '<style:style style:name="ce2"><style:text-properties style:text-line-through-style="none"/></style:style>'
    )
    assert read(open_document("".join((ods_row(HEADER), row, kept)), styles=styles)).struck == {2, 3}


def test_hidden_columns_that_are_used_are_named() -> None:
    """A column that nobody sees is bought by all the same. One that is only carried is no matter."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in TABLE:
        sheet.append(row)
    sheet.column_dimensions["D"].hidden = sheet.column_dimensions["E"].hidden = True
    assert read(saved(book)).notes == (
        "1 column hidden in the worksheet, and read like the others: `option:size` (D).",
    )
    columns = '<table:table-column/><table:table-column table:visibility="collapse" table:number-columns-repeated="2"/>'
    file = read(open_document(columns + "".join(map(ods_row, TABLE))))
    assert file.notes == (
        "2 columns hidden in the worksheet, and read like the others: `prompt` (B), `category` (C).",
    )


def test_merged_cells_have_their_text_in_the_first() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (HEADER, *ROWS):
        sheet.append(row)
    sheet.merge_cells("C2:C3")
    assert [record.cells[2] for record in read(saved(book)).records] == ["Mug", ""]


def test_worksheet_with_the_columns_of_a_catalog_is_meant() -> None:
    """Legends, empty and hidden worksheets are passed over; a hidden one is read when it is named."""
    sheets = {"Legende": [["a", "b"], ["c", "d"]], "Leer": [], "Artikel": TABLE, "Alt": TABLE[:2]}
    file = read(workbook(sheets, hidden=["Alt"]))
    assert file.layout is not None and file.layout.worksheet == "Artikel"
    assert len(read(workbook(sheets, hidden=["Alt"]), worksheet="alt").records) == 1


def test_several_worksheets_are_shown() -> None:
    fault = refused(workbook({"Artikel": TABLE, "Alt": TABLE[:2]}))
    assert fault.code == FileCode.SEVERAL_WORKSHEETS
    assert "“Artikel” (2 rows: sku, prompt" in fault.message and "“Alt” (1 row" in fault.message
    assert fault.remedy is not None and "--worksheet Artikel" in fault.remedy
    assert refused(workbook({"Artikel": TABLE}), worksheet="Nein").code == FileCode.SEVERAL_WORKSHEETS


def test_surplus_cells_of_a_workbook_are_a_column_without_a_name() -> None:
    file = read(workbook({"Artikel": [HEADER, (*ROWS[0], "further")]}))
    assert file.header == (*HEADER, "")
    assert codes(checked(file)) == {}


def test_displayed_text_of_an_open_document_counts() -> None:
    number = (
        '<table:table-cell office:value-type="float" office:value="{}"><text:p>{}</text:p></table:table-cell>'
    )
    date = '<table:table-cell office:value-type="date"><text:p>01.03.25</text:p></table:table-cell>'
    annotated = (
        "<table:table-cell><office:annotation><text:p>remark</text:p></office:annotation>"
        '<text:p>blue<text:s text:c="2"/><text:span>herons</text:span></text:p>'
        "<text:p>low</text:p></table:table-cell>"
    )
    blank = ods_row(
        ['<table:table-cell table:number-columns-repeated="9"/>'], 'table:number-rows-repeated="2"'
    )
    rows = [
        ods_row(["Frühjahr"]),
        blank,
        ods_row(HEADER),
        ods_row(
            [number.format(7, "007"), annotated, "Mug", number.format(1.5, "1,5"), date],
            'table:visibility="filter"',
        ),
        ods_row([number.format(4006381333931, "4.00638E+12"), date, "Mug"]),
    ]
    file = read(open_document("".join(rows)))
    assert file.records[0].line == 5
    assert file.records[0].cells == ("007", "blue  herons\nlow", "Mug", "1,5", "01.03.25")
    shown = [str(problem) for problem in checked(file).problems if problem.line == 6]
    assert "Artikel!A6 holds the number 4006381333931, which is displayed as 4.00638E+12" in shown[0]
    assert "Artikel!B6 holds the date 01.03.25" in shown[1]
    assert "1 row hidden" in file.notes[0]


def test_hidden_worksheet_of_an_open_document_is_read_when_it_is_named() -> None:
    raw = open_document("".join(map(ods_row, TABLE)), hidden="".join(map(ods_row, TABLE[:2])))
    assert [len(read(raw, worksheet=name).records) for name in (None, "Alt")] == [2, 1]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook"),
        (archive({"xl/workbook.bin": b""}), ".xlsb"),
        (archive({"Index/Document.iwa": b""}), "Numbers"),
        (archive({"a.txt": b""}), "without a workbook"),
        (b"PK\x03\x04 cut short", "damaged"),
        (workbook({"Artikel": TABLE})[:-400], "damaged"),
        (archive({"content.xml": b"", "META-INF/manifest.xml": b"<x><encryption-data/></x>"}), "password"),
        (archive({"mimetype": b"", "encrypted-package": b"", "META-INF/manifest.xml": b"<x/>"}), "password"),
    ],
)
def test_other_archives_are_refused_by_their_names(raw: bytes, shown: str) -> None:
    fault = refused(raw)
    assert shown in fault.message and fault.remedy


@pytest.mark.parametrize("number", [0.0, 7, -7.5, 99999999999, 0.1 + 0.2])
def test_general_format_shows_numbers_as_they_are(number: float) -> None:
    assert float(displayed(number, "General") or "nan") == pytest.approx(number)


MERGED = ("sku", "prompt", "category", "option:size", "option:finish", "option:colour")
MERGED_ROWS = [("A", "b", "Mug", "11oz", "matte", "white"), ("B", "c", "Mug", "11oz", "matte", "")]


def merged_workbook() -> bytes:
    """A colour for both rows, and a title over all columns."""
    book = openpyxl.load_workbook(io.BytesIO(workbook({"Artikel": [("Spring",), MERGED, *MERGED_ROWS]})))
    book.worksheets[0].merge_cells("A1:F1")
    book.worksheets[0].merge_cells("F3:F4")
    return saved(book)


def merged_document() -> bytes:
    title = '<table:table-cell table:number-columns-spanned="6"><text:p>Spring</text:p></table:table-cell>'
    first = (
        '<table:table-cell table:number-columns-spanned="1" table:number-rows-spanned="2">'
        "<text:p>white</text:p></table:table-cell>"
    )
    covered = '<table:covered-table-cell table:number-columns-repeated="5"/>'
    rows = [*MERGED_ROWS[0][:5], first], [*MERGED_ROWS[1][:5], "<table:covered-table-cell/>"]
    return open_document(ods_row([title, covered]) + ods_row(MERGED) + "".join(map(ods_row, rows)))


@pytest.mark.parametrize("raw", [merged_workbook(), merged_document()], ids=["xlsx", "ods"])
def test_merged_cells_below_the_first_are_not_taken_for_empty(raw: bytes) -> None:
    """People see one colour for both rows; the second would be bought without."""
    file = read(raw)
    assert list(file.faults) == [4]
    (finding,) = file.faults[4]
    assert finding.code == "not_text"
    assert finding.message == "Artikel!F4 holds no text of its own, as it is merged into F3:F4"


def test_formula_without_a_result_is_no_missing_option_too() -> None:
    header = ("sku", "prompt", "category", "option:fabric")
    found = checked(
        read(workbook({"Artikel": [header, ("A", "b", "Cushion", "=A1"), ("B", "b", "Cushion", None)]}))
    )
    assert codes(found) == {2: ["not_text"], 3: ["missing_option"]}
