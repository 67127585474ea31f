"""Tables: the rows of a sheet as texts, under the numbers that its program shows, before anything is bought by them."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patternmill.catalog.catalog_file import NumberedRow
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import FileCode, Finding, RowCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.rows import Columns, column_letter, header_key
from patternmill.catalog.sheet_choices import SheetChoices, SheetLayout
from patternmill.sheets.csv_reader import has_content
from patternmill.text import plain, plural, shown

#: So many rows of a file are looked at for the one that names the columns.
_HEADER_WITHIN = 20
_FEWEST_COLUMNS = 3
_MOST_NAMED = 10
_UNMERGE = "unmerge these cells, and fill in each of them"


@dataclass(frozen=True, slots=True)
class Unfit:
    """A cell that is displayed otherwise than it is: a date, an error, a rounded number."""

    what: str
    remedy: str = "format the cell as Text and type it again"


#: Merged cells: the first row's number and the first column's index, and the last ones.
Area = tuple[int, int, int, int]


@dataclass(frozen=True)
class Sheet:
    """The rows of one worksheet, or of a file that is one."""

    #: Rows with something in them, by the numbers that a spreadsheet shows.
    rows: tuple[NumberedRow, ...] = field(repr=False)
    #: By the row's number and the cell's index.
    unfit: Mapping[tuple[int, int], Unfit] = field(default_factory=dict, repr=False)
    #: The same of texts with a line through them.
    struck: Collection[tuple[int, int]] = field(default=(), repr=False)
    #: By index.
    hidden_columns: Collection[int] = ()
    #: In sentences: what a person may not expect.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SheetFile:
    """A file that is to be read as a table, and how."""

    raw: bytes = field(repr=False)
    name: str
    #: Of the bytes, in hexadecimal.
    sha256: str
    choices: SheetChoices
    mapping: ColumnMapping
    reading: Reading
    #: A refusal may quote what is in the file.
    quoting: bool


@dataclass(frozen=True)
class Table:
    """A file's rows as texts, before anything is known of its columns."""

    name: str
    #: Its `header_row` is the one that was chosen, or the likeliest of the candidates.
    layout: SheetLayout
    sheet: Sheet
    #: Rows that may name the columns, the likeliest first.
    header_rows: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[NumberedRow, ...]:
        return self.sheet.rows

    @property
    def header(self) -> tuple[str, ...]:
        return next((cells for number, cells in self.rows if number == self.layout.header_row), ())

    @property
    def records(self) -> tuple[NumberedRow, ...]:
        """The rows below the header."""
        return tuple(row for row in self.rows if row[0] > (self.layout.header_row or 0))

    def with_header(self, row: int) -> Table:
        """The same table with the columns named by another row."""
        return replace(self, layout=replace(self.layout, header_row=row))

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

    def faults(self, columns: Columns) -> dict[int, tuple[Finding, ...]]:
        """By row: its cells that are not texts, in the columns that a catalog uses."""
        used, header = columns.used, self.header
        found: dict[int, list[Finding]] = {}
        for (row, index), unfit in self.sheet.unfit.items():
            if index in used and row > (self.layout.header_row or 0):
                message = f"{self.address(row, index)} holds {unfit.what}"
                finding = Finding(header[index], RowCode.NOT_TEXT, message, unfit.remedy)
                found.setdefault(row, []).append(finding)
        return {row: tuple(findings) for row, findings in found.items()}

    def struck_rows(self, columns: Columns) -> frozenset[int]:
        """Those whose sku or prompt has a line through it."""
        first = self.layout.header_row or 0
        return frozenset(
            row for row, index in self.sheet.struck if row > first and index in (columns.sku, columns.prompt)
        )

    def hidden_note(self, columns: Columns) -> tuple[str, ...]:
        """Of columns that a catalog uses: what is bought by them nobody sees."""
        hidden = sorted(columns.used.intersection(self.sheet.hidden_columns))
        if not hidden:
            return ()
        named = ", ".join(
            f"{shown(self.header[index])} ({column_letter(index)})" for index in hidden[:_MOST_NAMED]
        )
        return (
            f"{plural(len(hidden), 'column')} hidden in the worksheet, and read like the others: {named}.",
        )

    def address(self, row: int, index: int) -> str:
        """As spreadsheets write it: `Artikel!B7`; of other files the row alone has a meaning."""
        if self.layout.worksheet is None:
            return "the cell"
        return f"{plain(self.layout.worksheet)}!{column_letter(index)}{row}"


