"""Workbooks as people and programs save them: what is read, what is named, and what comes back as a workbook."""

import io
import json
import sys
import zipfile
from datetime import date, datetime, time

import pytest
from openpyxl import Workbook, load_workbook

from patternmill.errors import InputRefused
from patternmill.offer import Category, Offer
from patternmill.tables import workbook as module
from patternmill.tables.checks import check_rows, report_lines
from patternmill.tables.columns import read_columns
from patternmill.tables.kept import header_of, kept_cells, kept_sheet
from patternmill.tables.mapping import SheetMapping, read_mapping, write_mapping
from patternmill.tables.results import Result, results_frame, write_catalog, write_results
from patternmill.tables.sheet import read_sheet
from tests.spine import refuses
from tests.test_tables_results import catalog_row

SIZES = {"name": "size", "values": ["40x40", "50x50", "40"]}
OFFER = Offer(
    categories=(Category.model_validate({"categoryId": "c1", "name": "Cushion", "options": [SIZES]}),)
)
HEADER = ["sku", "prompt", "category", "option:size", "price"]
GOOD = ["A-1", "herons", "Cushion", "50x50", 12.5]


def checked(raw, **reading):
    mapping = SheetMapping(reading=reading)
    sheet = read_sheet(raw, "a.xlsx", mapping)
    return check_rows(sheet, read_columns(sheet, mapping), OFFER, {})


def codes(found):
    return set(found.problems[["row", "column", "code"]].itertuples(index=False, name=None))


def saved(book):
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def workbook(*rows, formats=None, merged=(), hidden=(), **sheets):
    """Return a workbook of one worksheet, or of one for each name with its rows."""
    book = Workbook()
    for title, lines in (sheets or {"Artikel": rows}).items():
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
        for cell, code in (formats or {}).items():
            sheet[cell].number_format = code
        for area in merged:
            sheet.merge_cells(area)
        for row in hidden:
            sheet.row_dimensions[row].hidden = True
    book.remove(book.worksheets[0])
    return saved(book)


def archive(parts):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as written:
        for name, part in parts.items():
            written.writestr(name, part)
    return content.getvalue()


def changed(raw, change):
    """Return a workbook with another XML of its first worksheet."""
    with zipfile.ZipFile(io.BytesIO(raw)) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    parts["xl/worksheets/sheet1.xml"] = change(parts["xl/worksheets/sheet1.xml"])
    return archive(parts)


def texts(number, cells, attributes=""):
    inner = "".join(f"<c t='inlineStr'><is><t>{cell}</t></is></c>" for cell in cells)
    return f"<row r='{number}' {attributes}>{inner}</row>"


def raw_rows(rows):
    """Return a workbook with rows in XML, for what openpyxl does not write."""
    return changed(
        workbook(["x"]),
        lambda part: (
            b"<sheetData>".join([part.partition(b"<sheetData>")[0], rows.encode()])
            + b"</sheetData></worksheet>"
        ),
    )


def document(*rows):
    """Return an .ods file of one worksheet; its rows are lists of cells, or XML."""
    spaces = "".join(
        f" xmlns:{name}='urn:oasis:names:tc:opendocument:xmlns:{name}:1.0'"
        for name in ("office", "table", "text")
    )
    spaces += " xmlns:calcext='urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0'"
    lines = "".join(row if isinstance(row, str) else ods_row(*row) for row in rows)
    content = f"<office:document-content{spaces}><office:body><office:spreadsheet><table:table table:name='Artikel'>"
    content += f"{lines}</table:table></office:spreadsheet></office:body></office:document-content>"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    return archive({"mimetype": kind, "META-INF/manifest.xml": "<m/>", "content.xml": content})


def ods_row(*cells, about=""):
    inner = "".join(cell if cell.startswith("<table") else ods_cell(cell) for cell in cells)
    return f"<table:table-row {about}>{inner}</table:table-row>"


def ods_cell(shown, about="office:value-type='string'"):
    return f"<table:table-cell {about}><text:p>{shown}</text:p></table:table-cell>"


def ods_number(value, shown):
    return ods_cell(shown, f"office:value-type='float' office:value='{value}'")


# --- what is read


def test_a_workbook_is_read_as_the_sheet_that_it_shows():
    more = [["A-2", "ferns", None, "40x40", 7], ["A-3", "moss", "Cushion", 40]]
    rows = [["Our sheet"], [], HEADER, GOOD, *more]
    found = checked(workbook(*rows, merged=["A1:E1", "C4:C5", "D6:D9999"]))
    assert not codes(found)
    assert list(found.rows.index) == [4, 5, 6]
    assert list(found.rows["category"]) == ["Cushion"] * 3
    assert list(found.sheet.rows[4].fillna("")) == ["12.5", "7", ""]
    assert found.notes == ("Read as workbook, worksheet `Artikel`, header in row 3.",)


