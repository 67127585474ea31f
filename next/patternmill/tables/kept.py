"""Rows of a catalog as a sheet that was checked: what a retry makes, and what `results` writes, read no file."""

import json
from collections.abc import Sequence

import pandas as pd

from patternmill.states import CatalogRow
from patternmill.tables.checks import PROBLEM, ROW, Checked
from patternmill.tables.columns import Columns
from patternmill.tables.sheet import SURPLUS, Sheet


def header_of(checked: Checked) -> str:
    """Return the header that the rows of a sheet are kept under: a JSON array."""
    return json.dumps([checked.columns.header[at] for at in checked.columns.carried], ensure_ascii=False)


def kept_cells(checked: Checked) -> dict[int, str]:
    """Return the cells of each row as they are kept: a JSON array in the header's order.

    A cell that the row lacks is null; what it has beyond its header is a last element of its own.
    """
    frame = checked.sheet.rows
    columns = [frame[at].to_numpy(dtype=object) for at in [*checked.columns.carried, SURPLUS]]
    kept = {}
    for number, *cells, beyond in zip(frame.index.tolist(), *columns, strict=True):
        texts = [cell if isinstance(cell, str) else None for cell in cells]
        kept[number] = json.dumps(texts + ([beyond] if isinstance(beyond, str) else []), ensure_ascii=False)
    return kept


def kept_table(rows: Sequence[CatalogRow]) -> tuple[tuple[str, ...], pd.DataFrame]:
    """Return the union of the rows' headers by name, and their cells: columns are positions and SURPLUS."""
    places: dict[tuple[str, int], int] = {}
    positions: dict[str, list[int]] = {}
    for header in dict.fromkeys(row.header for row in rows):
        names = json.loads(header)
        numbered = [(name, names[:at].count(name)) for at, name in enumerate(names)]
        positions[header] = [places.setdefault(name, len(places)) for name in numbered]
    columns: list[list[str | None]] = [[None] * len(rows) for _ in range(len(places) + 1)]
    for line, row in enumerate(rows):
        of, cells = positions[row.header], json.loads(row.cells)
        for at, cell in zip([*of, SURPLUS], cells, strict=False):
            columns[at][line] = cell
    frame = pd.DataFrame(dict(zip([*range(len(places)), SURPLUS], columns, strict=True)), dtype="str")
    return tuple(name for name, _ in places), frame


def kept_sheet(rows: Sequence[CatalogRow]) -> Checked:
    """Return rows of the ledger as they were checked when they came in.

    They keep the numbers that they had in their sheet; those of several sheets, whose numbers clash, get new ones.
    """
    numbers = [row.number for row in rows]
    if len(set(numbers)) < len(numbers):
        numbers = list(range(2, len(rows) + 2))
    header, cells = kept_table(rows)
    sheet = Sheet("the catalog's rows", "", "CSV, commas, UTF-8", ",", header, cells.set_axis(numbers))
    columns = Columns(header, {}, tuple(range(len(header))))
    fit = [number for number, row in zip(numbers, rows, strict=True) if not row.refusal]
    contents = _contents(numbers, rows)
    problems = [_problem(number, row) for number, row in zip(numbers, rows, strict=True) if row.refusal]
    is_fit = contents.index.isin(fit)
    return Checked(sheet, columns, contents[is_fit], pd.DataFrame(problems, columns=list(PROBLEM), dtype=object),
                   contents[~is_fit])  # fmt: skip


def _contents(numbers: Sequence[int], rows: Sequence[CatalogRow]) -> pd.DataFrame:
    found: list[list[str]] = []
    index = [number for number, row in zip(numbers, rows, strict=True) if row.content]
    for row in rows:
        if row.content:
            content = json.loads(row.content)
            selections = json.dumps(content["selections"], ensure_ascii=False)
            found.append(
                [row.sku, content["prompt"], content["category_id"], content["category"], selections]
            )
    return pd.DataFrame(found, index, list(ROW), dtype="str")


def _problem(number: int, row: CatalogRow) -> list[object]:
    refusal = json.loads(row.refusal)
    return [number, row.sku, *(refusal.get(name) for name in PROBLEM[2:])]
