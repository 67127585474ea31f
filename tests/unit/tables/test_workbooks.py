"""Workbooks: parsed in a process with limits; a cell is a text or plain number, or its row is refused."""

from __future__ import annotations

import datetime
import io
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.errors import InputRefused
from patternmill.reading import FileCode, Reading
from patternmill.tables import workbooks

from .samples import cells, checked, codes, problems, read, rows
from .sheet_files import (
    HEADER,
    ROWS,
    TABLE,
    archive,
    delimited,
    ods_row,
    open_document,
    raw_workbook,
    saved,
    workbook,
    xml_row,
)


def refused(raw: bytes, reading: Reading | None = None, **choices: Any) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        read(raw, limits=reading, name="spring", **choices)
    assert caught.value.remedy
    return caught.value


_DOCUMENT = open_document("".join(map(ods_row, TABLE)), hidden="".join(map(ods_row, TABLE[:2])))


@pytest.mark.parametrize(
    ("raw", "layout"),
    [
        (workbook({"Artikel": TABLE}), "Excel workbook, worksheet “Artikel”"),
        (_DOCUMENT, "OpenDocument spreadsheet, worksheet “Artikel”"),
    ],
    ids=["xlsx", "ods"],
)
def test_workbook_is_read_as_its_rows_are_written(raw: bytes, layout: str) -> None:
    """This process never imports the parser, which can abort its process."""
    catalog = read(raw)
    assert catalog.sheet.header == HEADER
    assert rows(catalog) == [(2, ROWS[0]), (3, ROWS[1])]
    assert catalog.sheet.layout.text == layout
    assert "python_calamine" not in sys.modules


def test_rows_have_the_numbers_of_the_spreadsheet() -> None:
    """Below a title and blank rows, also where the table does not begin in column A; merged cells are filled down."""
    table = [["", "Frühjahr"], [], ["", *HEADER], [], ["", *ROWS[0]], ["", *ROWS[1]]]
    book = openpyxl.load_workbook(io.BytesIO(workbook({"Artikel": table})))
    book.worksheets[0].merged_cells.add("A1:F1")
    book.worksheets[0].merged_cells.add("D5:D9999")
    catalog = read(saved(book))
    assert [number for number, _ in rows(catalog)] == [5, 6]
    assert catalog.sheet.blank_rows == 1
    assert [row[3] for row in cells(catalog)] == ["Mug", "Mug"]


def test_cells_of_a_document_are_filled_down_and_keep_their_breaks() -> None:
    """An empty option chooses nothing, and two words are not one."""
    spaces = '<table:covered-table-cell table:number-columns-repeated="2"/>'
    option = '<table:table-cell table:number-rows-spanned="3" {}><text:p>11oz</text:p></table:table-cell>'
    prompt = "blue<text:line-break/>herons<text:tab />x"
    table = [
        HEADER[:4],
        ("A", prompt, "Mug", option.format('office:value-type="string"')),
        ("B", "c d", "Mug"),
    ]
    raw = open_document("".join(map(ods_row, table)) + ods_row(["C", spaces]))
    assert cells(read(raw)) == [
        ("A", "blue\nherons\tx", "Mug", "11oz"),
        ("B", "c d", "Mug", "11oz"),
        ("C", "", "", "11oz"),
    ]


