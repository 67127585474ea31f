"""A file as it was read: its header, which column is what, and its rows under the numbers of a spreadsheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.problems import Problem
from patternmill.catalog.rows import Columns, is_blank, tidy
from patternmill.catalog.sheet_choices import SheetLayout

NumberedRow = tuple[int, tuple[str, ...]]
#: A row's cells by the contract's columns; what is blank is not in it.
Texts = Mapping[str, str]


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

    @property
    def runs(self) -> tuple[str, ...]:
        """The IDs in a results file's column `run`, each once."""
        index = self.columns.run
        if index is None:
            return ()
        cells = (record.cells[index].strip() for record in self.records if index < len(record.cells))
        return tuple(dict.fromkeys(filter(None, cells)))
