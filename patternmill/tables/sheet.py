"""Reads sheets of any program into DataFrames of text, indexed by the row numbers that a spreadsheet shows."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from patternmill.errors import InputRefused
from patternmill.reading import FileCode, Reading, refusal
from patternmill.tables.columns import column_letter
from patternmill.tables.layout import SheetLayout
from patternmill.tables.mapping import ReadingChoices
from patternmill.tables.text_encodings import check_text, choose_encoding
from patternmill.tables.workbooks import Worksheet, parse_workbook
from patternmill.text import plain, plural, shown

# Wherever pyarrow happens to be installed, texts would be of another type, with other methods.
pd.set_option("mode.string_storage", "python")

#: Whether a row names all that a catalog needs, and how many columns it names.
Fit = tuple[bool, int]
Score = Callable[[Sequence[str]], Fit]
NumberedRow = tuple[int, list[str]]
#: A row's number and the position of one of its cells.
Place = tuple[int, int]

NO_CHOICES = ReadingChoices()
DELIMITERS = (",", ";", "\t", "|")
_LONGEST_NAME = 1000
_ZIP = b"PK\x03\x04"
#: Excel reads this first line, and does not show it as a row.
_NAMED_DELIMITER = re.compile('\ufeff?"?sep=(.)"?(?:\r\n|\r|\n)')
#: What DOS programs write behind the last row.
_END_OF_FILE = re.compile(r"[\r\n]*\x1a[\x1a\s]*\Z")
#: Of a file's end, in characters.
_TAIL = 1000
_SAMPLE = 200_000
_SAMPLE_ROWS = 40
#: So many rows of a file are looked at for the one that names the columns.
_HEADER_WITHIN = 20
_FEWEST_COLUMNS = 3
#: So many different cells of a file are kept once, however many rows repeat them.
_KEPT = 4096
_MOST_NAMED = 8
_WRITE_AS_TEXT = "format the column as Text and type it again"
#: By how what a cell holds begins.
_REMEDIES = {
    "the error": "correct the formula, or type what belongs there",
    "a formula": "let its program calculate the sheet, and save it again",
}
_AS_SHOWN = 'write `sku_numbers = "as shown"` under [reading] of its mapping (`check --yes` does)'
_AS_TEXTS = "make the column texts (in Excel: Data > Text to Columns > Text), or export the sheet as CSV"


@dataclass(frozen=True)
class Sheet:
    """A file, or one worksheet of it, as it was read."""

    name: str
    raw: bytes = field(repr=False)
    layout: SheetLayout
    #: The names of the columns as written.
    header: tuple[str, ...]
    #: Text below the header without blank rows; by row number and the column's position. Cells that a row lacks are
    #: empty here, and cells beyond the header are in `surplus`.
    rows: pd.DataFrame = field(repr=False)
    blank_rows: int = 0
    #: How many cells a row has, of rows that have fewer than the header.
    short: Mapping[int, int] = field(default_factory=dict, repr=False)
    #: The cells beyond the header, of rows that have more than it.
    surplus: Mapping[int, tuple[str, ...]] = field(default_factory=dict, repr=False)
    #: What cells of a workbook are that are no text (`the date 2026-05-01`); empty for plain numbers.
    unfit: Mapping[Place, str] = field(default_factory=dict, repr=False)
    #: What the program shows of plain numbers, where that is known.
    shown: Mapping[Place, str] = field(default_factory=dict, repr=False)
    #: Whether it is CSV with commas and its header in the first row, of which nothing need be said.
    is_usual: bool = False
    #: How well the header names what a catalog needs.
    fit: Fit = (False, 0)
    #: In sentences: what a person may not expect of how it was read.
    notes: tuple[str, ...] = ()

    def column(self, position: int) -> pd.Series:
        """Return a column's cells by row number."""
        cells: pd.Series = self.rows[position]
        return cells

    def records(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield each row's number and its cells, those beyond the header too."""
        columns = (self.rows[position].to_numpy(dtype=object) for position in self.rows)
        for number, cells in zip(map(int, self.rows.index), zip(*columns, strict=True), strict=True):
            yield number, (*cells, *self.surplus.get(number, ()))

    def fault(self, row: int, position: int, *, is_sku: bool) -> tuple[str, str] | None:
        """Return what a cell holds that is no text (`Artikel!B7 holds the date 2026-05-01, not text`), and the remedy.

        A sku that is a number has lost its zeros: `00012` reads 12.
        """
        what = self.unfit.get((row, position))
        place = f"{plain(self.layout.worksheet or '')}!{column_letter(position)}{row}"
        if what:
            remedies = (remedy for begin, remedy in _REMEDIES.items() if what.startswith(begin))
            return f"{place} holds {what}, not text", next(remedies, _WRITE_AS_TEXT)
        if what is None or not is_sku:
            return None
        displayed = self.shown.get((row, position))
        as_shown = (
            f"to take the skus as the sheet shows them ({shown(displayed)}), {_AS_SHOWN}; else "
            if displayed
            else ""
        )
        return f"{place} holds a number, of which leading zeros are lost", as_shown + _AS_TEXTS


def parse_sheet(
    raw: bytes, name: str, score: Score, choices: ReadingChoices = NO_CHOICES, limits: Reading | None = None
) -> Sheet:
    """Return the one sheet of a file that can be meant. Raises InputRefused with one of the codes of FileCode."""
    sheets = parse_sheets(raw, name, score, choices, limits)
    if len(sheets) > 1:
        raise _several_worksheets(plain(name, _LONGEST_NAME), sheets)
    return sheets[0]


def parse_sheets(
    raw: bytes, name: str, score: Score, choices: ReadingChoices = NO_CHOICES, limits: Reading | None = None
) -> list[Sheet]:
    """Return the sheets of a file that can be meant as well as one another.

    `score` says how well a row names the columns; `limits`: None for bytes that were accepted before. Raises
    InputRefused.
    """
    limits = limits or Reading.again(name)
    shown_name = plain(name, _LONGEST_NAME)
    if not raw.startswith(_ZIP):
        return [_text_sheet(raw, shown_name, score, choices, limits)]
    kind, worksheets = parse_workbook(raw, shown_name, choices.worksheet, limits)
    layout = SheetLayout(kind, hashlib.sha256(raw).hexdigest())
    sheets = [_worksheet_sheet(raw, shown_name, layout, one, score, choices) for one in worksheets]
    most = max(sheet.fit for sheet in sheets)
    return [sheet for sheet in sheets if sheet.fit[0]] or [sheet for sheet in sheets if sheet.fit == most]


# --- text files


def _text_sheet(raw: bytes, name: str, score: Score, choices: ReadingChoices, limits: Reading) -> Sheet:
    encoding = choose_encoding(raw, name, choices.encoding)
    text = check_text(raw, name, encoding)
    content, codec = raw, encoding
    if named := _NAMED_DELIMITER.match(text):
        text = text[named.end() :]
    has_end = text[-_TAIL:].rstrip().endswith("\x1a")
    if has_end:
        text = _END_OF_FILE.sub("\n", text)
    if named or has_end:
        content, codec = text.encode(), "utf-8"
    delimiter = choices.delimiter or (named and named[1]) or _delimiter(text, score)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        message = f"{name} names {delimiter!r} as its delimiter."
        raise refusal(FileCode.WRONG_DELIMITER, message, "Save it as `CSV UTF-8 (comma delimited)`.")
    del text
    lines = io.TextIOWrapper(io.BytesIO(content), encoding=codec, newline="")
    rows = _Records(_csv_rows(lines, name, limits, delimiter))
    header_row = choices.header or rows.header_row(score)
    layout = SheetLayout(
        "CSV" if delimiter in ",;" else "text",
        hashlib.sha256(raw).hexdigest(),
        encoding,
        delimiter,
        None,
        header_row,
    )
    sheet = rows.sheet(raw, name, layout, score, limits)
    is_usual = delimiter == "," and not named and header_row == rows.first_row and sheet.fit[0]
    return replace(sheet, is_usual=is_usual)


def _delimiter(text: str, score: Score) -> str:
    """Return commas where the first row names a catalog's columns by them, else what names them best."""
    samples = {one: _sample(text, one) for one in DELIMITERS}
    if samples[","] and score(samples[","][0][1])[0]:
        return ","
    return max(samples, key=lambda one: _best_row(samples[one], score)[0])


def _sample(text: str, delimiter: str) -> list[NumberedRow]:
    """Return the first rows by this delimiter; none where they cannot be read by it."""
    reader = csv.reader(io.StringIO(text[:_SAMPLE], newline=""), delimiter=delimiter)
    try:
        return [row for row in enumerate(itertools.islice(reader, _SAMPLE_ROWS), 1) if has_content(row[1])]
    except csv.Error:
        return []


def _csv_rows(lines: Iterable[str], name: str, limits: Reading, delimiter: str) -> Iterator[NumberedRow]:
    """Yield every row with its number, blank ones too.

    The standard library's reader decides in its strict mode: of pandas' own engines one merges rows at a stray quote in
    silence, and the other drops them as soon as it has to tolerate rows that are too long.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    row = before = 0
    try:
        for row, cells in enumerate(reader, 1):
            before = reader.line_num
            limits.check_rows(row)
            yield row, cells
    except csv.Error as error:
        raise _unreadable(name, row + 1, before + 1, reader.line_num, str(error)) from None


def _unreadable(name: str, row: int, first: int, last: int, error: str) -> InputRefused:
    """Return why a row cannot be read that begins on one physical line and was given up on another, both from 1."""
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


# --- workbooks


def _worksheet_sheet(
    raw: bytes, name: str, layout: SheetLayout, worksheet: Worksheet, score: Score, choices: ReadingChoices
) -> Sheet:
    rows = _Records(iter(worksheet.rows))
    header_row = choices.header or rows.header_row(score)
    layout = replace(layout, worksheet=worksheet.name, header_row=header_row)
    sheet = rows.sheet(raw, name, layout, score, Reading.again(name))
    hidden = int(sheet.rows.index.isin(worksheet.hidden).sum())
    notes = sheet.notes
    if hidden:
        verb = "is" if hidden == 1 else "are"
        way = " by a filter" if worksheet.has_filter else ""
        notes += (f"{plural(hidden, 'row')} of the sheet {verb} hidden{way}, and read like the others.",)
    below = {place: what for place, what in worksheet.unfit.items() if place[0] > header_row}
    return replace(sheet, unfit=below, shown=worksheet.shown, notes=notes)


def _several_worksheets(name: str, sheets: Sequence[Sheet]) -> InputRefused:
    found = ", ".join(
        f"“{plain(sheet.layout.worksheet or '')}” ({plural(len(sheet.rows), 'row')})"
        for sheet in sheets[:_MOST_NAMED]
    )
    return refusal(
        FileCode.SEVERAL_WORKSHEETS,
        f"{name} has {plural(len(sheets), 'worksheet')} that could be meant: {found}.",
        "Name one in its mapping: `worksheet` under [reading].",
    )


# --- both


class _Records:
    """The rows of a file, of which the first are looked at for the one that names the columns."""

    def __init__(self, rows: Iterator[NumberedRow]) -> None:
        self._rows = rows
        self._first: list[NumberedRow] = []
        #: The number of the last row that was looked at, blank or not.
        self._seen = 0
        for row in rows:
            self._seen = row[0]
            if has_content(row[1]):
                self._first.append(row)
                if len(self._first) == _SAMPLE_ROWS:
                    break

    @property
    def first_row(self) -> int:
        return self._first[0][0] if self._first else 0

    def header_row(self, score: Score) -> int:
        """Return the first row, where it names all that is needed; else the one that fits best; 0: there is none."""
        if self._first and score(self._first[0][1])[0]:
            return self.first_row
        return _best_row(self._first, score)[1]

    def sheet(self, raw: bytes, name: str, layout: SheetLayout, score: Score, limits: Reading) -> Sheet:
        """Return the sheet below its header. Raises InputRefused when the file or the row of the header is empty."""
        if not self._first:
            raise refusal(FileCode.EMPTY_FILE, f"{name} is empty.", "Is it the right file?")
        rows = itertools.chain(self._first, self._rows)
        tall, header = 0, tuple[str, ...]()
        for number, cells in rows:
            if number >= (layout.header_row or 0):
                header = tuple(cells) if number == layout.header_row else ()
                break
            tall += _filled(cells) >= _FEWEST_COLUMNS
        if not has_content(header):
            raise refusal(
                FileCode.MISSING_COLUMN,
                f"{name} has nothing in row {layout.header_row}, which its mapping names as the header.",
                "Under [reading], name the row that holds the columns' names, as the spreadsheet numbers it.",
            )
        limits.check_columns(len(header))
        notes = (f"{plural(tall, 'row')} of a table above the header not read.",) if tall else ()
        sheet = _filled_sheet(rows, Sheet(name, raw, layout, header, pd.DataFrame(), notes=notes), self._seen)
        return replace(sheet, fit=score(header))


def _filled_sheet(rows: Iterable[NumberedRow], sheet: Sheet, last: int) -> Sheet:
    """Return the sheet with these rows below its header; the file has at least as many as `last`."""
    width = len(sheet.header)
    numbers = array("q")
    columns: list[list[str]] = [[] for _ in range(width)]
    short: dict[int, int] = {}
    surplus: dict[int, tuple[str, ...]] = {}
    # One object for equal cells: categories and options are among the first.
    kept: dict[str, str] = {}
    for number, cells in rows:
        if not has_content(cells):
            last = number
            continue
        if len(kept) < _KEPT:
            kept.update(zip(cells, cells, strict=True))
        if len(cells) < width:
            short[number] = len(cells)
            cells += [""] * (width - len(cells))
        elif len(cells) > width:
            surplus[number] = tuple(cells[width:])
        numbers.append(number)
        for column, cell in zip(columns, cells, strict=False):
            column.append(kept.get(cell, cell))
    last = max(last, numbers[-1] if numbers else 0)
    index = pd.Index(numbers, dtype="int64")
    # Each list is let go before the next column is made.
    columns.reverse()
    frame = pd.DataFrame({at: pd.Series(columns.pop(), index, dtype="str") for at in range(width)}, index)
    blank_rows = last - (sheet.layout.header_row or 0) - len(numbers)
    return replace(sheet, rows=frame, blank_rows=blank_rows, short=short, surplus=surplus)


def _best_row(rows: Sequence[NumberedRow], score: Score) -> tuple[tuple[Fit, bool, int], int]:
    """Return how well the best row for a header fits, the first of equals, and its number."""
    usual = _usual_width(rows)
    fits = [
        ((score(cells), _filled(cells) > 1 and _filled(cells) * 2 > usual, -place), number)
        for place, (number, cells) in enumerate(rows[:_HEADER_WITHIN])
    ]
    return max(fits, default=(((False, 0), False, 0), 0))


def _usual_width(rows: Iterable[NumberedRow]) -> int:
    """Return how many cells most rows have something in, or more where as many rows have that."""
    counts = Counter(_filled(cells) for _, cells in rows)
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _filled(cells: Iterable[str]) -> int:
    return sum(bool(cell and not cell.isspace()) for cell in cells)


def has_content(cells: Sequence[str]) -> bool:
    """Return whether a row has anything but spaces."""
    if cells and cells[0] and not cells[0].isspace():
        return True
    text = "".join(cells)
    return bool(text) and not text.isspace()