def test_numbers_are_the_texts_that_people_write() -> None:
    """Here they are prompts; what is neither a plain number nor a text is refused where a catalog uses it."""
    values = (7, -12.0, 1.5, 0.1 + 0.2, 4006381333931)
    table = [HEADER, *((f"A-{value}", value, *ROWS[0][2:]) for value in values)]
    assert [row[1] for row in cells(read(workbook({"Artikel": table})))] == [
        *("7", "-12", "1.5", "0.3", "4006381333931")
    ]
    odd: tuple[tuple[Any, str, str], ...] = (
        (datetime.date(2025, 3, 1), "yyyy-mm-dd", "the date 2025-03-01"),
        (datetime.datetime.fromisoformat("2025-03-01 12:00"), "d.m.yy h:mm", "the date 2025-03-01 12:00:00"),
        (datetime.time(12, 30), "h:mm", "the time 12:30:00"),
        (True, "General", "the truth value TRUE"),
        (1e-7, "General", "the number 1e-07"),
        (1234567890123456, "0", "the number 1.23456789012346e+15"),
    )
    table = [HEADER, *((f"A-{at}", value, *ROWS[0][2:]) for at, (value, _, _) in enumerate(odd))]
    table.append(("B", *ROWS[0][1:4], datetime.date(2025, 3, 1)))
    formats = {f"B{at}": code for at, (_, code, _) in enumerate(odd, 2)}
    found = checked(read(workbook({"Artikel": table}, formats)))
    assert [problem.message for problem in problems(found)] == [
        f"Artikel!B{at} holds {shown}, not text" for at, (_, _, shown) in enumerate(odd, 2)
    ]


def numbered(*formats: str, sku: float = 12) -> bytes:
    """Return a workbook whose skus are one number, each in another format."""
    table = [HEADER, *((sku, *ROWS[0][1:]) for _ in formats)]
    return workbook({"Artikel": table}, {f"A{at}": code for at, code in enumerate(formats, 2)})


def test_skus_that_are_numbers_are_taken_as_shown_where_the_mapping_says_so() -> None:
    """Never 12 for 00012; the remedy is for a whole column."""
    formats = {
        "00000": "00012",
        "General": "12",
        "0000": "0012",
        '"N"#': "N12",
        '"ART-"000': "ART-012",
        "0000-0": "0001-2",
    }
    found = checked(read(numbered(*formats)))
    assert codes(found) == {row: ["not_text"] for row in range(2, len(formats) + 2)}
    message, remedy = problems(found)[0].message, problems(found)[0].remedy
    assert message == "Artikel!A2 holds a number, of which leading zeros are lost"
    assert 'sheet shows them (`00012`), write `sku_numbers = "as shown"`' in remedy
    assert "Data > Text to Columns > Text" in remedy and "export the sheet as CSV" in remedy
    found = checked(read(numbered(*formats), sku_numbers="as shown"))
    assert [row.sku for row in found.accepted] == list(formats.values())


def test_number_in_a_format_that_is_not_told_stays_refused() -> None:
    """Thousands, a scale, a condition; and a fraction that the format does not show."""
    found = checked(read(numbered("#,##0", "0%", "0.00E+00", "[>9]000;0"), sku_numbers="as shown"))
    assert codes(found) == {row: ["not_text"] for row in (2, 3, 4, 5)}
    assert not any("as shown" in problem.remedy for problem in problems(found))
    assert codes(checked(read(numbered("000", sku=12.5), sku_numbers="as shown"))) == {2: ["not_text"]}
    cell = '<table:table-cell office:value-type="float" office:value="12"/>'
    found = checked(read(open_document(ods_row(HEADER) + ods_row([cell, *ROWS[0][1:]]))))
    assert codes(found) == {2: ["not_text"]}


def hidden(*, by_filter: bool) -> bytes:
    book = openpyxl.load_workbook(io.BytesIO(workbook({"Artikel": [*TABLE, ("A-3", *ROWS[0][1:])]})))
    book.worksheets[0].auto_filter.ref = "A1:G4" if by_filter else None
    book.worksheets[0].column_dimensions["E"].hidden = True
    for number in (3, 4, 9):
        book.worksheets[0].row_dimensions[number].hidden = True
    return saved(book)


