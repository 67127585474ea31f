"""Reads the sheet of a catalog: its rows, the meaning of its columns, and what a mapping says of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from patternmill.planning.rows import is_blank, tidy
from patternmill.reading import FileCode, Reading, refusal
from patternmill.tables.columns import (
    SURPLUS_PREFIX,
    Columns,
    column_letter,
    is_results_header,
    read_columns,
)
from patternmill.tables.mapping import AS_SHOWN, NO_MAPPING, SheetMapping
from patternmill.tables.sheet import Sheet, parse_sheet
from patternmill.tables.written import restore
from patternmill.text import shown


@dataclass(frozen=True)
class Catalog:
    """A sheet together with the meaning of its columns."""

    sheet: Sheet
    columns: Columns
    mapping: SheetMapping

    def texts_in(self, column: int | None) -> frozenset[str]:
        """Return the different texts of a column, tidied and without blank cells."""
        cells = () if column is None else self.sheet.column(column).unique()
        return frozenset(tidy(cell) for cell in cells if not is_blank(cell))


def read_catalog(
    raw: bytes,
    name: str,
    mapping: SheetMapping = NO_MAPPING,
    limits: Reading | None = None,
    *,
    empty: bool = False,
) -> Catalog:
    """Return the catalog in a file's bytes; `limits` is None for bytes that were accepted before.

    `empty`: whether a header without rows is accepted. Raises InputRefused with one of the codes of FileCode.
    """
    sheet = parse_sheet(raw, name, mapping.score, mapping.reading, limits)
    is_results_file = is_results_header(sheet.header)
    if is_results_file:
        sheet = _restored(sheet)
    if mapping.columns:
        mapping.refuse_gone(sheet.header, sheet.name)
    columns = read_columns(sheet.header, mapping.applied(sheet.header), sheet.name)
    if sheet.rows.empty and not empty:
        message = f"{sheet.name} has a header in row {sheet.layout.header_row}, but nothing below it."
        raise refusal(FileCode.HEADER_ONLY, message, "Add the rows.")
    if is_results_file:
        sheet = _with_surplus(sheet, columns)
    else:
        _refuse_reserved(sheet, columns)
    if mapping.reading.sku_numbers == AS_SHOWN:
        sheet = _with_skus_as_shown(sheet, columns.sku)
    return Catalog(sheet, columns, mapping)


def own_cells(catalog: Catalog) -> pd.DataFrame:
    """Return the person's own columns under their names, by row number, followed by the surplus cells of rows."""
    sheet, kept = catalog.sheet, catalog.columns.kept
    header = catalog.mapping.repeated(sheet.header)
    surplus = pd.DataFrame.from_dict(dict(sheet.surplus), orient="index", dtype=object)
    cells = sheet.rows[list(kept)]
    if sheet.surplus:
        cells = pd.concat([cells, surplus.reindex(cells.index).fillna("")], axis=1)
    numbers = range(1, len(surplus.columns) + 1)
    names = [*(header[at] for at in kept), *(f"{SURPLUS_PREFIX}{number}" for number in numbers)]
    return cells.set_axis(pd.Index(names, dtype=object), axis=1)


def _restored(sheet: Sheet) -> Sheet:
    """Return a results file's sheet as it was before its cells were defused."""
    rows = sheet.rows.map(restore)
    surplus = {number: tuple(map(restore, cells)) for number, cells in sheet.surplus.items()}
    return replace(sheet, header=tuple(map(restore, sheet.header)), rows=rows, surplus=surplus)


def _with_surplus(sheet: Sheet, columns: Columns) -> Sheet:
    """Return a results file's sheet in which the cells of its surplus columns are surplus cells of their rows again."""
    surplus = dict(sheet.surplus)
    for number, *cells in sheet.rows[list(columns.surplus)].itertuples(name=None) if columns.surplus else ():
        while cells and not cells[-1].strip():
            cells.pop()
        if cells:
            surplus[number] = (*cells, *surplus.get(number, ()))
    return replace(sheet, surplus=surplus)


def _refuse_reserved(sheet: Sheet, columns: Columns) -> None:
    """Refuse a file that is no results file and has text in a result column, as the text would be lost."""
    for position in columns.results:
        if sheet.column(position).str.strip().ne("").any():
            raise refusal(
                FileCode.RESERVED_COLUMN,
                f"Column {column_letter(position)} of {sheet.name} has the name of a result: "
                f"{shown(sheet.header[position])}.",
                "Rename it, or delete it; a results file is known by its column `run`, which this file lacks.",
            )


def _with_skus_as_shown(sheet: Sheet, sku: int) -> Sheet:
    """Return the sheet with numbers in the column of skus as its program shows them."""
    shown_skus = {place: text for place, (_, text) in sheet.unfit.items() if place[1] == sku and text}
    rows = sheet.rows.copy()
    rows.loc[[row for row, _ in shown_skus], sku] = list(shown_skus.values())
    unfit = {place: odd for place, odd in sheet.unfit.items() if place not in shown_skus}
    return replace(sheet, rows=rows, unfit=unfit)
