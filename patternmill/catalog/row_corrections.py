"""What people corrected in results files, found as differences of rows.

A correction belongs to one cell of the contract's columns, and holds only for the very text that it corrected.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from patternmill.catalog.catalog_file import CatalogFile, Record
from patternmill.catalog.problems import RowCode
from patternmill.catalog.rows import header_key, is_blank, sku_key
from patternmill.text import contrasted

#: In place of a column: the cells for which the header has no column, as JSON; or how many cells a short row has.
SHAPE = "cells"
_BY_SKU = "sku:"
_MISFITS = frozenset({RowCode.SURPLUS_CELLS.value, RowCode.MISSING_CELLS.value})


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
    #: Those of skus of rows that are known by their cells alone, and no longer have these cells.
    unfound: tuple[Correction, ...] = ()
    #: What a results file that comes back corrects.
    found: tuple[Correction, ...] = ()
    #: By position in that file: the row of an earlier run that it replaces, where their skus do not show it.
    replaces: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    #: Those that the source has overtaken, with the reason.
    ended: tuple[tuple[Correction, CorrectionEnd], ...] = ()


NO_OVERLAY = Overlay()


@dataclass(frozen=True, slots=True)
class RowCells:
    """One row's cells of the contract's columns, with ends of lines and outer spaces as they count."""

    #: Its sku; or what it has, where it has no sku of its own.
    key: str
    cells: Mapping[str, str]
    #: A refused row's sku may be corrected like any cell; an accepted row's is its identity.
    was_refused: bool = False

    @property
    def has_own_sku(self) -> bool:
        return self.key.startswith(_BY_SKU)

    @property
    def content_key(self) -> str:
        """The key of a row with these cells that has no sku of its own."""
        return _digest(self.cells)


def cells_of_rows(file: CatalogFile) -> list[RowCells]:
    """The rows of a file in their order."""
    reader = _CellReader(file)
    cells = [reader.cells(record) for record in file.records]
    keys = [sku_key(row["sku"]) for row in cells]
    count, seen = Counter(keys), Counter[str]()
    rows = []
    for row, key in zip(cells, keys, strict=True):
        named = f"{_BY_SKU}{key}" if count[key] == 1 and not is_blank(key) else _digest(row)
        seen[named] += 1
        rows.append(RowCells(named if seen[named] == 1 else f"{named}#{seen[named]}", row))
    return rows


def paired(before: Sequence[RowCells], now: Sequence[RowCells]) -> Iterator[tuple[RowCells, RowCells]]:
    """Each row with what it was in an earlier run, where it was there.

    By its sku; a refused row whose sku changed by all else; the rest by their order.
    """
    by_key = {row.key: row for row in before}
    left_now = []
    for row in now:
        old = by_key.pop(row.key, None)
        if old is not None:
            yield old, row
        else:
            left_now.append(row)
    left = [row for row in by_key.values() if row.was_refused]
    without_sku: dict[str, list[RowCells]] = defaultdict(list)
    for old in left:
        without_sku[_but_sku(old)].append(old)
    rest = []
    for row in left_now:
        same = without_sku.get(_but_sku(row))
        if same:
            yield same.pop(0), row
        else:
            rest.append(row)
    unpaired = [old for olds in without_sku.values() for old in olds]
    order = {id(old): place for place, old in enumerate(left)}
    unpaired.sort(key=lambda old: order[id(old)])
    if len(unpaired) == len(rest):
        yield from (pair for pair in zip(unpaired, rest, strict=True) if _have_something_in_common(*pair))


def differences(old: RowCells, new: RowCells) -> Iterator[Correction]:
    """The cells that a person changed in a row of an earlier run."""
    for column, value in new.cells.items():
        was = old.cells.get(column, "")
        if value != was:
            yield Correction(old.key, new.key, new.cells["sku"], column, was, value)


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
        self._error_code = file.result_index("error_code")

    def cells(self, record: Record) -> dict[str, str]:
        cells = record.cells
        known = {name: _text(cells[i]) if i < len(cells) else "" for name, i in self.indexes.items()}
        return known if self._is_still_misfit(cells) else known | {SHAPE: self._shape(cells)}

    def _shape(self, cells: Sequence[str]) -> str:
        if len(cells) > self._width:
            return json.dumps(cells[self._width :], ensure_ascii=False)
        return f"{len(cells)} cells" if len(cells) < self._width else ""

    def _is_still_misfit(self, cells: Sequence[str]) -> bool:
        """Results have as many cells in each row as the header, whatever its row had."""
        index = self._error_code
        return index is not None and index < len(cells) and cells[index].strip() in _MISFITS


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


def _digest(cells: Mapping[str, str]) -> str:
    content = json.dumps(sorted((name, text) for name, text in cells.items() if text), ensure_ascii=False)
    return f"row:{hashlib.sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _but_sku(row: RowCells) -> str:
    return _digest({name: text for name, text in row.cells.items() if name not in ("sku", SHAPE)})


def _have_something_in_common(old: RowCells, new: RowCells) -> bool:
    return any(text and old.cells.get(name) == text for name, text in new.cells.items())
