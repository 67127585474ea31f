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
from patternmill.tables.mapping import DELIMITERS, ReadingChoices, SheetLayout
from patternmill.tables.text_encodings import check_text, choose_encoding
from patternmill.tables.workbooks import Worksheet, parse_workbook
from patternmill.text import plain, plural, shown

# Without this, texts would be of another type, with other methods, wherever pyarrow happens to be installed.
pd.set_option("mode.string_storage", "python")

#: Whether a row names all that a catalog needs, and how many columns it names.
Fit = tuple[bool, int]
Score = Callable[[Sequence[str]], Fit]
NumberedRow = tuple[int, list[str]]
#: A row's number and the position of one of its cells.
Place = tuple[int, int]

NO_CHOICES = ReadingChoices()
_LONGEST_NAME = 1000
_ZIP = b"PK\x03\x04"
#: The first line that Excel obeys, and does not show as a row.
_NAMED_DELIMITER = re.compile('\ufeff?"?sep=(.)"?(?:\r\n|\r|\n)')
#: What DOS programs write after the last row.
_END_OF_FILE = re.compile(r"[\r\n]*\x1a[\x1a\s]*\Z")
#: The part of a file's end that is searched for it, in characters.
_TAIL = 1000
_SAMPLE = 200_000
_SAMPLE_ROWS = 40
#: The number of rows that are read for a sample, blank ones included.
_LOOKED_AT = 1000
#: The number of filled rows that are searched for the one that names the columns.
_HEADER_WITHIN = 20
_FEWEST_COLUMNS = 3
#: The number of different cells that are kept once, however many rows repeat them.
_KEPT = 4096
_MOST_NAMED = 8
_WRITE_AS_TEXT = "format the column as Text and type it again"
#: Remedies by the beginning of the text that says what a cell holds.
_REMEDIES = {
    "the error": "correct the formula, or type what belongs there",
    "a formula": "let its program calculate the sheet, and save it again",
}
_AS_SHOWN = 'write `sku_numbers = "as shown"` under [reading] of its mapping (`check --yes` does)'
_AS_TEXTS = "make the column texts (in Excel: Data > Text to Columns > Text), or export the sheet as CSV"


