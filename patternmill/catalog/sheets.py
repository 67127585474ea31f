"""Sheets of every format: the bytes of a file become the rows of a catalog, or the file is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.csv_reader import CatalogFile, NumberedRow, parse_catalog, stable_bytes
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.sheet_choices import NO_CHOICES, SheetChoices, SheetLayout
from patternmill.text import plain

_LONGEST_NAME = 1000


def read_catalog(
    path: Path,
    *,
    choices: SheetChoices = NO_CHOICES,
    mapping: ColumnMapping = NO_MAPPING,
    quoting: bool = True,
) -> CatalogFile:
    """Read and parse the whole file, or raise InputRefused with one of the codes of FileCode.

    `quoting`: the refusal of a file that is no catalog may quote its first row.
    """
    reading = Reading(plain(path.name, _LONGEST_NAME))
    raw = stable_bytes(path, Path.read_bytes, reading)
    return parse_sheet(
        raw, name=path.name, choices=choices, mapping=mapping, reading=reading, quoting=quoting
    )


def parse_sheet(
    raw: bytes,
    *,
    name: str,
    reading: Reading,
    choices: SheetChoices = NO_CHOICES,
    mapping: ColumnMapping = NO_MAPPING,
    empty: bool = False,
    quoting: bool = True,
) -> CatalogFile:
    """The same from the bytes alone. `empty`: a header without rows is accepted."""
    return parse_catalog(
        raw,
        name=name,
        encoding=choices.encoding,
        mapping=mapping,
        empty=empty,
        reading=reading,
        quoting=quoting,
    )


@dataclass(frozen=True)
class Table:
    """A file's rows as texts, before anything is known of its columns."""

    name: str
    #: `header_row` is the likeliest of the candidates; the person may choose another.
    layout: SheetLayout
    #: Rows with something in them, by the numbers that a spreadsheet shows.
    rows: tuple[NumberedRow, ...]
    #: Rows that may name the columns, the likeliest first.
    header_rows: tuple[int, ...]
    #: What is displayed otherwise than it is, by row and index of the cell: a date, an error, a rounded number.
    unfit: Mapping[tuple[int, int], str]


def read_table(raw: bytes, name: str, choices: SheetChoices, *, reading: Reading | None = None) -> Table:
    """The rows of a file of any format, without a look at what its columns are called. Raises InputRefused."""
    raise NotImplementedError
