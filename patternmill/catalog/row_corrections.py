"""What people corrected in results files, found as differences of rows.

A correction belongs to one cell of the contract's columns, and holds only for the very text that it corrected.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from patternmill.catalog.catalog_file import CatalogFile, Record
from patternmill.catalog.rows import header_key, is_blank, sku_key
from patternmill.text import contrasted

#: In place of a column: the cells for which the header has no column, as JSON; or how many cells a short row has.
SHAPE = "cells"


class CorrectionEnd(StrEnum):
    """Why a correction is no longer merged."""

    #: The source has the corrected text itself.
    IN_SOURCE = "in_source"
    #: The source has a third text, which counts.
    SOURCE_CHANGED = "source_changed"
    #: The same cell was corrected anew, or back.
    REPLACED = "replaced"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class Correction:
    """One cell, from the source's text to a person's. Times are Unix seconds."""

    #: What identifies the row in the source, and once it is corrected.
    source_row: str
    row: str
    #: The corrected row's; empty where it has none yet.
    sku: str
    #: The contract's name of the column, or SHAPE.
    column: str
    was: str
    value: str
    #: The run whose input had it.
    run_id: str = ""
    at: float = 0.0
    ended_at: float | None = None
    end: CorrectionEnd | None = None

    def __str__(self) -> str:
        return f"{self.sku or 'a row without a sku'}, {self.changed()}"

    def changed(self) -> str:
        old, new = contrasted(self.was, self.value)
        return f"{self.column} {old if self.was else 'empty'} -> {new if self.value else 'empty'}"


@dataclass(frozen=True)
class Overlay:
    """What became of a catalog's corrections in one reading of its source."""

    merged: tuple[Correction, ...] = ()
    #: What a results file that comes back corrects.
    found: tuple[Correction, ...] = ()
    #: Those that the source has overtaken, with the reason.
    ended: tuple[tuple[Correction, CorrectionEnd], ...] = ()


NO_OVERLAY = Overlay()


@dataclass(frozen=True, slots=True)
class RowCells:
    """One row's cells of the contract's columns, with ends of lines and outer spaces as they count."""

    #: By its sku; empty where it has none of its own.
    key: str
    cells: Mapping[str, str]


def cells_of_rows(file: CatalogFile) -> list[RowCells]:
    """The rows of a file in their order."""
    reader = _CellReader(file)
    cells = [reader.cells(record) for record in file.records]
    keys = [sku_key(row["sku"]) for row in cells]
    count = Counter(keys)
    named = (row_key(key) if count[key] == 1 and not is_blank(key) else "" for key in keys)
    return [RowCells(key, row) for key, row in zip(named, cells, strict=True)]


def row_key(sku: str) -> str:
    """What identifies the row of a sku, as its corrections have it."""
    return f"sku:{sku_key(sku)}"


def differences(old: RowCells, new: RowCells) -> Iterator[Correction]:
    """The cells that a person changed in a row of an earlier run: never its shape alone, which results do not show."""
    changed = [name for name, value in new.cells.items() if value != old.cells.get(name, "")]
    for name in changed if changed != [SHAPE] else ():
        yield Correction(old.key, new.key, new.cells["sku"], name, old.cells.get(name, ""), new.cells[name])


def composed(
    known: Sequence[Correction], found: Iterable[Correction]
) -> tuple[list[Correction], list[Correction]]:
    """The corrections to add, and those of the known ones that they replace. `known`: with those that ended.

    A cell that was corrected before leads from the source's text to the newest one, or back to nothing; the same
    file once more corrects nothing anew.
    """
    active = [one for one in known if one.end is None]
    cells = {(one.source_row, one.column): one for one in active}
    cells |= {(one.row, one.column): one for one in active}
    source_rows = {one.row: one.source_row for one in active}
    replaced_texts = {
        (one.row, one.column, one.value): one.was for one in known if one.end is CorrectionEnd.REPLACED
    }
    added, replaced = [], []
    for one in found:
        before = cells.get((one.source_row, one.column))
        if before is not None and (before.row, before.value) == (one.row, one.value):
            continue
        was = replaced_texts.get((one.source_row, one.column, one.was), one.was)
        if before is not None:
            replaced.append(before)
            was = before.was if before.value == one.was else was
        if was != one.value:
            added.append(replace(one, source_row=source_rows.get(one.source_row, one.source_row), was=was))
    return added, replaced


class _CellReader:
    """Reads the contract's cells of one file's records."""

    def __init__(self, file: CatalogFile) -> None:
        self._width = len(file.header)
        self.indexes = column_indexes(file)

    def cells(self, record: Record) -> dict[str, str]:
        cells = record.cells
        known = {name: _text(cells[i]) if i < len(cells) else "" for name, i in self.indexes.items()}
        return known | {SHAPE: self._shape(cells)}

    def _shape(self, cells: Sequence[str]) -> str:
        if len(cells) > self._width:
            return json.dumps(cells[self._width :], ensure_ascii=False)
        return f"{len(cells)} cells" if len(cells) < self._width else ""


def column_indexes(file: CatalogFile) -> dict[str, int]:
    """The contract's columns of a file, by their names in lower case."""
    columns, header = file.columns, file.mapping.applied(file.header)
    single = {
        "sku": columns.sku,
        "prompt": columns.prompt,
        "category": columns.category,
        "selections": columns.selections,
        "reference": columns.reference,
        "model": columns.model,
    }
    several = {header_key(header[one.index]): one.index for one in (*columns.options, *columns.refinements)}
    return {name: index for name, index in single.items() if index is not None} | several


def _text(cell: str) -> str:
    """As it is compared: a spreadsheet that saves a file may change ends of lines and outer spaces."""
    return cell.replace("\r\n", "\n").replace("\r", "\n").strip()
