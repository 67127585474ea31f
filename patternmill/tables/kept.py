"""Rows of a catalog as a sheet that was checked: what a retry makes, and what `results` writes, read no file."""

import json
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter, itemgetter

import pandas as pd

from patternmill.states import CatalogRow
from patternmill.tables.checks import PROBLEM, ROW, Checked
from patternmill.tables.columns import Columns
from patternmill.tables.results import dumps, formats_of
from patternmill.tables.sheet import SURPLUS, Sheet
from patternmill.tables.workbook import Kind


def header_of(checked: Checked) -> str:
    """Return the header that the rows of a sheet are kept under: a JSON array."""
    return dumps(list(map(checked.columns.header.__getitem__, checked.columns.carried)))


def kept_cells(checked: Checked) -> dict[int, str]:
    """Return the cells of each row as they are kept: a JSON array in the header's order.

    A cell that the row lacks is null; what it has beyond its header is a last element of its own; a number of a
    workbook is an array of its text and its format.
    """
    frame = checked.sheet.rows[[*checked.columns.carried, SURPLUS]]
    cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    for (line, at), code in formats_of(checked, frame).items():
        cells[line][at] = [cells[line][at], code]
    for texts in cells:
        if texts[-1] is None:
            texts.pop()
    return dict(zip(frame.index.tolist(), map(dumps, cells), strict=True))


def kept_table(
    rows: Sequence[CatalogRow],
) -> tuple[tuple[str, ...], pd.DataFrame, dict[tuple[int, int], str]]:
    """Return the union of the rows' headers by name, their cells, and the formats of numbers by line and position.

    The columns are positions and SURPLUS.
    """
    formats: dict[tuple[int, int], str] = {}
    places: dict[tuple[str, int], int] = {}
    positions: dict[str, list[int]] = {}
    for header in dict.fromkeys(map(attrgetter("header"), rows)):
        positions[header], seen = [], Counter[str]()
        for name in json.loads(header):
            seen[name] += 1
            positions[header].append(places.setdefault((name, seen[name]), len(places)))
    columns: list[list[str | None]] = [[None] * len(rows) for _ in range(len(places) + 1)]
    for line, row in enumerate(rows):
        of, cells = positions[row.header], json.loads(row.cells)
        for at, cell in zip([*of, SURPLUS], cells, strict=False):
            if isinstance(cell, list):
                cell, formats[line, at] = cell
            columns[at][line] = cell
    frame = pd.DataFrame(dict(zip([*range(len(places)), SURPLUS], columns, strict=True)), dtype="str")
    return tuple(map(itemgetter(0), places)), frame, formats


def kept_sheet(rows: Sequence[CatalogRow]) -> Checked:
    """Return rows of the ledger as they were checked when they came in.

    They keep the numbers that they had in their sheet; those of several sheets, whose numbers clash, get new ones.
    """
    numbers = [row.number for row in rows]
    if len(set(numbers)) < len(numbers):
        numbers = list(range(2, len(rows) + 2))
    header, cells, formats = kept_table(rows)
    kinds = {(numbers[line], at): Kind("a number", code) for (line, at), code in formats.items()}
    about = "the catalog's rows", "", "CSV, commas, UTF-8", ",", header
    sheet = Sheet(*about, cells.set_axis(numbers), kinds=kinds, is_workbook=bool(kinds))
    refused = {number: row for number, row in zip(numbers, rows, strict=True) if row.refusal}
    faults = [{**json.loads(row.refusal), "row": number, "sku": row.sku} for number, row in refused.items()]
    problems = pd.DataFrame(faults, columns=list(PROBLEM), dtype=object)
    problems = problems.astype(object).where(problems.notna(), None)
    contents, columns = _contents(numbers, rows), Columns(header, {}, tuple(range(len(header))))
    is_refused = contents.index.isin(refused)
    return Checked(sheet, columns, contents[~is_refused], problems, contents[is_refused])


def _contents(numbers: Sequence[int], rows: Sequence[CatalogRow]) -> pd.DataFrame:
    lines: dict[int, tuple[str, ...]] = {}
    for number, row in zip(numbers, rows, strict=True):
        if row.content:
            said = json.loads(row.content)
            ours = dumps(said["selections"])
            lines[number] = (row.sku, said["prompt"], said["category_id"], said["category"], ours)
    return pd.DataFrame(list(lines.values()), list(lines), list(ROW), dtype="str")