def test_a_document_is_read_as_the_sheet_that_it_shows():
    spanned = "table:number-rows-spanned='2' office:value-type='string'"
    empty = "<table:table-cell table:number-columns-repeated='1024'/>"
    found = checked(
        document(
            HEADER,
            ["A-1", "blue<text:line-break/>herons", ods_cell("Cushion", spanned), "50x50", ods_number(12.5, "12,50")],
            ["A-2", "ferns", "<table:covered-table-cell/>", ods_number("40", "40")],
            ods_row(empty, about="table:number-rows-repeated='1048000'"),
        )
    )  # fmt: skip
    assert not codes(found)
    assert list(found.rows["prompt"]) == ["blue\nherons", "ferns"]
    assert list(found.rows["selections"]) == ['{"size": "50x50"}', '{"size": "40"}']
    assert list(found.sheet.rows[4].fillna("")) == ["12.5", ""]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (workbook(HEADER, GOOD, ["A-2", *GOOD[1:]], ["A-3", *GOOD[1:]], hidden=[3, 4, 9]), "row 3 to 4 (2 skus)"),
        (raw_rows(texts(1, HEADER) + texts(2, GOOD) + texts(3, ["A-2", *GOOD[1:]], "hidden='true'")
                  + "</sheetData><autoFilter ref='A1:E3'/><sheetData>"), "a filter: row 3 (1 sku)"),
        (raw_rows(texts(1, HEADER) + texts(2, GOOD) + texts(5, ["A-2", *GOOD[1:]], "ht='0'")), "row 5"),
        (document(HEADER, GOOD[:4], ods_row("A-2", *GOOD[1:4], about="table:visibility='filter'")), "a filter: row 3"),
        (document(HEADER, ods_row(about="table:number-rows-repeated='3'"), GOOD[:4],
                  ods_row("A-2", *GOOD[1:4], about="table:visibility='collapse'")), "hidden in the workbook: row 6"),
    ],
)  # fmt: skip
def test_hidden_rows_are_named_before_money_and_made_like_the_others(raw, said):
    found = checked(raw)
    assert len(found.rows) == len(found.sheet.rows)
    assert said in found.notes[1]
    assert "made like the others" in next(line for line in report_lines(found) if "hidden" in line)


def test_titles_that_are_hidden_and_hidden_columns_are_no_note():
    assert len(checked(workbook(["title"], HEADER, GOOD, hidden=[1])).notes) == 1


