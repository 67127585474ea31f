"""Sheets of any program as frames of text, indexed by the row numbers that a spreadsheet shows."""

import csv
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import pandas as pd

from patternmill.errors import InputRefused
from patternmill.tables.delimited import (
    DELIMITERS,
    HEADER_WITHIN,
    Part,
    decode,
    delimiter_of,
    lines_of,
    open_quotes,
    parts_of,
    restored,
    swallowed,
)
from patternmill.tables.mapping import NEEDED, Proposal, SheetMapping, Unsaid
from patternmill.tables.workbook import WORKBOOKS, Kind, hidden_note, number_as_shown, read_worksheet
from patternmill.text import counted, shown

#: The frame's last column: the cells of a row beyond the header, joined.
SURPLUS = -1
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_KEPT = 4096
#: Files that programs keep beside a sheet: what they are, and in brackets the sheet's name.
_COMPANIONS = {
    r"~\$(.+)": "the lock that Excel keeps beside an open workbook",
    r"\.~lock\.(.+)#": "the lock that LibreOffice keeps beside an open file",
    r"\._(.+)": "what macOS keeps beside a file on a disk of another system",
    r"(.+)\.(?:crdownload|download|part|partial)": "a download that has not ended",
}


@dataclass(frozen=True)
class Sheet:
    """A sheet as it was read. The frame's columns are positions and SURPLUS; a cell that a row lacks is NaN."""

    name: str
    sha256: str
    layout: str
    delimiter: str
    header: tuple[str, ...]
    rows: pd.DataFrame = field(repr=False)
    blank_rows: int = 0
    #: By row and column: what a workbook's cell is that is no text.
    kinds: Mapping[tuple[int, int], Kind] = field(default_factory=dict, repr=False)
    is_workbook: bool = False
    #: What should be seen before money is spent.
    notes: tuple[str, ...] = ()
    #: By row: its cells in the source, where a correction that was imported since stands for them.
    corrected: Mapping[int, str] = field(default_factory=dict, repr=False)
    #: By row: skus of the catalog, any of which a spreadsheet may have shown as what the row has.
    doubtful: Mapping[int, Sequence[str]] = field(default_factory=dict, repr=False)
    #: What a person may confirm about a workbook.
    proposals: tuple[Proposal, ...] = ()
    #: Why the sheet is refused as a whole, once it is checked as it may be meant.
    doubts: tuple[Unsaid, ...] = ()

    def sample(self, at: int) -> str:
        return ", ".join(self.rows[at].dropna().head(3))[:60]


def read_sheet(raw: bytes, name: str, mapping: SheetMapping) -> Sheet:
    """Read a CSV or workbook. Raises InputRefused for one that cannot be read as a whole."""
    for pattern, what in _COMPANIONS.items():
        if found := re.fullmatch(pattern, name):
            raise InputRefused("companion_file", f"{name} is {what}, no sheet.", f"Name {found[1]}.")
    sha256 = hashlib.sha256(raw).hexdigest()
    if raw.startswith(WORKBOOKS):
        return _from_workbook(raw, name, sha256, mapping)
    text, encoding, doubts = decode(raw, name, mapping.reading.encoding)
    del raw
    delimiter = delimiter_of(text, mapping)
    layout = f"CSV, {DELIMITERS.get(delimiter, delimiter)}, {encoding.upper()}"
    content = text.encode()
    del text
    try:
        table = _parse(content, name, delimiter, mapping)
    except InputRefused as refusal:
        raise (Unsaid.of(doubts, [str(refusal)]) if doubts else refusal) from None
    if {"run", "status"} <= set(table.header):
        table = table._replace(header=tuple(restored(pd.Series(table.header, dtype="str"))))
    return Sheet(name, sha256, layout + table.place, delimiter, *table[1:], doubts=doubts)


def _parse(content: bytes, name: str, delimiter: str, mapping: SheetMapping) -> "_Table":
    """Return the table of a text. Between tabs a quote is a sign like any other, unless all are well-formed."""
    try:
        return _below_header(parts_of(content, name, delimiter, csv.QUOTE_MINIMAL), name, delimiter, mapping)
    except InputRefused as refusal:
        if delimiter != "\t" or refusal.code not in ("open_quote", "cell_too_long"):
            raise
    return _below_header(parts_of(content, name, delimiter, csv.QUOTE_NONE), name, delimiter, mapping)


class _Table(NamedTuple):
    place: str
    header: tuple[str, ...]
    rows: pd.DataFrame
    blank_rows: int


def _below_header(parts: Iterator[Part], name: str, delimiter: str, mapping: SheetMapping) -> _Table:
    """Return the header, which is the row that best names a catalog's columns, and the rows below it."""
    first = next(parts, Part(1, []))
    number = mapping.reading.header or _header_row(first.rows[:HEADER_WITHIN], mapping)
    header = tuple(first.rows[number - 1]) if number <= len(first.rows) else ()
    while header and not header[-1].strip():
        header = header[:-1]
    if first.open_quote and not header:
        raise open_quotes(name, [first.open_quote])
    if not 0 < len(header) <= _MOST_COLUMNS:
        message = f"{name} has {counted(len(header), 'column')} in row {number}, its header."
        raise InputRefused("wrong_header", message, "Correct that row, or `header` in the mapping.")
    above = sum(map(len, map(lines_of, first.rows[:number])))
    rest = first._replace(number=number + 1, rows=first.rows[number:], line=first.line + above)
    rows, blank = _collect(itertools.chain([rest], parts), name, header, delimiter)
    place = f", header in row {number}" if number > 1 else ""
    meanings = list(map(mapping.meaning, header))
    if set(NEEDED) <= set(meanings) and len(rows):
        needed = list(map(meanings.index, NEEDED))
        if number > 1 and not mapping.reading.header:
            _refuse_rows_above(name, first.rows[: number - 1], rows, needed)
        if again := _joined_at(name, header, rows, needed):
            rows, place = rows.drop(again), f"{place}, header again in row {', '.join(map(str, again))}"
    if rows.empty:
        raise InputRefused("header_only", f"{name} has a header and no rows below it.", "Add the rows.")
    return _Table(place, header, rows, blank)