@dataclass(frozen=True)
class Sheet:
    """A file, or one worksheet of a file, as it was read."""

    name: str
    raw: bytes = field(repr=False)
    layout: SheetLayout
    #: The names of the columns as written.
    header: tuple[str, ...] = ()
    #: The text below the header, without blank rows, by row number and the column's position. Cells that a row lacks
    #: are empty here, and cells beyond the header are in `surplus`.
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    blank_rows: int = 0
    #: The number of cells of each row that has fewer than the header.
    short: Mapping[int, int] = field(default_factory=dict, repr=False)
    #: The cells beyond the header of each row that has any.
    surplus: Mapping[int, tuple[str, ...]] = field(default_factory=dict, repr=False)
    #: The cells of a workbook that are no text, with what each is (`the date 2026-05-01`), which is empty for plain
    #: numbers, and what the program shows of a number, where that is known.
    unfit: Mapping[Place, tuple[str, str | None]] = field(default_factory=dict, repr=False)
    #: How well the header names what a catalog needs.
    fit: Fit = (False, 0)
    #: Sentences on what a person may not expect of how it was read.
    notes: tuple[str, ...] = ()

    def column(self, position: int) -> pd.Series:
        """Return a column's cells by row number."""
        cells: pd.Series = self.rows[position]
        return cells

    def records(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield each row's number and its cells, including those beyond the header."""
        columns = (self.rows[position].to_numpy(dtype=object) for position in self.rows)
        for number, cells in zip(map(int, self.rows.index), zip(*columns, strict=True), strict=True):
            yield number, (*cells, *self.surplus.get(number, ()))

    def fault(self, row: int, position: int, *, is_sku: bool) -> tuple[str, str] | None:
        """Return what a cell holds that is no text (`Artikel!B7 holds the date 2026-05-01, not text`), and the remedy.

        A sku that is a number has lost its zeros: `00012` reads 12.
        """
        what, displayed = self.unfit.get((row, position), (None, None))
        place = f"{plain(self.layout.worksheet or '')}!{column_letter(position)}{row}"
        if what:
            remedies = (remedy for begin, remedy in _REMEDIES.items() if what.startswith(begin))
            return f"{place} holds {what}, not text", next(remedies, _WRITE_AS_TEXT)
        if what is None or not is_sku:
            return None
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
        named = ", ".join(
            f"“{plain(sheet.layout.worksheet or '')}” ({plural(len(sheet.rows), 'row')})"
            for sheet in sheets[:_MOST_NAMED]
        )
        raise refusal(
            FileCode.SEVERAL_WORKSHEETS,
            f"{sheets[0].name} has {plural(len(sheets), 'worksheet')} that could be meant: {named}.",
            "Name one in its mapping: `worksheet` under [reading].",
        )
    return sheets[0]


def parse_sheets(
    raw: bytes, name: str, score: Score, choices: ReadingChoices = NO_CHOICES, limits: Reading | None = None
) -> list[Sheet]:
    """Return the sheets of a file that can be meant as well as one another.

    `score` says how well a row names the columns; `limits` is None for bytes that were accepted before. Raises
    InputRefused.
    """
    limits, name = limits or Reading.again(name), plain(name, _LONGEST_NAME)
    sha256 = hashlib.sha256(raw).hexdigest()
    if not raw.startswith(_ZIP):
        encoding, delimiter, rows = _text_rows(raw, name, score, choices, limits)
        layout = SheetLayout("CSV" if delimiter in ",;" else "text", sha256, encoding, delimiter)
        return [_below_header(Sheet(name, raw, layout), rows, score, choices, limits)]
    kind, worksheets = parse_workbook(raw, name, choices.worksheet, limits)
    sheets = [
        _worksheet_sheet(
            Sheet(name, raw, SheetLayout(kind, sha256, worksheet=part.name)), part, score, choices
        )
        for part in worksheets
    ]
    most = max(sheet.fit for sheet in sheets)
    return [sheet for sheet in sheets if sheet.fit[0]] or [sheet for sheet in sheets if sheet.fit == most]


# --- text files


def _text_rows(
    raw: bytes, name: str, score: Score, choices: ReadingChoices, limits: Reading
) -> tuple[str, str, Iterator[NumberedRow]]:
    """Return the encoding, the delimiter, and the rows of a text file."""
    encoding = choose_encoding(raw, name, choices.encoding)
    text = whole = check_text(raw, name, encoding)
    if named := _NAMED_DELIMITER.match(text):
        text = text[named.end() :]
    if text[-_TAIL:].rstrip().endswith("\x1a"):
        text = _END_OF_FILE.sub("\n", text)
    delimiter = choices.delimiter or (named and named[1]) or _delimiter(text, score)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        message = f"{name} names {delimiter!r} as its delimiter."
        raise refusal(FileCode.WRONG_DELIMITER, message, "Save it as `CSV UTF-8 (comma delimited)`.")
    # Decoded again as it is read: the whole text would take four times the memory of its bytes.
    content, codec = (raw, encoding) if text is whole else (text.encode(), "utf-8")
    lines = io.TextIOWrapper(io.BytesIO(content), encoding=codec, newline="")
    return encoding, delimiter, _csv_rows(lines, name, limits, delimiter)


def _delimiter(text: str, score: Score) -> str:
    """Return commas where the first row names a catalog's columns by them, else what names them best."""
    samples = {delimiter: _sample(text, delimiter) for delimiter in DELIMITERS}
    if samples[","] and score(samples[","][0][1])[0]:
        return ","
    return max(samples, key=lambda delimiter: _best_row(samples[delimiter], score)[0])


def _sample(text: str, delimiter: str) -> list[NumberedRow]:
    """Return the first rows as this delimiter separates them; none where they cannot be read like that."""
    reader = csv.reader(io.StringIO(text[:_SAMPLE], newline=""), delimiter=delimiter)
    try:
        return [row for row in enumerate(itertools.islice(reader, _SAMPLE_ROWS), 1) if has_content(row[1])]
    except csv.Error:
        return []


def _csv_rows(lines: Iterable[str], name: str, limits: Reading, delimiter: str) -> Iterator[NumberedRow]:
    """Yield every row with its number, including blank ones.

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
    """Return the refusal of a row that begins on the line `first` and could not be read on the line `last`, from 1."""
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


def _worksheet_sheet(sheet: Sheet, worksheet: Worksheet, score: Score, choices: ReadingChoices) -> Sheet:
    sheet = _below_header(sheet, iter(worksheet.rows), score, choices, Reading.again(sheet.name))
    hidden, notes = int(sheet.rows.index.isin(worksheet.hidden).sum()), sheet.notes
    if hidden:
        verb, way = "is" if hidden == 1 else "are", " by a filter" if worksheet.has_filter else ""
        notes += (f"{plural(hidden, 'row')} of the sheet {verb} hidden{way}, and read like the others.",)
    below = {
        place: odd for place, odd in worksheet.unfit.items() if place[0] > (sheet.layout.header_row or 0)
    }
    return replace(sheet, unfit=below, notes=notes)


# --- both


def _below_header(
    sheet: Sheet, rows: Iterator[NumberedRow], score: Score, choices: ReadingChoices, limits: Reading
) -> Sheet:
    """Return the sheet with its header and the rows below it.

    Raises InputRefused when the file or the row of the header is empty.
    """
    rows = itertools.dropwhile(lambda row: not has_content(row[1]), rows)
    first = list(itertools.islice(rows, _LOOKED_AT))
    if not first:
        raise refusal(FileCode.EMPTY_FILE, f"{sheet.name} is empty.", "Is it the right file?")
    filled = [row for row in first if has_content(row[1])][:_SAMPLE_ROWS]
    is_first = score(filled[0][1])[0]
    header_row = choices.header or (filled[0][0] if is_first else _best_row(filled, score)[1])
    rows, above, header = itertools.chain(first, rows), 0, tuple[str, ...]()
    for number, cells in rows:
        if number >= header_row:
            header = tuple(cells) if number == header_row else ()
            break
        above += _filled(cells) >= _FEWEST_COLUMNS
    if not has_content(header):
        raise refusal(
            FileCode.MISSING_COLUMN,
            f"{sheet.name} has nothing in row {header_row}, which its mapping names as the header.",
            "Under [reading], name the row that holds the columns' names, as the spreadsheet numbers it.",
        )
    limits.check_columns(len(header))
    notes = (f"{plural(above, 'row')} of a table above the header not read.",) if above else ()
    layout = replace(sheet.layout, header_row=header_row)
    return _with_rows(replace(sheet, layout=layout, header=header, fit=score(header), notes=notes), rows)


def _with_rows(sheet: Sheet, rows: Iterable[NumberedRow]) -> Sheet:
    """Return the sheet with these rows, which follow its header."""
    width, last = len(sheet.header), sheet.layout.header_row or 0
    numbers = array("q")
    columns: list[list[str]] = [[] for _ in range(width)]
    short: dict[int, int] = {}
    surplus: dict[int, tuple[str, ...]] = {}
    # One object for equal cells: categories and options are among the first.
    equal: dict[str, str] = {}
    for last, cells in rows:  # the last one is counted from
        if not has_content(cells):
            continue
        if len(equal) < _KEPT:
            equal.update(zip(cells, cells, strict=True))
        if len(cells) < width:
            short[last] = len(cells)
            cells += [""] * (width - len(cells))
        elif len(cells) > width:
            surplus[last] = tuple(cells[width:])
        numbers.append(last)
        for column, cell in zip(columns, cells, strict=False):
            column.append(equal.get(cell, cell))
    index = pd.Index(numbers, dtype="int64")
    # Each list is let go before the next column is made.
    columns.reverse()
    frame = pd.DataFrame({at: pd.Series(columns.pop(), index, dtype="str") for at in range(width)}, index)
    blank_rows = last - (sheet.layout.header_row or 0) - len(numbers)
    return replace(sheet, rows=frame, blank_rows=blank_rows, short=short, surplus=surplus)


def _best_row(rows: Sequence[NumberedRow], score: Score) -> tuple[tuple[Fit, bool, int], int]:
    """Return how well the best row for a header fits, the first of equals, and its number."""
    widths = Counter(_filled(cells) for _, cells in rows)
    # The most frequent number of filled cells; of equally frequent ones, the highest.
    usual = max(widths, key=lambda width: (widths[width], width), default=0)
    fits = [
        ((score(cells), _filled(cells) > 1 and _filled(cells) * 2 > usual, -place), number)
        for place, (number, cells) in enumerate(rows[:_HEADER_WITHIN])
    ]
    return max(fits, default=(((False, 0), False, 0), 0))


def _filled(cells: Iterable[str]) -> int:
    return sum(bool(cell and not cell.isspace()) for cell in cells)


def has_content(cells: Sequence[str]) -> bool:
    """Return whether a row has anything but spaces."""
    if cells and cells[0] and not cells[0].isspace():
        return True
    text = "".join(cells)
    return bool(text) and not text.isspace()
