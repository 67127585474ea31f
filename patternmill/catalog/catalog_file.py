"""A file as it was read: its header, which column is what, and its rows under the numbers of a spreadsheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import Problem
from patternmill.catalog.rows import Columns, is_blank, tidy
from patternmill.text import plain

#: The name in a run's options under which the layout of its input is on record.
READING = "reading"
#: The formats of workbooks, as they are on record there.
WORKBOOK_FORMATS = ("Excel workbook", "OpenDocument spreadsheet")

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}

NumberedRow = tuple[int, tuple[str, ...]]
#: A row's cells by the contract's columns; what is blank is not in it.
Texts = Mapping[str, str]


class SheetChoices(TypedDict, total=False):
    """How a mapping says that a file is read; else it is read as it shows itself."""

    #: Of bytes that are neither UTF-8 nor UTF-16 with its mark.
    encoding: str
    #: Of a workbook: the worksheet's name.
    worksheet: str
    #: The number of the row that names the columns, as a spreadsheet shows it.
    header: int
    delimiter: str


NO_CHOICES: SheetChoices = {}


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """How a file was read: enough for a person to see whether that is what is meant."""

    #: What the file is, as people call it: `CSV`, `Excel workbook`.
    format: str
    #: Of the file as it was, in hexadecimal: the catalog's own bytes may be a conversion of it.
    sha256: str
    #: Of text files.
    encoding: str | None = None
    delimiter: str | None = None
    #: Of workbooks.
    worksheet: str | None = None
    header_row: int | None = None

    @property
    def text(self) -> str:
        """`Excel workbook, worksheet “Artikel”, header in row 3`."""
        parts = (
            self.format,
            f"worksheet “{plain(self.worksheet)}”" if self.worksheet is not None else None,
            f"columns separated by {DELIMITERS.get(self.delimiter, self.delimiter)}"
            if self.delimiter
            else None,
            self.encoding and self.encoding.removesuffix("-sig").upper(),
            f"header in row {self.header_row}" if (self.header_row or 1) > 1 else None,
        )
        return ", ".join(filter(None, parts))

    def on_record(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


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
    encoding: str
    header: tuple[str, ...]
    columns: Columns
    records: tuple[Record, ...] = field(repr=False)
    #: Rows without anything in them, which are skipped.
    blank_rows: int
    raw: bytes = field(repr=False)
    #: By which `columns` were found; the header stays as it is in the file.
    mapping: ColumnMapping = NO_MAPPING
    #: How it was read; None for CSV that was read as it is.
    layout: SheetLayout | None = None
    #: By row number: cells that are displayed otherwise than they are.
    faults: Mapping[int, tuple[Problem, ...]] = field(default_factory=dict, repr=False)
    #: By row number: what the file itself says, where a person has corrected it, and the correction counts.
    own_texts: Mapping[int, Texts] = field(default_factory=dict, repr=False)
    #: In sentences: what a person may not expect of how it was read.
    notes: tuple[str, ...] = ()

    def texts_in(self, index: int | None) -> frozenset[str]:
        """What the rows have in a column, tidied; blank cells are not in it."""
        if index is None:
            return frozenset()
        cells = {record.cells[index] for record in self.records if index < len(record.cells)}
        return frozenset(tidy(cell) for cell in cells if not is_blank(cell))