def _header_row(top: Sequence[Sequence[str]], mapping: SheetMapping) -> int:
    """Return the first of the rows that name most columns; of none that name any, the first one with several cells.

    Once one has all needed columns, only those right below it count: a later one is that of a file that was joined.
    """
    best, found = ((False, -1, -1), False), 1
    for number, (score, cells) in enumerate(zip(mapping.scores(top), top, strict=True), 1):
        if best[0][0] and not score[0]:
            break
        rank = score, sum(map(bool, cells)) > 1
        if rank > best:
            best, found = rank, number
    return found


def _refuse_rows_above(
    name: str, above: Sequence[Sequence[str]], rows: pd.DataFrame, needed: list[int]
) -> None:
    """Refuse a sheet of which a row above the header has a sku, a prompt and a category of the rows below."""
    categories = set(rows[needed[-1]].dropna())
    for number, cells in enumerate(above, 1):
        texts = [cells[at].strip() and cells[at] for at in needed if at < len(cells)]
        if len(texts) == len(needed) and all(texts) and texts[-1] in categories:
            message = (
                f"{name}: row {number} is like the rows below the header, which is row {len(above) + 1}."
            )
            raise InputRefused("wrong_header", message, "Make the header the first row.")


def _joined_at(name: str, header: Sequence[str], rows: pd.DataFrame, needed: list[int]) -> list[int]:
    """Return the rows that are the header again, of files that were joined. Raises InputRefused for another header."""
    titles, again = set(map(header.__getitem__, needed)), []
    for number, *cells in rows[rows[needed[-1]].isin(header)].itertuples(name=None):
        if titles <= set(cells):
            if cells[: len(header)] != list(header) or isinstance(cells[-1], str):
                message = f"{name} has another header in row {number}."
                raise InputRefused("wrong_header", message, "Divide the file there.")
            again.append(number)
    return again


def _collect(
    parts: Iterable[Part], name: str, header: Sequence[str], delimiter: str
) -> tuple[pd.DataFrame, int]:
    """Return the rows that show anything as a frame, and the number of the others."""
    width, total, numbers, surplus = len(header), 0, list[int](), dict[int, str]()
    columns: list[tuple[list[str | None], dict[str | None, str | None]]] = [([], {}) for _ in header]
    places: list[str] = []
    for part in parts:
        total += len(part.rows)
        rows: Sequence[Sequence[str | None]] = part.rows
        if part.is_broken:
            places += swallowed(part, header, delimiter)
        places += filter(None, [part.open_quote])
        if set(map(len, rows)) == {width} and all(map(str.strip, map(itemgetter(0), part.rows))):
            numbers += range(part.number, part.number + len(rows))
        else:
            filled = [row for row in enumerate(part.rows, part.number) if "".join(row[1]).strip()]
            beyond = {at: cells[width:] for at, cells in filled if "".join(cells[width:]).strip()}
            surplus |= {at: delimiter.join(cells) for at, cells in beyond.items()}
            rows = [[*cells[:width], *[None] * (width - len(cells))] for _, cells in filled]
            numbers += [at for at, _ in filled]
        # One object for equal cells, as long as a column has few different ones.
        for (column, same), cells in zip(columns, zip(*rows, strict=True), strict=False):
            column.extend(map(same.setdefault, cells, cells) if len(same) < _KEPT else cells)
        if len(numbers) > _MOST_ROWS:
            raise InputRefused("file_too_large", f"It has more than {_MOST_ROWS:,} rows.", "Divide it.")
    if places:
        raise open_quotes(name, places)
    index = pd.Index(numbers, dtype="int64")
    columns.reverse()
    frame = {at: pd.Series(columns.pop()[0], index, dtype="str") for at in range(width)}
    return pd.DataFrame(frame | {SURPLUS: pd.Series(surplus, index, dtype="str")}), total - len(numbers)


def _from_workbook(raw: bytes, name: str, sha256: str, mapping: SheetMapping) -> Sheet:
    """Return the worksheet that has a catalog's columns; skus that are numbers as it shows them, if that is meant."""
    meant = read_worksheet(raw, name, mapping)
    place, header, rows, blank = _below_header(iter([Part(1, meant.rows)]), name, ",", mapping)
    layout, kinds = f"workbook, worksheet {shown(meant.name)}{place}", meant.kinds
    sku = next((at for at, title in enumerate(header) if mapping.meaning(title) == "sku"), None)
    skus = dict(zip(rows.index, rows[sku], strict=True)) if sku is not None else {}
    texts = {row: text for (row, at), kind in kinds.items()
             if at == sku and row in skus and (text := number_as_shown(skus[row], kind))}  # fmt: skip
    if texts and mapping.reading.numbers:
        rows.loc[list(texts), sku] = list(texts.values())
        kinds = {one: kind for one, kind in kinds.items() if one[1] != sku or one[0] not in texts}
    about = f"skus that are numbers: {', '.join(list(texts.values())[:3])}"
    asked = (
        (Proposal("reading", "numbers", "as shown", about),) if texts and not mapping.reading.numbers else ()
    )
    notes = tuple(hidden_note(meant, skus))
    return Sheet(name, sha256, layout, ",", header, rows, blank, kinds, True, notes, proposals=asked)
