"""The CSV reader: bytes become text, then records with the row numbers of a spreadsheet, or the file is refused.

The standard library's reader decides, in its strict mode, what a record is: nothing is shifted, converted or dropped.
The same bytes always give the same records, so that results can be rebuilt from the ledger's copy of them.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence

from patternmill.catalog.catalog_file import CatalogFile, NumberedRow, Record
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.rows import (
    is_results_header,
    read_columns,
    refuse_reserved,
    restore,
)
from patternmill.errors import InputRefused
from patternmill.sheets.text_encodings import check_text, choose_encoding
from patternmill.text import plain

_LONGEST_PATH = 1000
_KEPT = 4096


def parse_catalog(
    raw: bytes,
    *,
    name: str,
    encoding: str | None = None,
    mapping: ColumnMapping = NO_MAPPING,
    empty: bool = False,
    reading: Reading | None = None,
) -> CatalogFile:
    """Read CSV, or raise InputRefused with one of the codes of FileCode.

    `encoding` is the CatalogFile's own, or the one that the person named. `empty`: a header without rows is accepted.
    `reading`: None for bytes that were accepted before.
    """
    shown, reading = plain(name, _LONGEST_PATH), reading or Reading.again(name)
    codec = choose_encoding(raw, shown, encoding)
    check_text(raw, shown, codec)
    rows = csv_rows(raw, shown, codec, reading)
    line, header = next(filter(has_content, rows), (0, ()))
    if not line:
        raise refusal(FileCode.EMPTY_FILE, f"{shown} is empty.", "Is it the right file?")
    reading.check_columns(len(header))
    if is_results_header(header):
        header = tuple(map(restore, header))
    mapping.refuse_gone(header, shown)
    columns = read_columns(mapping.applied(header), shown)
    records, blank = _records(rows, columns.is_results_file)
    if not records and not empty:
        message = f"{shown} has a header in row {line}, but nothing below it."
        raise refusal(FileCode.HEADER_ONLY, message, "Add the rows.")
    refuse_reserved(header, columns, (record.cells for record in records), shown)
    return CatalogFile(
        name=name,
        sha256=hashlib.sha256(raw).hexdigest(),
        encoding=codec,
        header=header,
        columns=columns,
        records=records,
        blank_rows=blank,
        raw=raw,
        mapping=mapping,
    )


def _records(rows: Iterable[NumberedRow], is_results_file: bool) -> tuple[tuple[Record, ...], int]:
    """The rows below the header, and how many blank ones were skipped."""
    records, blank = [], 0
    # One object for equal cells, of which the first are kept: categories and options are among them.
    known: dict[str, str] = {}
    for row in rows:
        if not has_content(row):
            blank += 1
            continue
        line, cells = row
        if len(known) < _KEPT:
            known.update(zip(cells, cells, strict=True))
        texts = map(restore, cells) if is_results_file else cells
        records.append(Record(line, tuple([known.get(cell, cell) for cell in texts])))
    return tuple(records), blank


def csv_rows(
    raw: bytes, name: str, encoding: str, reading: Reading, delimiter: str = ","
) -> Iterator[NumberedRow]:
    """Every row with its number, blank ones too, one after the other."""
    lines = io.TextIOWrapper(io.BytesIO(raw), encoding=encoding, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    row = before = 0
    try:
        for row, cells in enumerate(reader, 1):
            before = reader.line_num
            reading.check_rows(row)
            yield row, tuple(cells)
    except csv.Error as error:
        raise _unreadable(name, row + 1, before + 1, reader.line_num, str(error)) from None


def has_content(row: tuple[int, Sequence[str]]) -> bool:
    text = "".join(row[1])
    return bool(text) and not text.isspace()


def _unreadable(name: str, row: int, first: int, last: int, error: str) -> InputRefused:
    """Why a row cannot be read, which begins on one physical line and was given up on another; from 1."""
    if "field limit" in error:
        return refusal(
            FileCode.CELL_TOO_LONG,
            f"{name}: a cell in row {row} is longer than {csv.field_size_limit()} characters.",
            'Shorten it, or take its column out of the file. Is a quote (") opened there and not closed?',
        )
    place = f"row {row}" if row == first else f"row {row} (line {first} of the text file)"
    if last > first or "end of data" in error:
        return refusal(
            FileCode.OPEN_QUOTE,
            f'{name}: a quote (") that opens a cell in {place} is not closed where the cell ends.',
            'Close it there, or remove it. A quote within a quoted cell is written twice ("").',
        )
    return refusal(
        FileCode.STRAY_QUOTE,
        f'{name}: in {place} something follows the quote (") that closes a cell.',
        'A quote within a quoted cell is written twice (""); after the closing one comes a comma.',
    )