# --- cells that are no text


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (date(2026, 3, 1), "the date 2026-03-01"), (datetime.fromisoformat("2026-03-01 12:00"),
         "the date 2026-03-01 12:00:00"),
        (time(12, 30), "the time 12:30:00"), (True, "the truth value TRUE"), (1e-7, "the number 1e-07"),
        (1234567890123456, "the number 1.23456789012346e+15"), ("=B9", "a formula without a stored result"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_cell_that_is_no_text_has_that_fault_alone(at, value, said):
    row = [value if place == at else cell for place, cell in enumerate(GOOD)]
    found = checked(workbook(HEADER, row, ["B-1", *GOOD[1:4], value]))
    assert codes(found) == {(2, HEADER[at], "not_text")}
    assert found.problems["message"][0] == f"the cell is {said}, not text"
    assert list(found.rows["sku"]) == ["B-1"]


def test_errors_are_named_and_results_of_formulas_are_read():
    good = "<c t='str'><f>A9</f><v>A-2</v></c><c t='str'><f t='shared' si='0'/><v>ferns</v></c>"
    good += "<c t='inlineStr'><is><r><t>Cush</t></r><r><t>ion</t></r></is></c><c><f>6*2</f><v>40</v></c>"
    bad = "<c t='e'><v>#REF!</v></c><c t='e'><f>1/0</f><v>#DIV/0!</v></c><c t='e'/>"
    option = (
        "<row r='4'><c t='inlineStr'><is><t>A-4</t></is></c><c r='B4' t='inlineStr'><is><t>moss</t></is></c>"
    )
    option += "<c t='inlineStr'><is><t>Cushion</t></is></c><c r='D4' t='e'><v>#NAME?</v></c></row>"
    late = "<c r='A7'><f>A9</f></c><c><f>B9</f><v></v></c><c t='inlineStr'><is><t>Cushion</t></is></c>"
    found = checked(
        raw_rows(texts(1, HEADER) + f"<row>{good}</row><row>{bad}</row>{option}<row r='7'>{late}</row>")
    )
    assert codes(found) == {
        *((3, name, "spreadsheet_error") for name in HEADER[:3]), (4, "option:size", "spreadsheet_error"),
        (7, "sku", "not_text"), (7, "prompt", "not_text")
    }  # fmt: skip
    assert found.rows.loc[2, ["sku", "prompt", "selections"]].tolist() == ["A-2", "ferns", '{"size": "40"}']
    error = ods_cell(
        "#DIV/0!", "office:value-type='string' office:string-value='' calcext:value-type='error'"
    )
    assert codes(checked(document(HEADER, ["A-1", error, "Cushion"]))) == {(2, "prompt", "spreadsheet_error")}


def test_a_row_of_formulas_without_results_does_not_vanish():
    found = checked(workbook(HEADER, GOOD, ["=A1", "=B1", "=C1"]))
    assert {row for row, _, _ in codes(found)} == {3}


# --- skus that are numbers


FORMATS = {
    "General": "12", "0": "12", "00000": "00012", '"ART-"000': "ART-012", "000-0": None, "#,##0": None, "0%": None,
    "0.00": None, "0.00E+00": None, "[>9]000;0": None,
}  # fmt: skip


def test_skus_that_are_numbers_are_taken_as_shown_once_somebody_has_said_so():
    rows = [[12, *GOOD[1:]] for _ in FORMATS]
    raw = workbook(HEADER, *rows, formats={f"A{at}": code for at, code in enumerate(FORMATS, 2)})
    found = checked(raw)
    assert {code for _, _, code in codes(found)} >= {"not_text"}
    assert found.rows.empty
    (asked,) = found.proposals
    assert (asked.written, asked.meant) == ("numbers", "as shown")
    assert asked.about == "skus that are numbers: 12, 12, 00012"
    assert "if `00012` is the sku, write `numbers" in found.problems["remedy"].str.cat()
    assert "Text to Columns" in found.problems["remedy"].iloc[-1]
    found = checked(raw, numbers="as shown")
    assert found.proposals == ()
    assert list(found.sheet.rows[0]) == [shown or "12" for shown in FORMATS.values()]
    unfit = {at for at, shown in enumerate(FORMATS.values(), 2) if shown is None}
    assert {row for row, _, code in codes(found) if code == "not_text"} == unfit
    assert list(found.rows["sku"]) == ["00012", "ART-012"]  # 12 is there twice


@pytest.mark.parametrize(
    ("cell", "sku"),
    [
        (ods_number("12", "00012"), "00012"), (ods_number("5901234123457", "5901234123457"), "5901234123457"),
        (ods_number("12", "12 €"), None), (ods_number("1234", "1,234"), None), (ods_number("12", ""), None),
        (ods_cell("50%", "office:value-type='percentage' office:value='0.5'"), None),
    ],
)  # fmt: skip
def test_a_document_says_what_it_shows_of_a_number(cell, sku):
    found = checked(document(HEADER, [cell, *GOOD[1:4]]), numbers="as shown")
    assert list(found.rows["sku"]) == ([sku] if sku else [])


def test_what_was_said_of_numbers_is_kept_in_the_mapping(tmp_path):
    (path := tmp_path / "a.mapping.toml").write_text("[reading]\nheader = 1  # its row\n")
    asked = checked(workbook(HEADER, [4006381333931, *GOOD[1:]])).proposals
    write_mapping(path, read_mapping(tmp_path / "a.xlsx").plus(asked))
    assert "header = 1  # its row" in path.read_text()
    assert read_mapping(tmp_path / "a.xlsx").reading.numbers == "as shown"


# --- which worksheet


def test_the_worksheet_with_the_columns_of_a_catalog_is_meant():
    book = load_workbook(
        io.BytesIO(workbook(Legend=[["a", "b"]], Empty=[], May=[HEADER, GOOD], Old=[HEADER, GOOD]))
    )
    book["Old"].sheet_state = "hidden"
    assert "worksheet `May`" in checked(saved(book)).notes[0]


def test_several_worksheets_that_could_be_meant_are_asked_about():
    raw = workbook(May=[HEADER, GOOD], June=[HEADER, ["J-1", *GOOD[1:]]])
    with pytest.raises(InputRefused, match="`May`, `June`") as refused:
        checked(raw)
    (proposal,) = refused.value.proposals
    assert [one.meant for one in (proposal, *proposal.others)] == ["May", "June"]
    assert list(checked(raw, worksheet="June").rows["sku"]) == ["J-1"]
    with pytest.raises(InputRefused, match="`May`, `June`"):
        checked(raw, worksheet="July")


def test_a_worksheet_of_one_row_has_a_header_and_no_rows():
    for rows, code in (([HEADER], "header_only"), ([], "empty_file")):
        with refuses(code):
            checked(workbook(*rows))


# --- what is no workbook


@pytest.mark.parametrize(
    ("raw", "code", "said"),
    [
        (b"\xd0\xcf\x11\xe0" + bytes(99), "not_csv", "old Excel workbook (.xls)"),
        (b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "not_csv", "protected by a password"),
        (archive({"content.xml": "", "META-INF/manifest.xml": "<encryption-data/>"}), "not_csv", "by a password"),
        (archive({"xl/workbook.bin": ""}), "not_csv", "binary Excel workbook (.xlsb)"),
        (archive({"spring.csv": ""}), "not_csv", "a zip archive, and no workbook"),
        (workbook(HEADER, GOOD)[:-400], "file_unreadable", "damaged"),
        (raw_rows("<row r='1'><c r='12AB'><v>1</v></c></row>"), "file_unreadable", "damaged"),
        (changed(workbook(["x"]), lambda part: part[:-30]), "file_unreadable", "damaged"),
        # calamine would allocate 550 GB for it, and abort the process.
        (raw_rows("<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>"), "file_too_large", "more memory"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_for_what_it_is(raw, code, said):
    with pytest.raises(InputRefused, match=said.replace("(", r"\(").replace(")", r"\)")) as refused:
        checked(raw)
    assert refused.value.code == code
    assert "CSV" in refused.value.remedy


def test_a_parser_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(module, "_SECONDS", 0.01)
    with pytest.raises(InputRefused, match="time"):
        checked(workbook(HEADER, GOOD))


def test_the_parser_sees_no_key_and_no_module_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATTERNMILL_API_KEY", "canary")
    (tmp_path / "python_calamine.py").write_text("raise SystemExit(1)")
    assert len(checked(workbook(HEADER, GOOD)).rows) == 1
    program = "import json, os; print(json.dumps('has ' + ' '.join(os.environ.values())))"
    monkeypatch.setattr(module, "_COMMAND", (sys.executable, "-I", "-c", program))
    with pytest.raises(InputRefused) as refused:
        checked(workbook(HEADER, GOOD))
    assert refused.value.message.startswith("a.xlsx has") and "canary" not in refused.value.message


# --- what comes back


ROWS = [
    ["A-1", "", "Cushion", "50x50", 12.5], ["=A-2", "", "Cushion", "40", 1999], ["007", "", "Cushion", None, "'=7"],
]  # fmt: skip


def cells(path):
    rows = load_workbook(path).active
    return {cell.coordinate: (cell.value, cell.number_format) for row in rows for cell in row}


def numbers():
    book = load_workbook(io.BytesIO(workbook(HEADER, *ROWS, formats={"E2": "0.00", "E3": "#,##0.00\\ €"})))
    book.active["A3"].data_type = "s"
    return checked(saved(book))


def check_cells(path):
    found = cells(path)
    assert (found["E2"], found["E3"], found["E4"]) == ((12.5, "0.00"), (1999, "#,##0.00\\ €"), ("'=7", "@"))
    assert (found["A3"], found["A4"], found["D3"]) == (("=A-2", "@"), ("007", "@"), ("40", "@"))
    again = checked(path.read_bytes())
    assert [one[:5] for one in again.sheet.rows.fillna("").to_numpy().tolist()] == [
        ["A-1", "", "Cushion", "50x50", "12.5"], ["=A-2", "", "Cushion", "40", "1999"],
        ["007", "", "Cushion", "", "'=7"],
    ]  # fmt: skip
    assert {one.what for one in again.sheet.kinds.values()} == {"a number"}


def test_failures_of_a_workbook_come_as_one_with_numbers_and_texts_as_they_were(tmp_path):
    found = numbers()
    write_results(results_frame(found, {2: Result("held", error="=x")}, "run-1"), found, tmp_path, {})
    check_cells(tmp_path / "failures.xlsx")


def test_the_sheet_of_a_workbook_is_one_and_stays_one(tmp_path):
    found = numbers()
    kept, header = kept_cells(found.sheet, found.columns), header_of(found.columns)
    rows = [catalog_row(key=str(at), number=at, header=header, cells=kept[at]) for at in kept]
    write_catalog(tmp_path, rows)
    assert not (tmp_path / "sheet.xlsx").exists()
    write_catalog(tmp_path, rows, is_workbook=True)
    check_cells(tmp_path / "sheet.xlsx")
    write_catalog(tmp_path, rows[:1])
    assert len(load_workbook(tmp_path / "sheet.xlsx").active["A"]) == 2
    assert json.loads(kept[2])[4] == ["12.5", "0.00"]
    again = kept_sheet(rows)
    assert again.sheet.is_workbook and kept_cells(again.sheet, again.columns) == kept
