"""The CSV reader: bytes become records with the row numbers of a spreadsheet, or the file is refused whole.

The standard library's reader decides, in its strict mode, what a record is: nothing is shifted, converted or dropped.
The same bytes always give the same records, so that results can be rebuilt from the ledger's copy of them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from patternmill.catalog.columns import (
    Columns,
    is_ours,
    read_columns,
    refuse_other_delimiter,
    refuse_reserved,
)
from patternmill.catalog.problems import FileCode, plain, refusal
from patternmill.catalog.quotes import explain
from patternmill.catalog.read_limits import NO_LIMITS, Reading
from patternmill.catalog.spreadsheet import restore
from patternmill.catalog.text_encoding import check_text, choose_encoding
from patternmill.errors import InputRefused

_LONGEST_PATH = 1000
#: Characters of a first line in which another delimiter is looked for: less than the longest cell that can be read.
_FIRST_LINE = 100_000

NumberedRow = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Record:
    """One row as written. `line` is what a spreadsheet shows: the header is 1, blank rows count."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CatalogFile:
    name: str
    #: Of the raw bytes, in hexadecimal.
    sha256: str
    #: In bytes.
    size: int
    encoding: str
    header: tuple[str, ...]
    columns: Columns
    records: tuple[Record, ...] = field(repr=False)
    #: Rows without anything in them, which are skipped.
    blank_rows: int
    raw: bytes = field(repr=False)


def read_catalog(path: Path, *, encoding: str | None = None, quoting: bool = True) -> CatalogFile:
    """Read and parse the whole file, or raise InputRefused with one of the codes of FileCode.

    `quoting`: the refusal of a file that is no catalog may quote its first row.
    """
    reading = Reading(plain(path.name, _LONGEST_PATH))
    raw = stable_bytes(path, Path.read_bytes, reading)
    return parse_catalog(raw, name=path.name, encoding=encoding, reading=reading, quoting=quoting)


def parse_catalog(
    raw: bytes,
    *,
    name: str,
    encoding: str | None = None,
    empty: bool = False,
    reading: Reading | None = None,
    quoting: bool = True,
) -> CatalogFile:
    """The same from the bytes alone. `encoding` is the CatalogFile's own, or the one that the person named.

    `empty`: a header without rows is accepted. `reading`: None for bytes that were accepted before.
    """
    text = _Text(raw, plain(name, _LONGEST_PATH), encoding, reading or Reading(name, NO_LIMITS))
    line, header = text.header()
    columns = text.columns(header, quoting)
    records, blank = text.records(columns.ours)
    if not records and not empty:
        message = f"{text.name} has a header in row {line}, but nothing below it."
        raise refusal(FileCode.HEADER_ONLY, message, "Add the rows.")
    refuse_reserved(header, columns, (record.cells for record in records), text.name)
    return CatalogFile(
        name=name,
        sha256=hashlib.sha256(raw).hexdigest(),
        size=len(raw),
        encoding=text.encoding,
        header=header,
        columns=columns,
        records=records,
        blank_rows=blank,
        raw=raw,
    )


def stable_bytes(path: Path, read: Callable[[Path], bytes], reading: Reading | None = None) -> bytes:
    """The file's bytes, read twice: what is still being written or replaced is refused."""
    shown_path = plain(str(path), _LONGEST_PATH)
    try:
        before = _identity(path)
        (reading or Reading(shown_path)).check_size(before[0])
        raw = read(path)
        unchanged = before == _identity(path) and raw == read(path) and before == _identity(path)
    except FileNotFoundError:
        raise refusal(
            FileCode.FILE_MISSING, f"There is no file {shown_path}.", "Check the name and the folder."
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise refusal(
            FileCode.FILE_UNREADABLE, f"{shown_path} cannot be read: {reason}.", "Check who may read it."
        ) from None
    if not unchanged or len(raw) != before[0]:
        message = f"{shown_path} changed while it was read."
        raise refusal(FileCode.FILE_CHANGED, message, "Try again when it is saved completely.")
    return raw


def _identity(path: Path) -> tuple[int, int, int, int]:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or device"
        message = f"{plain(str(path), _LONGEST_PATH)} is {what}, not a file."
        raise refusal(FileCode.NOT_A_FILE, message, "Name a CSV file.")
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev


class _Text:
    """The text of one file, and its rows one after the other."""

    def __init__(self, raw: bytes, name: str, encoding: str | None, reading: Reading) -> None:
        self.name = name
        self.encoding = choose_encoding(raw, name, encoding)
        self._raw, self._reading = raw, reading
        check_text(raw, name, self.encoding)
        reading.check_time()
        self._rows = self._strict_rows()

    def header(self) -> NumberedRow:
        try:
            found = next((row for row in self._rows if _has_content(row[1])), None)
        except InputRefused:
            refuse_other_delimiter(self._first_line(), self.name)
            raise
        if found is None:
            raise refusal(FileCode.EMPTY_FILE, f"{self.name} is empty.", "Is it the right file?")
        row, header = found
        self._reading.check_columns(len(header))
        return row, tuple(map(restore, header)) if is_ours(header) else header

    def columns(self, header: tuple[str, ...], quoting: bool) -> Columns:
        try:
            return read_columns(header, self.name)
        except InputRefused as refused:
            refuse_other_delimiter(self._first_line(), self.name)
            if refused.code == FileCode.NO_KNOWN_COLUMNS and not quoting:
                none = f"{self.name} has none of the columns that a catalog has"
                message = f"{none}; its first row has {len(header)} cells."
                raise refusal(FileCode.NO_KNOWN_COLUMNS, message, refused.remedy) from None
            raise

    def records(self, ours: bool) -> tuple[tuple[Record, ...], int]:
        """The rows below the header, and how many blank ones were skipped."""
        records, blank = [], 0
        for line, cells in self._rows:
            if _has_content(cells):
                records.append(Record(line, tuple(map(restore, cells)) if ours else cells))
            else:
                blank += 1
        return tuple(records), blank

    def _strict_rows(self) -> Iterator[NumberedRow]:
        """Every row with its number, blank ones too."""
        reader = csv.reader(self._reading.lines(self._lines()), strict=True)
        blank = 0
        for row in itertools.count(1):
            lines_read = reader.line_num
            self._reading.begin_row()
            try:
                cells = next(reader, None)
            except csv.Error as error:
                lines = itertools.islice(self._lines(), lines_read, None)
                raise explain(error, self.name, row, lines_read + 1, lines) from None
            if cells is None:
                return
            blank += not _has_content(cells)
            self._reading.check_rows(row, blank)
            yield row, tuple(cells)

    def _lines(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self._raw), encoding=self.encoding, newline="")

    def _first_line(self) -> str:
        lines = itertools.islice(self._lines(), 1000)
        return next((line for line in lines if line.strip()), "")[:_FIRST_LINE]


def _has_content(cells: Sequence[str]) -> bool:
    return any(cell and not cell.isspace() for cell in cells)
