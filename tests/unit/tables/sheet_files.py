"""The bytes that spreadsheet programs write, made for the tests of reading."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import openpyxl

HEADER = ("sku", "prompt", "category", "option:size", "note")
ROWS = (
    ("A-1", "Blaue Reiher über Schilf", "Mug", "11oz", "für Müller"),
    ("A-2", "rote; gelbe, weiße Rosen", "Mug", "15oz", ""),
)
TABLE = (HEADER, *ROWS)


def delimited(
    rows: Iterable[Sequence[str]], delimiter: str = ",", encoding: str = "utf-8", end: str = "\r\n"
) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(rows)
    return text.getvalue().encode(encoding)


def workbook(
    worksheets: dict[str, Sequence[Sequence[Any]]],
    formats: dict[str, str] | None = None,
    hidden: Sequence[str] = (),
) -> bytes:
    """Return an Excel file; `formats` are those of cells of the first worksheet, `hidden` names worksheets."""
    book = openpyxl.Workbook(write_only=False)
    book.remove(book.active)  # type: ignore[arg-type]
    for name, rows in worksheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
        if name in hidden:
            sheet.sheet_state = "hidden"
    for cell, code in (formats or {}).items():
        book.worksheets[0][cell].number_format = code
    return saved(book)


def saved(book: openpyxl.Workbook) -> bytes:
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def archive(parts: dict[str, str | bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as written:
        for name, part in parts.items():
            written.writestr(name, part)
    return content.getvalue()


def raw_workbook(sheet_data: str, shared: str = "") -> bytes:
    """Return an Excel file of one worksheet from its XML, for what openpyxl does not write."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": f'<Relationships {package}><Relationship Id="rId1" Type="{relations}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook {space} xmlns:r="{relations}"><sheets>'
            '<sheet name="Artikel" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships {package}><Relationship Id="rId1" '
            f'Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/>'
            f'<Relationship Id="rId2" Type="{relations}/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
            "xl/sharedStrings.xml": f"<sst {space}>{shared}</sst>",
            "xl/worksheets/sheet1.xml": f"<worksheet {space}><sheetData>{sheet_data}</sheetData></worksheet>",
        }
    )


def xml_row(number: int, cells: Sequence[str], attributes: str = "") -> str:
    """Return the XML of a row of texts."""
    inner = "".join(
        f'<c r="{chr(65 + index)}{number}" t="inlineStr"><is><t xml:space="preserve">{cell}</t></is></c>'
        for index, cell in enumerate(cells)
    )
    return f'<row r="{number}"{attributes}>{inner}</row>'


def open_document(rows: str, hidden: str = "") -> bytes:
    """Return an .ods file of one worksheet from the XML of its rows, or of two, of which one is hidden."""
    spaces = " ".join(
        f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{prefix}:1.0"'
        for prefix in ("office", "table", "text", "style", "calcext")
    )
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {spaces}><office:automatic-styles>"
            '<style:style style:name="ta2" style:family="table"><style:table-properties table:display="false"/>'
            "</style:style></office:automatic-styles><office:body><office:spreadsheet>"
            f'<table:table table:name="Artikel">{rows}</table:table>'
            f'<table:table table:name="Alt" table:style-name="ta2">{hidden}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )


def ods_row(cells: Sequence[str], attributes: str = "") -> str:
    """Return the XML of a row, whose cells are texts or the XML of a cell."""
    inner = "".join(
        cell
        if cell.startswith("<table:")
        else f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
        for cell in cells
    )
    return f"<table:table-row {attributes}>{inner}</table:table-row>"
