"""Rows of a catalog as a sheet that was checked, and what a catalog knows about the rows of a sheet that comes in."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

import pandas as pd

from patternmill.states import CatalogRow
from patternmill.tables.checks import PROBLEM, ROW, Checked
from patternmill.tables.columns import Columns
from patternmill.tables.results import dumps, formats_of
from patternmill.tables.sheet import SURPLUS, Sheet
from patternmill.tables.workbook import Kind
from patternmill.text import counted, sku_key

#: A number as a spreadsheet shows it.
_NUMBER = r"\d+|\d(?:[.,]\d+)?E\+\d{2,3}"
_NAMED = 6


def header_of(columns: Columns) -> str:
    """Return the header that the rows of a sheet are kept under: a JSON array."""
    return dumps(columns.titles)


def kept_cells(sheet: Sheet, columns: Columns) -> dict[int, str]:
    """Return the cells of each row as they are kept: a JSON array in the header's order.

    A cell that the row lacks is null; what it has beyond its header is a last element of its own; a number of a
    workbook is an array of its text and its format.
    """
    frame = sheet.rows[[*columns.carried, SURPLUS]]
    cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    for (line, at), code in formats_of(sheet, columns, frame).items():
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
        positions[header] = [places.setdefault(one, len(places)) for one in _numbered(json.loads(header))]
    columns: list[list[str | None]] = [[None] * len(rows) for _ in range(len(places) + 1)]
    for line, row in enumerate(rows):
        of, cells = positions[row.header], json.loads(row.cells)
        for at, cell in zip([*of, SURPLUS], cells, strict=False):
            if isinstance(cell, list):
                cell, formats[line, at] = cell
            columns[at][line] = cell
    frame = pd.DataFrame(dict(zip([*range(len(places)), SURPLUS], columns, strict=True)), dtype="str")
    return tuple(map(itemgetter(0), places)), frame, formats


def _numbered(titles: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield each title with how many there are of its name so far."""
    seen = Counter[str]()
    for title in titles:
        seen[title] += 1
        yield title, seen[title]


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
            beside = dumps(said["extras"]) if "extras" in said else ""
            lines[number] = (row.sku, said["prompt"], said["category_id"], said["category"], ours, beside)
    return pd.DataFrame(list(lines.values()), list(lines), list(ROW), dtype="str")


def with_corrections(sheet: Sheet, columns: Columns, corrections: Sequence[Any]) -> Sheet:
    """Return a source with the rows that were corrected in an import since, where it still says the same of them.

    A correction has the cells that it `corrects`, and its own `cells` under a `header`.
    """
    if not corrections:
        return sheet
    left = defaultdict[str, list[Any]](list)
    for one in corrections:
        left[one.corrects].append(one)
    places, carried = list(_numbered(columns.titles)), [*columns.carried, SURPLUS]
    rows, corrected = sheet.rows.copy(), dict[int, str]()
    for number, cells in kept_cells(sheet, columns).items():
        if left.get(cells):
            one = left[cells].pop(0)
            cells_now = (cell[0] if isinstance(cell, list) else cell for cell in json.loads(one.cells))
            texts = dict(zip(_numbered(json.loads(one.header)), cells_now, strict=False))
            rows.loc[number, carried] = [*map(texts.get, places), None]
            corrected[number] = cells
    notes = [f"{_named(corrected)} taken as corrected in an import since."] if corrected else []
    return replace(sheet, rows=rows, corrected=corrected, notes=(*sheet.notes, *notes))


def with_whole_skus(sheet: Sheet, columns: Columns, skus: Iterable[str]) -> Sheet:
    """Return the results of a run with the skus of its catalog that a spreadsheet took for numbers: 42 for `0042`.

    Only rows that name their run, and only where one sku alone can be meant, and no other row has it.
    """
    at, known = columns.used["sku"], {sku_key(sku): sku for sku in skus}
    written = sheet.rows[at].fillna("").str.strip()
    is_ours = sheet.rows[columns.run].fillna("").ne("") & ~written.map(sku_key).isin(known)
    odd = written[is_ours & written.str.fullmatch(_NUMBER).astype(bool)].str.replace(",", ".")
    there, meant = set(map(sku_key, written)), defaultdict[str, list[str]](list)
    for form in set(map(_format_of, odd)):
        for name in (name for name in known if name.isdecimal() and len(name) < 40):
            meant[format(int(name), form)].append(known[name])
    found: dict[int, list[str]] = dict(zip(odd.index.tolist(), map(meant.__getitem__, odd), strict=True))
    sure = {row: one[0] for row, one in found.items() if len(one) == 1 and sku_key(one[0]) not in there}
    if not any(found.values()):
        return sheet
    rows = sheet.rows.copy()
    rows.loc[list(sure), at] = list(sure.values())
    kinds = {place: kind for place, kind in sheet.kinds.items() if place[1] != at or place[0] not in sure}
    notes = [f"{_named(sure)} with the sku that the catalog has for their number."] if sure else []
    doubtful = {row: one for row, one in found.items() if one and row not in sure}
    return replace(sheet, rows=rows, kinds=kinds, notes=(*sheet.notes, *notes), doubtful=doubtful)


def _format_of(number: str) -> str:
    """Return the format of a number as it is shown: `42` or `1.23E+12`."""
    digits, exponent, _ = number.partition("E")
    return f".{len(digits.partition('.')[2])}E" if exponent else "d"


def _named(rows: Collection[int]) -> str:
    more = " ..." if len(rows) > _NAMED else ""
    return f"{counted(len(rows), 'row')} ({', '.join(map(str, list(rows)[:_NAMED]))}{more})"