@pytest.mark.parametrize(
    ("raw", "notes"),
    [
        (hidden(by_filter=True), ("2 rows of the sheet are hidden by a filter, and read like the others.",)),
        (hidden(by_filter=False), ("2 rows of the sheet are hidden, and read like the others.",)),
        (
            open_document(
                ods_row(HEADER)
                + ods_row([], 'table:number-rows-repeated="3"')
                + ods_row(ROWS[0], 'table:visibility="filter"')
                + ods_row(ROWS[1])
            ),
            ("1 row of the sheet is hidden by a filter, and read like the others.",),
        ),
        (workbook({"Artikel": TABLE}), ()),
    ],
)
def test_hidden_rows_are_counted(raw: bytes, notes: tuple[str, ...]) -> None:
    """A person who sees one row does not expect to pay for three. A hidden column hides no row."""
    assert read(raw).sheet.notes == notes


def test_errors_and_formulas_without_a_result_are_not_taken_for_empty() -> None:
    """The parser leaves both out, and an empty option would choose nothing."""
    first = '<c r="A2" t="e"><v>#REF!</v></c><c r="B2"><f>A1</f><v></v></c><c r="C2"><f>A1</f></c><c r="D2" t="e"/>'
    calculated = '<c r="A3" t="str"><f>A1</f><v>S-3</v></c><c r="B3"><f>6*2</f><v>12</v></c>'
    table = f'<row r="2">{first}</row><row r="3">{calculated}<c r="C3" t="inlineStr"><is><t>Mug</t></is></c></row>'
    found = checked(read(raw_workbook(xml_row(1, HEADER[:3]) + table)))
    assert [(problem.column, problem.message.partition(" holds ")[2]) for problem in problems(found)] == [
        ("sku", "the error #REF!, not text"),
        ("prompt", "a formula whose result is not stored, not text"),
        ("category", "a formula whose result is not stored, not text"),
    ]
    assert "correct the formula" in problems(found)[0].remedy
    assert "save it again" in problems(found)[1].remedy
    assert (found.accepted[0].sku, found.accepted[0].prompt) == ("S-3", "12")
    header = ("sku", "prompt", "category", "option:fabric")
    table_of_options = [header, ("A", "b", "Cushion", "=A1"), ("B", "b", "Cushion", None)]
    assert codes(checked(read(workbook({"Artikel": table_of_options})))) == {
        2: ["not_text"],
        3: ["missing_option"],
    }
    error = (
        '<table:table-cell table:formula="of:=1/0" office:value-type="string" office:string-value="" '
        'calcext:value-type="error"><text:p>#DIV/0!</text:p></table:table-cell>'
    )
    fault = refused(open_document(ods_row(HEADER) + ods_row([*ROWS[0][:3], error])))
    assert "errors of formulas" in fault.message


def test_rows_keep_their_numbers_whatever_the_workbook_leaves_out() -> None:
    """Cells without addresses, shared texts in several fonts, hidden rows: all are read."""
    shared = '<si><r><t xml:space="preserve">blue </t></r><r><t>herons</t></r><rPh><t>x</t></rPh></si>'
    without = "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in HEADER[:3])
    hidden_row = '<row r="5" hidden="1"><c t="inlineStr"><is><t>A</t></is></c><c t="s"><v>0</v></c>'
    mug = '<c t="inlineStr"><is><t>Mug</t></is></c></row>'
    catalog = read(raw_workbook(f'<row r="3">{without}</row>{hidden_row}{mug}', shared))
    assert rows(catalog) == [(5, ("A", "blue herons", "Mug"))]


def test_worksheet_with_the_columns_of_a_catalog_is_meant() -> None:
    """Legends, empty and hidden worksheets are passed over; a hidden one is read when it is named."""
    sheets = {"Legende": [["a", "b"], ["c", "d"]], "Leer": [], "Artikel": TABLE, "Alt": TABLE[:2]}
    raw = workbook(sheets, hidden=["Alt"])
    assert read(raw).sheet.layout.worksheet == "Artikel"
    assert [len(cells(read(raw, worksheet=name))) for name in ("alt", "Artikel")] == [1, 2]
    assert [len(cells(read(_DOCUMENT, worksheet=name))) for name in (None, "Alt")] == [2, 1]


