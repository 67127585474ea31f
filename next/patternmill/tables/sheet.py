"""Sheets of any program as frames of text, indexed by the row numbers that a spreadsheet shows."""

import csv
import hashlib
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from patternmill.errors import InputRefused
from patternmill.tables.mapping import SheetMapping
from patternmill.tables.workbook import read_workbook
from patternmill.text import counted, shown

#: The frame's last column: the cells of a row beyond the header, joined.
SURPLUS = -1
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MOST_BYTES, _MOST_ROWS, _MOST_COLUMNS, _HEADER_WITHIN, _KEPT = 256 << 20, 1_048_576, 16_384, 20, 4096
_NO_TABLES = {
    rb"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls), or one with a password",
    rb"\x1f\x8b": "a gzip archive",
    rb"PAR1": "a Parquet file",
    rb"%PDF-": "a PDF document",
    rb"\s*<[!?a-zA-Z]": "a web page or XML",
    rb"\s*(\{|\[\s*[\[{\"\]])": "JSON",
}
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`."


@dataclass(frozen=True)
class Sheet:
    """A sheet as it was read. The frame's columns are positions and SURPLUS; a cell that a row lacks is NaN."""

    name: str
    sha256: str
    layout: str
    delimiter: str
    header: tuple[str, ...]
    rows: pd.DataFrame = field(repr=False)
    blank_rows: int = 0
    #: By row and column: what a workbook's cell is that is no text.
    kinds: Mapping[tuple[int, int], str] = field(default_factory=dict, repr=False)
    is_workbook: bool = False
    notes: tuple[str, ...] = ()


def read_sheet(path: Path, mapping: SheetMapping) -> Sheet:
    """Read a CSV or workbook. Raises InputRefused for one that cannot be read as a whole."""
    raw = _read_bytes(path)
    sha256 = hashlib.sha256(raw).hexdigest()
    if raw.startswith(b"PK\x03\x04"):
        return _from_workbook(raw, path.name, sha256, mapping)
    text, encoding = _decode(raw, path.name, mapping.reading.encoding)
    del raw
    text, delimiter = _delimiter(text, path.name, mapping)
    layout = f"CSV, {DELIMITERS.get(delimiter, delimiter)}, {encoding.upper()}"
    content = text.encode()
    del text
    table = _parse(content, path.name, delimiter, mapping)
    return Sheet(
        path.name, sha256, layout + _place(table), delimiter, table.header, table.rows, table.blank_rows
    )


def _read_bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise InputRefused("file_missing", f"There is no file {path}.", "Check its name and folder.")
        if path.stat().st_size > _MOST_BYTES:
            raise InputRefused(
                "file_too_large", f"{path} has more than {_MOST_BYTES >> 20} MiB.", "Divide it."
            )
        return path.read_bytes()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise InputRefused("file_unreadable", message, "Check who may read it.") from None


def _decode(raw: bytes, name: str, asked: str | None) -> tuple[str, str]:
    """Return the text and its encoding: UTF-8, UTF-16 with its mark, or what a person named. Nothing is guessed."""
    for magic, what in _NO_TABLES.items():
        if re.match(magic, raw):
            raise InputRefused(
                "not_csv", f"{name} is {what}, which is not read here.", "CSV and .xlsx are read."
            )
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else asked or "utf-8"
    try:
        text = raw.decode(encoding)
    except LookupError:
        message = f"{asked!r}, in the mapping of {name}, is no encoding."
        raise InputRefused("unknown_encoding", message, "Correct it.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"{name} is not {encoding.upper()}: line {line} cannot be read."
        remedy = f"{_SAVE} Or name its encoding under [reading] of its mapping."
        raise InputRefused("unreadable_encoding", message, remedy) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputRefused(
            "nul_bytes", f"{name} holds a NUL character in line {line}, which no text has.", _SAVE
        )
    # The mark stands at the beginning of each file that was joined to this one.
    text = re.sub("(?m)^\ufeff+", "", text) if "\ufeff" in text else text
    text = text.rstrip("\x1a") if text.endswith("\x1a") else text
    if not text.strip():
        raise InputRefused("empty_file", f"{name} is empty.", "Is it the right file?")
    return text, encoding


def _delimiter(text: str, name: str, mapping: SheetMapping) -> tuple[str, str]:
    """Return the text without a line `sep=`, and the delimiter: a named one, or what best gives a catalog's columns."""
    if named := re.match(r'"?sep=(.)"?(?:\r\n|\r|\n)', text):
        text = text[named.end() :]
    if chosen := mapping.reading.delimiter or (named and named[1]):
        return text, chosen
    best, found = ((False, -1, -1), 0), ","
    for delimiter in DELIMITERS:
        rows = csv.reader(io.StringIO(text[:200_000], newline=""), delimiter=delimiter)
        try:
            fits = [(mapping.score(cells), len(cells)) for cells in itertools.islice(rows, _HEADER_WITHIN)]
        except csv.Error:
            continue
        if max(fits) > best:
            best, found = max(fits), delimiter
    return text, found


def _parse(content: bytes, name: str, delimiter: str, mapping: SheetMapping) -> "_Table":
    """Return the table of a text file.

    Tabs come from programs that do not quote: there a quote is a sign like any other, unless all are well-formed.
    """
    try:
        return _below_header(_records(content, name, delimiter, csv.QUOTE_MINIMAL), name, delimiter, mapping)
    except InputRefused as refusal:
        if delimiter != "\t" or refusal.code != "open_quote":
            raise
    return _below_header(_records(content, name, delimiter, csv.QUOTE_NONE), name, delimiter, mapping)


class _Record(NamedTuple):
    """A row by its number, and how many lines of a text file it takes, up to which one."""

    number: int
    cells: list[Any]
    lines: int = 1
    last: int = 0


class _Table(NamedTuple):
    header_row: int
    header: tuple[str, ...]
    rows: pd.DataFrame
    blank_rows: int


def _records(content: bytes, name: str, delimiter: str, quoting: Literal[0, 3]) -> Iterator[_Record]:
    """Yield every record. By csv: pandas' own parsers merge or drop rows at a stray quote."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
    row = before = 0
    try:
        for row, cells in enumerate(reader, 1):
            yield _Record(row, cells, reader.line_num - before, reader.line_num)
            before = reader.line_num
    except csv.Error as error:
        if "field larger" in str(error):
            message = f"{name}: a cell in row {row + 1} has more than {csv.field_size_limit():,} characters."
            raise InputRefused(
                "cell_too_long", message, "Is a quote opened there and never closed?"
            ) from None
        place = f"in row {row + 1} (lines {before + 1} to {reader.line_num} of the file)"
        raise _open_quote(f'{name}: a quote (") {place} is not closed where its cell ends.') from None


def _open_quote(message: str) -> InputRefused:
    return InputRefused(
        "open_quote", message, 'Close or remove it. In a quoted cell a quote is written twice ("").'
    )


def _below_header(records: Iterator[_Record], name: str, delimiter: str, mapping: SheetMapping) -> _Table:
    """Return the header, which is the row that best names a catalog's columns, and the rows below it."""
    top = list(itertools.islice(records, mapping.reading.header or _HEADER_WITHIN))
    number = mapping.reading.header or _header_row(top, mapping)
    header = next((one.cells for one in top if one.number == number), [])
    while header and not header[-1].strip():
        header.pop()
    if not header or len(header) > _MOST_COLUMNS:
        message = f"{name} has {counted(len(header), 'column')} in row {number}, its header."
        raise InputRefused("wrong_header", message, "Correct that row, or `header` in the mapping.")
    below = itertools.chain(top[top.index(next(one for one in top if one.number == number)) + 1 :], records)
    rows, blank = _collect(below, tuple(header), name, delimiter)
    if rows.empty:
        raise InputRefused("header_only", f"{name} has a header and no rows below it.", "Add the rows.")
    return _Table(number, tuple(header), rows, blank)


def _header_row(top: Sequence[_Record], mapping: SheetMapping) -> int:
    """Return the first of the rows that name most columns; of none that name any, the first one with several cells."""
    scores = [(mapping.score(one.cells), sum(map(bool, one.cells)) > 1, -one.number) for one in top]
    return -max(scores)[2] if scores else 1


def _collect(
    records: Iterable[_Record], header: tuple[str, ...], name: str, delimiter: str
) -> tuple[pd.DataFrame, int]:
    """Return the rows that show anything as a frame, and the number of the others."""
    width, blank, numbers, part = len(header), 0, list[int](), list[list[Any]]()
    columns: list[list[Any]] = [[] for _ in range(width + 1)]
    known: list[dict[Any, Any]] = [{} for _ in columns]

    def move() -> None:
        # One object for equal cells, as long as a column has few different ones.
        for column, same, cells in zip(columns, known, zip(*part, strict=True), strict=False):
            column.extend(map(same.setdefault, cells, cells) if len(same) < _KEPT else cells)
        part.clear()

    for record in records:
        number, cells, lines, last = record
        if not (cells and cells[0].strip()) and not "".join(cells).strip():
            blank += 1
            continue
        if lines > 1 and _swallows(cells, header, delimiter):
            place = f"in row {number} (lines {last - lines + 1} to {last} of the file)"
            raise _open_quote(
                f"{name}: a quoted cell {place} goes on over lines that look like rows of their own."
            )
        part.append(_fit(cells, width, delimiter))
        numbers.append(number)
        if len(part) == _KEPT:
            move()
            if len(numbers) > _MOST_ROWS:
                raise InputRefused(
                    "file_too_large", f"{name} has more than {_MOST_ROWS:,} rows.", "Divide it."
                )
    move()
    index = pd.Index(numbers, dtype="int64")
    columns.reverse()
    return pd.DataFrame(
        {at: pd.Series(columns.pop(), index, dtype="str") for at in [*range(width), SURPLUS]}
    ), blank


def _fit(cells: list[Any], width: int, delimiter: str) -> list[Any]:
    """Return a row in the header's width: a cell that it lacks is None, and surplus cells are joined in one."""
    if len(cells) <= width:
        return cells + [None] * (width + 1 - len(cells))
    surplus = delimiter.join(cells[width:])
    return [*cells[:width], surplus if surplus.strip(f" {delimiter}") else None]


def _swallows(cells: Sequence[str], header: Sequence[str], delimiter: str) -> bool:
    """Return whether two lines of a record that follow each other have as many separators as the header.

    A comma with a space behind it is one of a sentence, unless the header has such commas too.
    """
    shape = len(header) - 1 - sum(cell.startswith(" ") for cell in header)
    lines = re.split(r"\r\n|\r|\n", delimiter.join(cells))
    alike = [line.count(delimiter) - line.count(f"{delimiter} ") == shape for line in lines]
    return shape > 0 and any(map(bool.__and__, alike, alike[1:]))


def _from_workbook(raw: bytes, name: str, sha256: str, mapping: SheetMapping) -> Sheet:
    """Return the worksheet that has a catalog's columns."""
    sheets = [one for one in read_workbook(raw, name) if mapping.reading.worksheet in (None, one.name)]
    if not sheets:
        raise InputRefused(
            "empty_file", f"{name} has no such worksheet with anything in it.", "Is it the right file?"
        )
    best = {one.name: max(mapping.score(cells) for _, cells in one.rows[:_HEADER_WITHIN]) for one in sheets}
    fit = [one for one in sheets if best[one.name][0]] or [max(sheets, key=lambda one: best[one.name])]
    if len(fit) > 1:
        names = ", ".join(shown(one.name) for one in fit)
        message = f"{name} has {counted(len(fit), 'worksheet')} that could be meant: {names}."
        raise InputRefused(
            "several_worksheets", message, "Name one in its mapping: `worksheet` under [reading]."
        )
    records = (_Record(number, cells) for number, cells in fit[0].rows)
    table = _below_header(records, name, ",", mapping)
    hidden = sum(number in table.rows.index for number in fit[0].hidden)
    way = " by a filter" if fit[0].has_filter else ""
    note = f"{counted(hidden, 'hidden row')} of the worksheet{way} read like the others."
    layout = f"workbook, worksheet {shown(fit[0].name)}{_place(table)}"
    return Sheet(name, sha256, layout, ",", table.header, table.rows, table.blank_rows, fit[0].kinds, True,
                 (note,) if hidden else ())  # fmt: skip


def _place(table: _Table) -> str:
    return f", header in row {table.header_row}" if table.header_row > 1 else ""
