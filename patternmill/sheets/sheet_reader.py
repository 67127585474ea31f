"""Sheets of every format: the bytes of a file become the rows of a catalog, or the file is refused.

CSV with commas is read as it is. Anything else is converted to such CSV first, in which each row keeps its number: so
the ledger keeps what every later version reads the same way.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import FileCode
from patternmill.catalog.read_limits import Reading, ReadLimits, unpacked
from patternmill.catalog.remote import shown_address, source_bytes, source_name, stable_bytes
from patternmill.catalog.sheet_choices import NO_CHOICES, SheetChoices, SheetLayout
from patternmill.errors import InputRefused
from patternmill.sheets.archives import ZIP
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.sheets.delimited_text import text_table
from patternmill.sheets.json_rows import json_sheet
from patternmill.sheets.parquet_rows import PARQUET, parquet_sheet
from patternmill.sheets.shopify import is_shopify, with_products
from patternmill.sheets.tables import SheetFile, Table, table_of
from patternmill.sheets.text_encodings import check_text, encoding_of
from patternmill.sheets.workbooks import workbook_table
from patternmill.text import plain

_LONGEST_NAME = 1000
_BEGINNING = 4096
#: Of JSON, past the mark of an encoding. A title line may begin with `[Draft]`.
_JSON = re.compile(r"[^\s\[{]{0,3}\s*(\{\s*[\"}]|\[\s*[\[{\]])")


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
        raw,
        name=path.name.removesuffix(".gz"),
        choices=choices,
        mapping=mapping,
        reading=reading,
        quoting=quoting,
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
    """Read a catalog from a path or an address, compressed by gzip or not. Raises InputRefused.

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
    raw = unpacked(raw, reading)
    parse = partial(parse_catalog, mapping=mapping, empty=empty, reading=reading, quoting=quoting)
    if _may_be_plain(raw, choices):
        try:
            file = parse(raw, name=name, encoding=choices.encoding)
            if not is_shopify(file.header):
                return file
        except InputRefused as refused:
            if refused.code not in _READ_OTHERWISE:
                raise
    table = read_table(raw, name, choices, mapping=mapping, reading=reading, quoting=quoting)
    canonical = table.canonical()
    reading.check_size(len(canonical))
    file = parse(canonical, name=table.name, encoding="utf-8")
    columns = file.columns
    return replace(
        file,
        layout=table.layout,
        faults=table.faults(columns),
        struck=table.struck_rows(columns),
        notes=(*table.notes, *table.hidden_note(columns)),
    )


def read_table(
    raw: bytes,
    name: str,
    choices: SheetChoices = NO_CHOICES,
    *,
    mapping: ColumnMapping = NO_MAPPING,
    reading: Reading | None = None,
    quoting: bool = True,
) -> Table:
    """The rows of a file of any format, whatever its columns are called. Raises InputRefused when it has none."""
    name = plain(name, _LONGEST_NAME)
    reading = reading or Reading(name)
    raw = unpacked(raw, reading)
    file = SheetFile(raw, name, hashlib.sha256(raw).hexdigest(), choices, mapping, reading, quoting)
    if raw.startswith(ZIP):
        table = workbook_table(file)
    elif raw.startswith(PARQUET):
        table = table_of(parquet_sheet(raw, reading), name, SheetLayout("Parquet", file.sha256), _FIRST_ROW)
    elif (text := _json_text(raw, name, choices, quoting)) is not None:
        kind, sheet = json_sheet(text, name, reading)
        table = table_of(sheet, name, SheetLayout(kind, file.sha256), _FIRST_ROW)
    else:
        table = text_table(file)
    return with_products(table) if is_shopify(table.header) else table


_FIRST_ROW = SheetChoices(header_row=1)
#: What these refuse may make sense in another reading: with another delimiter, or under title lines.
_READ_OTHERWISE = frozenset(
    {
        FileCode.NOT_CSV,
        FileCode.NUL_BYTES,
        FileCode.UNREADABLE_ENCODING,
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
    return (
        not raw.startswith((ZIP, PARQUET))
        and choices.delimiter in (None, ",")
        and choices.header_row in (None, 1)
        and not _begins_as_json(raw)
    )


def _begins_as_json(raw: bytes) -> bool:
    return _JSON.match(raw[:_BEGINNING].replace(b"\0", b"").decode("latin-1")) is not None


def _json_text(raw: bytes, name: str, choices: SheetChoices, quoting: bool) -> str | None:
    """None when it does not begin as JSON does."""
    if not _begins_as_json(raw):
        return None
    encoding = encoding_of(raw, name, choices.encoding, quoting)
    check_text(raw, name, encoding)
    return raw.decode(encoding)
