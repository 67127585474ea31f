"""Sheets of each format that is read: the bytes of a file become the rows of a catalog, or the file is refused.

CSV with commas is read as it is. Anything else is converted to such CSV first, in which each row keeps its number: so
the ledger keeps what every later version reads the same way.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re
from dataclasses import replace
from functools import partial

from patternmill.catalog.catalog_file import (
    DELIMITERS,
    NO_CHOICES,
    CatalogFile,
    NumberedRow,
    SheetChoices,
    SheetLayout,
)
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.remote import shown_address, source_bytes, source_name
from patternmill.errors import InputRefused
from patternmill.sheets.csv_reader import csv_rows, has_content, parse_catalog
from patternmill.sheets.tables import Score, Table, best_row, contract_score, table_of
from patternmill.sheets.text_encodings import check_text, choose_encoding
from patternmill.sheets.workbooks import several_worksheets, workbook_tables
from patternmill.text import plain

_LONGEST_NAME = 1000
_ZIP = b"PK\x03\x04"
#: Excel reads this first line, and does not show it as a row.
_NAMED_DELIMITER = re.compile('\ufeff?"?sep=(.)"?(?:\r\n|\r|\n)')
_SAMPLE_ROWS = 40
_SAMPLE = 200_000


def read_source(
    address: str,
    *,
    choices: SheetChoices = NO_CHOICES,
    mapping: ColumnMapping = NO_MAPPING,
    empty: bool = False,
    reading: Reading | None = None,
) -> CatalogFile:
    """Read a catalog from a path or an address; `empty`: a header without rows is accepted.

    Raises InputRefused with one of the codes of FileCode.
    """
    reading = reading or Reading(plain(shown_address(address), 300))
    raw = reading.in_time(lambda: source_bytes(address, reading))
    name = source_name(address)
    return parse_sheet(raw, name=name, choices=choices, mapping=mapping, empty=empty, reading=reading)


def parse_sheet(
    raw: bytes,
    *,
    name: str,
    reading: Reading,
    choices: SheetChoices = NO_CHOICES,
    mapping: ColumnMapping = NO_MAPPING,
    empty: bool = False,
) -> CatalogFile:
    """The same from the bytes alone. `empty`: a header without rows is accepted."""
    parse = partial(parse_catalog, mapping=mapping, empty=empty, reading=reading)
    is_plain = choices.get("delimiter") in (None, ",") and choices.get("header") in (None, 1)
    if is_plain and not raw.startswith(_ZIP):
        try:
            return parse(raw, name=name, encoding=choices.get("encoding"))
        except InputRefused as refused:
            if refused.code not in _READ_OTHERWISE:
                raise
    table = read_table(raw, name, choices, mapping=mapping, reading=reading)
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
    score: Score | None = None,
) -> Table:
    """The rows of a file of any format, below the header of the contract's names or the mapping's, or as `score` says.

    Where no row has them the likeliest is the header. Raises InputRefused when several worksheets could be meant.
    """
    tables = read_tables(raw, name, score or contract_score(mapping), choices, reading)
    if len(tables) > 1:
        raise several_worksheets(plain(name, _LONGEST_NAME), tables)
    return tables[0]


def read_tables(
    raw: bytes, name: str, score: Score, choices: SheetChoices = NO_CHOICES, reading: Reading | None = None
) -> list[Table]:
    """The tables that could be meant as well as one another. Raises InputRefused when there is none."""
    name = plain(name, _LONGEST_NAME)
    read = workbook_tables if raw.startswith(_ZIP) else _text_tables
    return read(raw, name, choices, score, reading or Reading(name))


#: What a mapping mends.
MAPPABLE = frozenset(
    {
        FileCode.MISSING_COLUMN,
        FileCode.MAPPING_CHANGED,
        FileCode.RESERVED_COLUMN,
        FileCode.SEVERAL_WORKSHEETS,
        FileCode.UNREADABLE_ENCODING,
        FileCode.HEADER_ONLY,
        FileCode.OPEN_QUOTE,
        FileCode.STRAY_QUOTE,
    }
)
#: What these refuse may make sense in another reading: with another delimiter, or under title lines.
_READ_OTHERWISE = MAPPABLE | {FileCode.DUPLICATE_HEADER}


def _text_tables(raw: bytes, name: str, choices: SheetChoices, score: Score, reading: Reading) -> list[Table]:
    """The only one. Raises InputRefused when it is no text."""
    encoding = choose_encoding(raw, name, choices.get("encoding"))
    sha256 = hashlib.sha256(raw).hexdigest()
    text = check_text(raw, name, encoding)
    named = _NAMED_DELIMITER.match(text)
    read_as = encoding
    if named is not None:
        raw, read_as = text[named.end() :].encode(), "utf-8"
    delimiter = choices.get("delimiter") or (named.group(1) if named else None)
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda one: best_row(_sample(text, one), score)[0])
    if len(delimiter) != 1 or delimiter in '"\r\n':
        message = f"{name} names {delimiter!r} as its delimiter."
        raise refusal(FileCode.WRONG_DELIMITER, message, "Save it as `CSV UTF-8 (comma delimited)`.")
    rows = [row for row in csv_rows(raw, name, read_as, reading, delimiter) if has_content(row)]
    layout = SheetLayout("CSV" if delimiter in ",;" else "text", sha256, encoding, delimiter)
    return [table_of(rows, name, layout, choices.get("header"), score)]


def _sample(text: str, delimiter: str) -> list[NumberedRow]:
    """The first rows by this delimiter; none where they cannot be read by it."""
    reader = csv.reader(io.StringIO(text[:_SAMPLE], newline=""), delimiter=delimiter)
    try:
        rows = enumerate(map(tuple, itertools.islice(reader, _SAMPLE_ROWS)))
        return list(filter(has_content, rows))
    except csv.Error:
        return []