def table_of(
    sheet: Sheet, name: str, layout: SheetLayout, choices: SheetChoices, mapping: ColumnMapping = NO_MAPPING
) -> Table:
    """With its header found, or as it was chosen. Raises InputRefused when the file or the row chosen is empty."""
    if not sheet.rows:
        raise refusal(FileCode.EMPTY_FILE, f"{name} is empty.", "Is it the right file?")
    candidates = header_candidates(sheet.rows, mapping)
    chosen = choices.header_row or candidates[0]
    if chosen not in (number for number, _ in sheet.rows):
        raise refusal(
            FileCode.NO_KNOWN_COLUMNS,
            f"{name} has nothing in row {chosen}, which was named as its header.",
            "Name the row that holds the columns' names, as the spreadsheet numbers it.",
        )
    above = sum(number < chosen and _filled(cells) >= _FEWEST_COLUMNS for number, cells in sheet.rows)
    skipped = (f"{plural(above, 'row')} of a table above the header not read.",) if above else ()
    return Table(name, replace(layout, header_row=chosen), sheet, candidates, (*sheet.notes, *skipped))


def names_columns(cells: Sequence[str], mapping: ColumnMapping = NO_MAPPING) -> bool:
    """Whether the row names all that a catalog needs."""
    keys = {header_key(cell) for cell in mapping.applied(cells)}
    return keys >= {"sku", "prompt"} and bool(keys & {"category", "category_id"})


def header_candidates(rows: Sequence[NumberedRow], mapping: ColumnMapping = NO_MAPPING) -> tuple[int, ...]:
    """Rows that may name the columns, the likeliest first; one that names all that is needed is the only one."""
    first = rows[:_HEADER_WITHIN]
    exact = next((number for number, cells in first if names_columns(cells, mapping)), None)
    if exact is not None:
        return (exact,)
    usual = usual_width(rows)
    wide = [number for number, cells in first if _filled(cells) * 2 > usual]
    rest = [number for number, _ in first if number not in wide]
    return (*wide, *rest)


def usual_width(rows: Iterable[NumberedRow]) -> int:
    """How many cells most rows have something in, or more where as many rows have that."""
    counted = Counter(_filled(cells) for _, cells in rows)
    return max(counted, key=lambda width: (counted[width], width), default=0)


def looks_tabular(sheet: Sheet) -> bool:
    """A header and a row below it, in as many columns as a catalog needs at least."""
    return sum(_filled(cells) >= _FEWEST_COLUMNS for _, cells in sheet.rows[: _HEADER_WITHIN * 2]) > 1


def rectangular(rows: Iterable[tuple[int, Sequence[str]]], reading: Reading) -> tuple[NumberedRow, ...]:
    """The rows with something in them, all as wide as the widest: only in text files may a row lack cells."""
    filled = [(number, cells) for number, cells in rows if has_content(cells)]
    width = max((_last(cells) for _, cells in filled), default=0)
    reading.check_columns(width)
    reading.check_size(sum(len(cell) for _, cells in filled for cell in cells))
    return tuple(_padded(filled, width))


def merged_cells(
    areas: Iterable[Area], rows: Sequence[NumberedRow], reading: Reading
) -> dict[tuple[int, int], Unfit]:
    """The cells that people see the text of another cell in: what is not written in them is not taken for empty."""
    found: dict[tuple[int, int], Unfit] = {}
    numbers = [number for number, _ in rows]
    for top, left, bottom, right in areas:
        inside = rows[bisect_left(numbers, top) : bisect_right(numbers, bottom)]
        if not inside or inside[0][0] != top or not "".join(inside[0][1][left : left + 1]).strip():
            continue
        width = min(right + 1, len(inside[0][1])) - left
        if len(found) + len(inside) * width > reading.limits.cells:
            raise reading.too_large("has too many merged cells")
        place = f"{column_letter(left)}{top}:{column_letter(right)}{bottom}"
        unfit = Unfit(f"no text of its own, as it is merged into {place}", _UNMERGE)
        found |= {(number, index): unfit for number, _ in inside for index in range(left, left + width)}
        del found[top, left]
    return found


def hidden_note(hidden: Collection[int], rows: Iterable[NumberedRow]) -> tuple[str, ...]:
    """A row that a filter hides is a row all the same, and is bought."""
    read = [str(number) for number, _ in rows if number in hidden]
    if not read:
        return ()
    named = ", ".join(read[:_MOST_NAMED]) + (" and more" if len(read) > _MOST_NAMED else "")
    return (f"{plural(len(read), 'row')} hidden in the worksheet, and read like the others: {named}.",)


def _padded(rows: Iterable[tuple[int, Sequence[str]]], width: int) -> Iterator[NumberedRow]:
    for number, cells in rows:
        yield number, (*cells[:width], *[""] * (width - len(cells)))


def _last(cells: Sequence[str]) -> int:
    width = len(cells)
    while width and not cells[width - 1]:
        width -= 1
    return width


def _filled(cells: Sequence[str]) -> int:
    return sum(bool(cell and not cell.isspace()) for cell in cells)
