"""A proposal of what the columns of a sheet are, and its first rows as they would be read, as wide as the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size

from patternmill.catalog.column_mapping import CARRIED, NOTE_PREFIX
from patternmill.catalog.mapping_proposal import Certainty, MappingProposal, ProposedColumn
from patternmill.catalog.rows import OPTION_PREFIX, REFINE_PREFIX, column_letter, header_key
from patternmill.runs.input_mapping import UnmappedSheet
from patternmill.text import plain, plural

_FIRST_ROWS = 3
#: Columns of a terminal that are used, at least and at most.
_NARROWEST, _WIDEST = 60, 120
#: Of the table: the letter of a column, and what it is.
_LETTER, _TARGET = 2, 16
_SIGNS = {Certainty.CERTAIN: "", Certainty.LIKELY: "likely: ", Certainty.QUESTION: "? "}


def proposal_lines(sheet: UnmappedSheet, proposal: MappingProposal) -> Iterator[str]:
    table = sheet.table
    rows = plural(len(table.records), "row")
    yield f"{plain(sheet.name)}: {rows}, {table.layout.text}."
    yield from (f"Note: {note}" for note in table.notes)
    yield ""
    yield _line(("", "column", "is", "because"))
    read = (column for column in proposal.columns if not column.is_left_out and not column.is_result)
    yield from map(_column_line, read)
    yield from _carried_lines(proposal)
    if proposal.missing:
        yield ""
        yield f"Missing: no column is the {' and none the '.join(proposal.missing)}, which every row needs."
    yield ""
    yield "The first rows, as they would be read:"
    for number, cells in sheet.table.records[:_FIRST_ROWS]:
        yield from _row_lines(number, cells, proposal)


def _carried_lines(proposal: MappingProposal) -> Iterator[str]:
    carried = [
        f"{column_letter(one.index)} {plain(one.header.strip()) or '(no name)'}"
        for one in proposal.columns
        if one.is_left_out
    ]
    if carried:
        text = f"Not needed, and carried through to the results: {', '.join(carried)}."
        yield ""
        yield from textwrap.wrap(text, _width(), break_on_hyphens=False)


def _column_line(column: ProposedColumn) -> str:
    header = column.header.strip() or "(no name)"
    because = _SIGNS[column.certainty] + column.why
    return _line((column_letter(column.index), header, column.target, because))


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)


def _line(cells: Sequence[str]) -> str:
    rest = _width() - _LETTER - _TARGET - 5
    header = rest * 2 // 5
    widths = (_LETTER, header, _TARGET, rest - header)
    fitted = (_fitted(cell, width) for cell, width in zip(cells, widths, strict=True))
    return ("  " + " ".join(fitted)).rstrip()


def _row_lines(number: int, cells: Sequence[str], proposal: MappingProposal) -> Iterator[str]:
    """What is bought for the row: its name and product in one line, its prompt in another."""
    parts: dict[str, str] = {}
    for column in (one for one in proposal.columns if not one.is_result):
        cell = cells[column.index].strip() if column.index < len(cells) else ""
        if cell and column.target != CARRIED and not column.target.startswith(NOTE_PREFIX):
            parts[_part(column.target)] = cell
    head = [parts.pop("sku", "(no sku)"), parts.pop("category", "(no category)")]
    prompt = parts.pop("prompt", "(no prompt)")
    options = [f"{name}={value}" for name, value in parts.items()]
    yield _fitted(f"  row {number}: {'  '.join(head + options)}", _width()).rstrip()
    yield _fitted(f"    {prompt}", _width()).rstrip()


def _part(target: str) -> str:
    key = header_key(target)
    if key.startswith((OPTION_PREFIX, REFINE_PREFIX)):
        return target.partition(":")[2]
    return "category" if key == "category_id" else key


def _fitted(text: str, width: int) -> str:
    """Of exactly this width on a terminal, shortened where it is longer."""
    shown = plain(text, 2 * width)
    if cell_len(shown) > width:
        shown = set_cell_size(shown, width - 1).rstrip() + "…"
    return set_cell_size(shown, width)