def test_several_worksheets_are_shown() -> None:
    fault = refused(workbook({"Artikel": TABLE, "Alt": TABLE[:2]}))
    assert fault.code == FileCode.SEVERAL_WORKSHEETS
    assert "“Artikel” (2 rows)" in fault.message and "“Alt” (1 row)" in fault.message
    assert "`worksheet` under [reading]" in fault.remedy
    unknown = refused(workbook({"Artikel": TABLE}), worksheet="Nein")
    assert unknown.code == FileCode.SEVERAL_WORKSHEETS and "it has `Artikel`" in unknown.message
    assert refused(workbook({"Leer": []})).code == FileCode.EMPTY_FILE


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook"),
        (b"PAR1" + b"\0" * 40 + b"PAR1", "a Parquet file"),
        (b"\x1f\x8b\x08\x00", "a gzip archive"),
        (b' [\n  {"sku": "A"}]', "JSON"),
        (b"\xef\xbb\xbf\r\n <HTML xmlns:x=''><table>", "a web page"),
        (archive({"xl/workbook.bin": b""}), "no workbook of Excel"),
        (archive({"spring.csv": delimited(TABLE)}), "no workbook of Excel"),
    ],
)
def test_other_formats_are_refused_with_those_that_are_read(raw: bytes, shown: str) -> None:
    fault = refused(raw)
    assert shown in fault.message and fault.code == FileCode.NOT_CSV
    assert fault.remedy == "CSV, .xlsx and .ods are read, without a password: export it as CSV."


DAMAGED: dict[str, bytes] = {
    "cut short": workbook({"Artikel": TABLE})[:-400],
    "a place that is none": raw_workbook('<row r="1"><c r="12AB"><v>1</v></c></row>'),
    "a password": archive({"content.xml": b"", "META-INF/manifest.xml": b"<x><encryption-data/></x>"}),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_workbooks_are_refused_in_a_sentence(name: str) -> None:
    assert "is damaged, was not saved whole, or has a password" in refused(DAMAGED[name]).message


#: Small files that become large, made when they are needed.
BOMBS: dict[str, Callable[[], bytes]] = {
    "zip bomb": lambda: raw_workbook(xml_row(1, HEADER[:3]) + " " * (400 << 20)),
    "repeated row": lambda: open_document(
        ods_row(HEADER) + ods_row(["x" * 9999], 'table:number-rows-repeated="1048000"')
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_process_that_takes_too_much_memory_is_a_refusal(bomb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbooks, "_MEMORY", 400 << 20)
    fault = refused(BOMBS[bomb]())
    assert fault.code == FileCode.FILE_TOO_LARGE
    assert fault.message.startswith("spring takes more than 400 MiB of memory") and "as CSV" in fault.remedy


def test_process_that_takes_too_long_is_a_refusal() -> None:
    fault = refused(workbook({"Artikel": TABLE}), Reading("spring", time=datetime.timedelta()))
    assert fault.code == FileCode.FILE_TOO_SLOW and "spring" in fault.message


def test_parser_sees_no_key_and_no_module_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with a `python_calamine.py` of its own runs no code."""
    (tmp_path / "python_calamine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATTERNMILL_API_KEY", "canary-4711")
    assert len(cells(read(workbook({"Artikel": TABLE})))) == 2
    assert not (tmp_path / "ran").exists() and "canary-4711" not in str(workbooks._environment())


@cache
def _whole_files() -> tuple[bytes, bytes]:
    """Return a workbook and a document, made once, as a workbook holds the time at which it was made."""
    return workbook({"Artikel": TABLE}), _DOCUMENT


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_no_change_of_a_workbook_ends_in_a_traceback(data: st.DataObject) -> None:
    """A byte changed, or the end cut off: read, or refused in a sentence."""
    raw = bytearray(data.draw(st.sampled_from(_whole_files())))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(raw[: data.draw(st.integers(1, len(raw)))] if data.draw(st.booleans()) else raw))
    except InputRefused as fault:
        assert fault.remedy
