"""Merges what people corrected into the rows of a source, which keep their numbers, as long as that lasts."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.problems import Finding
from patternmill.catalog.row_corrections import (
    NO_OVERLAY,
    SHAPE,
    Correction,
    CorrectionEnd,
    Overlay,
    cells_of_rows,
    column_indexes,
)
from patternmill.catalog.rows import BYTE_ORDER_MARK
from patternmill.sheets.csv_reader import parse_catalog


def merge(file: CatalogFile, corrections: Iterable[Correction]) -> tuple[CatalogFile, Overlay]:
    """The file with what holds of the corrections; its rows keep their numbers."""
    of_row: dict[str, list[Correction]] = defaultdict(list)
    for one in corrections:
        of_row[one.source_row].append(one)
    if not of_row:
        return file, NO_OVERLAY
    merged: list[Correction] = []
    ended: list[tuple[Correction, CorrectionEnd]] = []
    changed: dict[int, dict[str, str]] = {}
    rows = cells_of_rows(file)
    for record, row in zip(file.records, rows, strict=True):
        for one in of_row.get(row.key, ()):
            found = row.cells.get(one.column, "")
            if found == one.was:
                merged.append(one)
                changed.setdefault(record.line, {})[one.column] = one.value
            else:
                in_source = found == one.value
                ended.append((one, CorrectionEnd.IN_SOURCE if in_source else CorrectionEnd.SOURCE_CHANGED))
    overlay = Overlay(tuple(merged), ended=tuple(ended))
    return (_rewritten(file, changed) if changed else file), overlay


def _rewritten(file: CatalogFile, changed: Mapping[int, Mapping[str, str]]) -> CatalogFile:
    """The file with other cells, by row number; columns that it lacks are added on the right."""
    indexes = column_indexes(file)
    named = dict.fromkeys(name for cells in changed.values() for name in cells)
    added = [name for name in named if name != SHAPE and name not in indexes]
    width = len(file.header)
    indexes |= {name: width + number for number, name in enumerate(added)}
    text, header = io.StringIO(newline=""), None
    writer = csv.writer(text, lineterminator="\r\n")
    lines = io.StringIO(file.raw.decode(file.encoding), newline="")
    for number, cells in enumerate(csv.reader(lines, strict=True), 1):
        if header is None and any(map(str.strip, cells)):
            header = cells
            writer.writerow([*cells, *added])
        elif number in changed:
            writer.writerow(_corrected(cells, changed[number], indexes, width + len(added), len(added)))
        else:
            # A row that lacks cells keeps lacking them, and one with too many has too many.
            writer.writerow([*cells, *([""] * len(added) if len(cells) >= width else [])])
    raw = BYTE_ORDER_MARK + text.getvalue().encode("utf-8")
    merged = parse_catalog(raw, name=file.name, mapping=file.mapping, empty=True)
    places = {number: {indexes[name] for name in cells if name != SHAPE} for number, cells in changed.items()}
    faults = _left(file, places)
    return replace(merged, layout=file.layout, faults=faults, notes=file.notes)


def _left(file: CatalogFile, places: Mapping[int, Collection[int]]) -> dict[int, tuple[Finding, ...]]:
    """The faults of cells that were not corrected."""
    names = {number: {file.header[i] for i in of if i < len(file.header)} for number, of in places.items()}
    left = {
        number: tuple(one for one in faults if one.column not in names.get(number, ()))
        for number, faults in file.faults.items()
    }
    return {number: faults for number, faults in left.items() if faults}


def _corrected(
    cells: Sequence[str], changes: Mapping[str, str], indexes: Mapping[str, int], width: int, added: int
) -> list[str]:
    """A row that lacks cells, or has too many, does so until that is corrected too."""
    fitted = list(cells)
    if SHAPE in changes or len(cells) >= width - added:
        fitted += [""] * max(added, width - len(cells))
    for name, value in changes.items():
        if name != SHAPE and indexes[name] < len(fitted):
            fitted[indexes[name]] = value
    return fitted[:width] if SHAPE in changes else fitted
