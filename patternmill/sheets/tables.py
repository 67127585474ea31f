"""Tables: the rows of a sheet as texts, under the numbers that its program shows, before anything is bought by them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patternmill.catalog.catalog_file import NumberedRow, SheetLayout
from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.problems import FileCode, Problem, RowCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.rows import Columns, column_letter, header_key, is_catalog_column, missing_columns
from patternmill.sheets.csv_reader import has_content
from patternmill.text import plain, plural

#: So many rows of a file are looked at for the one that names the columns.
_HEADER_WITHIN = 20
_FEWEST_COLUMNS = 3
#: Whether a row names all that a catalog needs, and how many columns it names.
Fit = tuple[bool, int]
Score = Callable[[Sequence[str]], Fit]
Unfit = Mapping[int, Mapping[int, str]]
_WRITE_AS_TEXT = "format the column as Text and type it again"
#: By how what a cell holds begins.
_REMEDIES = {
    "the error": "correct the formula, or type what belongs there",
    "a formula": "let its program calculate the sheet, and save it again",
}


@dataclass(frozen=True)
class Table:
    """A file's rows as texts, or one worksheet's, with the row that names their columns."""

    name: str
    layout: SheetLayout
    #: Rows with something in them, by the numbers that a spreadsheet shows.
    rows: tuple[NumberedRow, ...] = field(repr=False)
    #: How well the header names what a catalog needs.
    fit: Fit = (False, 0)
    #: By the row's number and the cell's index: what a cell is that is no text; empty where it is a plain number.
    unfit: Unfit = field(default_factory=dict, repr=False)
    #: In sentences: what a person may not expect.
    notes: tuple[str, ...] = ()

    @property
    def header(self) -> tuple[str, ...]:
        return next((cells for number, cells in self.rows if number == self.layout.header_row), ())

    @property
    def records(self) -> tuple[NumberedRow, ...]:
        """The rows below the header."""
        return tuple(row for row in self.rows if row[0] > (self.layout.header_row or 0))

    def canonical(self) -> bytes:
        """As CSV in UTF-8 with commas, in which each row keeps its number; what stands above the header is blank."""
        text = io.StringIO(newline="")
        writer, following = csv.writer(text, lineterminator="\r\n"), 1
        for number, cells in self.rows:
            if number < (self.layout.header_row or 0):
                continue
            text.write("\r\n" * (number - following))
            writer.writerow(cells)
            following = number + 1
        return text.getvalue().encode()

    def faults(self, columns: Columns) -> dict[int, tuple[Problem, ...]]:
        """By row: its cells that are not texts, in the columns that a catalog uses."""
        first, found = self.layout.header_row or 0, dict[int, tuple[Problem, ...]]()
        for row, cells in self.unfit.items() if columns.used else ():
            for index in sorted(cells.keys() & columns.used) if row > first else ():
                if fault := self.fault(row, index, is_sku=index == columns.sku):
                    problem = Problem(self.header[index], RowCode.NOT_TEXT, *fault)
                    found[row] = (*found.get(row, ()), problem)
        return found

    def fault(self, row: int, index: int, *, is_sku: bool) -> tuple[str, str] | None:
        """What a cell holds that is no text (`Artikel!B7 holds the date 2026-05-01, not text`), and the remedy.

        A sku that is a number has lost its zeros: `00012` reads 12.
        """
        what = self.unfit.get(row, {}).get(index)
        if what:
            remedies = (remedy for begin, remedy in _REMEDIES.items() if what.startswith(begin))
            return f"{self._address(row, index)} holds {what}, not text", next(remedies, _WRITE_AS_TEXT)
        if what is None or not is_sku:
            return None
        return f"{self._address(row, index)} holds a number, of which leading zeros are lost", _WRITE_AS_TEXT

    def _address(self, row: int, index: int) -> str:
        """As spreadsheets write it: `Artikel!B7`; of other files the row alone has a meaning."""
        if self.layout.worksheet is None:
            return "the cell"
        return f"{plain(self.layout.worksheet)}!{column_letter(index)}{row}"


def table_of(
    rows: Sequence[NumberedRow],
    name: str,
    layout: SheetLayout,
    header: int | None,
    score: Score,
    unfit: Unfit | None = None,
) -> Table:
    """With its header found, or as it was chosen. Raises InputRefused when the file or the row chosen is empty."""
    if not rows:
        raise refusal(FileCode.EMPTY_FILE, f"{name} is empty.", "Is it the right file?")
    cells = dict(rows)
    number = header or best_row(rows, score)[1]
    if number not in cells:
        raise refusal(
            FileCode.MISSING_COLUMN,
            f"{name} has nothing in row {number}, which its mapping names as the header.",
            "Under [reading], name the row that holds the columns' names, as the spreadsheet numbers it.",
        )
    above = sum(line < number and _filled(row) >= _FEWEST_COLUMNS for line, row in rows)
    skipped = (f"{plural(above, 'row')} of a table above the header not read.",) if above else ()
    layout = replace(layout, header_row=number)
    return Table(name, layout, tuple(rows), score(cells[number]), unfit or {}, skipped)


def best_row(rows: Sequence[NumberedRow], score: Score) -> tuple[tuple[Fit, bool, int], int]:
    """Of the rows that may name the columns the one that fits best, the first of equals; how well, and its number."""
    usual = _usual_width(rows)
    fits = [
        ((score(cells), _filled(cells) > 1 and _filled(cells) * 2 > usual, -place), number)
        for place, (number, cells) in enumerate(rows[:_HEADER_WITHIN])
    ]
    return max(fits, default=(((False, 0), False, 0), 0))


def contract_score(mapping: ColumnMapping) -> Score:
    """By the names that are certain: the contract's, and those of the mapping."""

    def score(cells: Sequence[str]) -> Fit:
        keys = [header_key(cell) for cell in mapping.applied(cells)]
        known = sum(is_catalog_column(key) for key in keys)
        return not missing_columns(keys), known

    return score


def _usual_width(rows: Iterable[NumberedRow]) -> int:
    """How many cells most rows have something in, or more where as many rows have that."""
    counted = Counter(_filled(cells) for _, cells in rows)
    return max(counted, key=lambda width: (counted[width], width), default=0)


def rectangular(rows: Iterable[tuple[int, Sequence[str]]], reading: Reading) -> tuple[NumberedRow, ...]:
    """The rows with something in them, all as wide as the widest: only in text files may a row lack cells."""
    filled = list(filter(has_content, rows))
    width = max((_last(cells) for _, cells in filled), default=0)
    reading.check_columns(width)
    reading.check_rows(max((number for number, _ in filled), default=0))
    return tuple((number, (*cells[:width], *[""] * (width - len(cells)))) for number, cells in filled)


def _last(cells: Sequence[str]) -> int:
    width = len(cells)
    while width and not cells[width - 1]:
        width -= 1
    return width


def _filled(cells: Sequence[str]) -> int:
    return sum(bool(cell and not cell.isspace()) for cell in cells)
