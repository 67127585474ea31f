"""Workbooks: which kind of archive a file is, and which of its worksheets is meant."""

from __future__ import annotations

import io
import shlex
import zipfile
from dataclasses import replace
from typing import Protocol

from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.sheet_choices import SheetChoices, SheetLayout
from patternmill.errors import InputRefused
from patternmill.sheets.archives import damaged, part_name, protected
from patternmill.sheets.tables import Sheet, SheetFile, Table, looks_tabular, names_columns, table_of
from patternmill.text import plain, plural, shown

_MOST_NAMED = 8


class Workbook(Protocol):
    format: str
    #: Of worksheets that a person sees, and of the others.
    names: tuple[str, ...]
    hidden: tuple[str, ...]

    def read(self, name: str) -> Sheet: ...


def workbook_table(file: SheetFile) -> Table:
    """The worksheet that was chosen, or the only one that can be meant. Raises InputRefused."""
    book = _opened(file.raw, file.reading)
    layout = SheetLayout(book.format, file.sha256)
    tables = [
        table_of(sheet, file.name, replace(layout, worksheet=worksheet), file.choices, file.mapping)
        for worksheet, sheet in _sheets(book, file.name, file.choices).items()
    ]
    meant = _meant(tables, file.mapping)
    if len(meant) == 1:
        return meant[0]
    raise _several(file.name, meant, file.quoting)


def _sheets(book: Workbook, name: str, choices: SheetChoices) -> dict[str, Sheet]:
    """The worksheets with something in them; of those that a person sees, unless one was chosen."""
    if choices.worksheet is not None:
        return {worksheet: book.read(worksheet) for worksheet in [_chosen(book, name, choices.worksheet)]}
    read = {worksheet: book.read(worksheet) for worksheet in book.names}
    filled = {worksheet: sheet for worksheet, sheet in read.items() if sheet.rows}
    if filled:
        return filled
    raise refusal(
        FileCode.EMPTY_FILE, f"{name} has no worksheet with anything in it.", "Is it the right file?"
    )


def _chosen(book: Workbook, name: str, asked: str) -> str:
    every = (*book.names, *book.hidden)
    for same in (asked.__eq__, lambda one: one.strip().casefold() == asked.strip().casefold()):
        if found := next(filter(same, every), None):
            return found
    raise refusal(
        FileCode.SEVERAL_WORKSHEETS,
        f"{name} has no worksheet {shown(asked)}; it has {', '.join(map(shown, every[:_MOST_NAMED]))}.",
        "Name one of them with `--worksheet`.",
    )


def _meant(tables: list[Table], mapping: ColumnMapping) -> list[Table]:
    exact = [table for table in tables if names_columns(table.header, mapping)]
    tabular = [table for table in tables if looks_tabular(table.sheet)]
    return exact or tabular or tables


def _several(name: str, tables: list[Table], quoting: bool) -> InputRefused:
    found = "; ".join(_described(table, quoting) for table in tables[:_MOST_NAMED])
    first = tables[0].layout.worksheet or ""
    return refusal(
        FileCode.SEVERAL_WORKSHEETS,
        f"{name} has {plural(len(tables), 'worksheet')} that could be meant: {found}.",
        f"Name one, as in `--worksheet {shlex.quote(plain(first))}`.",
    )


def _described(table: Table, quoting: bool) -> str:
    header = ", ".join(plain(cell, 20) for cell in table.header[:6] if cell)
    columns = f": {header}" if quoting else ""
    return f"“{plain(table.layout.worksheet or '')}” ({plural(len(table.records), 'row')}{columns})"


def _opened(raw: bytes, reading: Reading) -> Workbook:
    """What each kind of archive has in it says what it is."""
    # Slow to import: loaded for a workbook alone.
    from patternmill.sheets.excel_workbooks import WORKBOOK, ExcelWorkbook
    from patternmill.sheets.opendocument import CONTENT, ENCRYPTED_PACKAGE, OpenDocument

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            names = set(map(part_name, archive.namelist()))
    except Exception as error:
        raise damaged(reading) from error
    if WORKBOOK in names:
        return ExcelWorkbook(raw, reading)
    if CONTENT in names:
        return OpenDocument(raw, reading)
    if ENCRYPTED_PACKAGE in names:
        raise protected(reading)
    raise refusal(
        FileCode.NOT_CSV,
        f"{reading.name} is {_kind(names)}, which is not read here.",
        "Save it as .xlsx or as `CSV UTF-8 (comma delimited)`, and try that.",
    )


def _kind(names: set[str]) -> str:
    if "xl/workbook.bin" in names:
        return "a binary Excel workbook (.xlsb)"
    if any(name.startswith(("index/", "index.zip")) for name in names):
        return "a Numbers document"
    return "a ZIP archive without a workbook in it"
