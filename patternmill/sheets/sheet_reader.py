"""Sheets of each format that is read: the bytes of a file become the rows of a catalog, or the file is refused.

CSV with commas is read as it is. Anything else is converted to such CSV first, in which each row keeps its number: so
the ledger keeps what every later version reads the same way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import FileCode
from patternmill.catalog.read_limits import Reading, ReadLimits
from patternmill.catalog.remote import shown_address, source_bytes, source_name, stable_bytes
from patternmill.catalog.sheet_choices import NO_CHOICES, SheetChoices
from patternmill.errors import InputRefused
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.sheets.delimited_text import text_tables
from patternmill.sheets.tables import Score, Table, contract_score
from patternmill.sheets.workbooks import several_worksheets, workbook_tables
from patternmill.text import plain

_LONGEST_NAME = 1000
_ZIP = b"PK\x03\x04"
_BEGINNING = 100


def read_catalog(
    path: Path,
    *,
    choices: SheetChoices = NO_CHOICES,
    mapping: ColumnMapping = NO_MAPPING,
    quoting: bool = True,
) -> CatalogFile:
    """Read and parse the whole file, or raise InputRefused with one of the codes of FileCode.

    `quoting`: the refusal of a file that is no catalog may quote its first row.
    """
    reading = Reading(plain(path.name, _LONGEST_NAME))
    raw = stable_bytes(path, reading)
    return parse_sheet(
        raw, name=path.name, choices=choices, mapping=mapping, reading=reading, quoting=quoting
    )


def read_source(
    address: str,
    *,
    choices: SheetChoices = NO_CHOICES,
    mapping: ColumnMapping = NO_MAPPING,
    empty: bool = False,
    quoting: bool = True,
    limits: ReadLimits | None = None,
) -> CatalogFile:
    """Read a catalog from a path or an address. Raises InputRefused.

    `empty`: a header without rows is accepted. `quoting`: the refusal of a file that is no catalog may quote its first
    row.
    """
    reading = Reading(plain(shown_address(address), 300), limits)
    raw = reading.in_time(lambda: source_bytes(address, reading))
    return parse_sheet(
        raw,
        name=source_name(address),
        choices=choices,
        mapping=mapping,
        empty=empty,
        reading=reading,
        quoting=quoting,
    )


def parse_sheet(
    raw: bytes,
    *,
    name: str,
    reading: Reading,
    choices: SheetChoices = NO_CHOICES,
    mapping: ColumnMapping = NO_MAPPING,
    empty: bool = False,
    quoting: bool = True,
) -> CatalogFile:
    """The same from the bytes alone. `empty`: a header without rows is accepted."""
    parse = partial(parse_catalog, mapping=mapping, empty=empty, reading=reading, quoting=quoting)
    if _may_be_plain(raw, choices):
        try:
            return parse(raw, name=name, encoding=choices.encoding)
        except InputRefused as refused:
            if refused.code not in _READ_OTHERWISE:
                raise
    table = read_table(raw, name, choices, mapping=mapping, reading=reading, quoting=quoting)
    canonical = table.canonical()
    reading.check_size(len(canonical))
    file = parse(canonical, name=table.name, encoding="utf-8")
    return replace(file, layout=table.layout, faults=table.faults(file.columns), notes=table.notes)


def read_table(
    raw: bytes,
    name: str,
    choices: SheetChoices = NO_CHOICES,
    *,
    mapping: ColumnMapping = NO_MAPPING,
    reading: Reading | None = None,
    quoting: bool = True,
) -> Table:
    """The rows of a file of any format, below the header of the contract's names or the mapping's.

    Where no row has them the likeliest is the header. Raises InputRefused when several worksheets could be meant.
    """
    tables = read_tables(raw, name, contract_score(mapping), choices, reading=reading, quoting=quoting)
    if len(tables) > 1:
        raise several_worksheets(plain(name, _LONGEST_NAME), tables, quoting)
    return tables[0]


def read_tables(
    raw: bytes,
    name: str,
    score: Score,
    choices: SheetChoices = NO_CHOICES,
    *,
    reading: Reading | None = None,
    quoting: bool = True,
) -> list[Table]:
    """The tables that could be meant as well as one another. Raises InputRefused when there is none."""
    name = plain(name, _LONGEST_NAME)
    read = workbook_tables if raw.startswith(_ZIP) else text_tables
    return read(raw, name, choices, score, reading or Reading(name), quoting)


#: What these refuse may make sense in another reading: with another delimiter, or under title lines.
_READ_OTHERWISE = frozenset(
    {
        FileCode.WRONG_DELIMITER,
        FileCode.NO_KNOWN_COLUMNS,
        FileCode.MISSING_COLUMN,
        FileCode.MAPPING_CHANGED,
        FileCode.DUPLICATE_HEADER,
        FileCode.RESERVED_COLUMN,
        FileCode.HEADER_ONLY,
        FileCode.OPEN_QUOTE,
        FileCode.STRAY_QUOTE,
    }
)


def _may_be_plain(raw: bytes, choices: SheetChoices) -> bool:
    """Neither a workbook nor JSON."""
    begins = raw[:_BEGINNING].lstrip(b"\xef\xbb\xbf \t\r\n")
    is_csv = choices.delimiter in (None, ",") and choices.header in (None, 1)
    return is_csv and not begins.startswith((_ZIP, b"{", b"["))
