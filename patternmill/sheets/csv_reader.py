"""The CSV reader: bytes become text, then records with the row numbers of a spreadsheet, or the file is refused.

The standard library's reader decides, in its strict mode, what a record is: nothing is shifted, converted or dropped.
The same bytes always give the same records, so that results can be rebuilt from the ledger's copy of them.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence

from patternmill.catalog.catalog_file import CatalogFile, NumberedRow, Record
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import NO_LIMITS, Reading
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
    text = CsvText(raw, plain(name, _LONGEST_PATH), encoding, reading or Reading(name, NO_LIMITS))
    line, header = text.header()
    mapping.refuse_gone(header, text.name)
    columns = read_columns(mapping.applied(header), text.name)
    records, blank = text.records(columns.is_results_file)
    if not records and not empty:
        message = f"{text.name} has a header in row {line}, but nothing below it."
        raise refusal(FileCode.HEADER_ONLY, message, "Add the rows.")
    refuse_reserved(header, columns, (record.cells for record in records), text.name)
    return CatalogFile(
        name=name,
        sha256=hashlib.sha256(raw).hexdigest(),
        encoding=text.encoding,
        header=header,
        columns=columns,
        records=records,
        blank_rows=blank,
        raw=raw,
        mapping=mapping,
    )


class CsvText:
    """The text of one file, and its rows one after the other."""

    def __init__(
        self,
        raw: bytes,
        name: str,
        encoding: str | None,
        reading: Reading,
        delimiter: str = ",",
    ) -> None:
        self.name, self._delimiter = name, delimiter
        self.encoding = choose_encoding(raw, name, encoding)
        self._raw, self._reading = raw, reading
        check_text(raw, name, self.encoding)
        self.rows = self._strict_rows()

    def header(self) -> NumberedRow:
        found = next((row for row in self.rows if has_content(row[1])), None)
        if found is None:
            raise refusal(FileCode.EMPTY_FILE, f"{self.name} is empty.", "Is it the right file?")
        row, header = found
        self._reading.check_columns(len(header))
        return row, tuple(map(restore, header)) if is_results_header(header) else header

    def records(self, is_results_file: bool) -> tuple[tuple[Record, ...], int]:
        """The rows below the header, and how many blank ones were skipped."""
        records, blank = [], 0
        # One object for equal cells, of which the first are kept: categories and options are among them.
        known: dict[str, str] = {}
        for line, cells in self.rows:
            if not has_content(cells):
                blank += 1
                continue
            if len(known) < _KEPT:
                known.update(zip(cells, cells, strict=True))
            texts = map(restore, cells) if is_results_file else cells
            records.append(Record(line, tuple([known.get(cell, cell) for cell in texts])))
        return tuple(records), blank

    def _strict_rows(self) -> Iterator[NumberedRow]:
        """Every row with its number, blank ones too."""
        lines = io.TextIOWrapper(io.BytesIO(self._raw), encoding=self.encoding, newline="")
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        row = before = 0
        try:
            for row, cells in enumerate(reader, 1):
                before = reader.line_num
                self._reading.check_rows(row)
                yield row, tuple(cells)
        except csv.Error as error:
            raise _unreadable(self.name, row + 1, before + 1, reader.line_num, str(error)) from None


def has_content(cells: Sequence[str]) -> bool:
    text = "".join(cells)
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
