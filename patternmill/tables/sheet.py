"""Sheets of any program as frames of text, indexed by the row numbers that a spreadsheet shows."""

import csv
import hashlib
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal, NamedTuple

import pandas as pd

from patternmill.errors import InputRefused
from patternmill.tables.mapping import Proposal, SheetMapping
from patternmill.tables.workbook import (
    WORKBOOKS,
    Kind,
    hidden_note,
    number_as_shown,
    numbers_proposal,
    read_worksheet,
)
from patternmill.text import counted, shown

#: The frame's last column: the cells of a row beyond the header, joined.
SURPLUS = -1
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_HEADER_WITHIN, _PART, _KEPT = 20, 500, 4096
_NO_TABLES = {
    rb"PAR1": "a Parquet file",
    rb"%PDF-": "a PDF document",
    rb"\s*<[!?a-zA-Z]": "a web page or XML",
    rb"\s*(\{|\[\s*[\[{\"\]])": "JSON",
}
_BREAK = re.compile(r"\r\n|\r|\n")
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`."


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
    #: What of a workbook should be seen before money is spent, and what a person may confirm about it.
    notes: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()


def read_sheet(raw: bytes, name: str, mapping: SheetMapping) -> Sheet:
    """Read a CSV or workbook. Raises InputRefused for one that cannot be read as a whole."""
    sha256 = hashlib.sha256(raw).hexdigest()
    if raw.startswith(WORKBOOKS):
        return _from_workbook(raw, name, sha256, mapping)
    text, encoding = _decode(raw, name, mapping.reading.encoding)
    del raw
    text, delimiter = _delimiter(text, name, mapping)
    layout = f"CSV, {DELIMITERS.get(delimiter, delimiter)}, {encoding.upper()}"
    content = text.encode()
    del text
    table = _parse(content, name, delimiter, mapping)
    return Sheet(name, sha256, layout + table.place, delimiter, *table[1:])


def _decode(raw: bytes, name: str, asked: str | None) -> tuple[str, str]:
    """Return the text and its encoding: UTF-8, UTF-16 with its mark, or what a person named. Nothing is guessed."""
    for magic, what in _NO_TABLES.items():
        if re.match(magic, raw):
            raise InputRefused("not_csv", f"{name} is {what}.", "Save it as CSV or .xlsx; those are read.")
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else asked or "utf-8"
    try:
        text = raw.decode(encoding)
    except LookupError:
        message = f"{asked!r}, in the mapping of {name}, is no encoding."
        raise InputRefused("unknown_encoding", message, "Correct it.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"{name} is not {encoding.upper()}: line {line} cannot be read."
        remedy = f"{_SAVE} Or name its encoding under [reading] of its mapping."
        raise InputRefused("unreadable_encoding", message, remedy) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputRefused("nul_bytes", f"{name} has a NUL character in line {line}, as no text has.", _SAVE)
    # The mark stands at the beginning of each file that was joined to this one.
    text = re.sub("(?m)^\ufeff+", "", text) if "\ufeff" in text else text
    text = text.rstrip("\x1a\r\n ") if "\x1a" in text[-9:] else text
    if not text.strip():
        raise InputRefused("empty_file", f"{name} is empty.", "Is it the right file?")
    return text, encoding


def _delimiter(text: str, name: str, mapping: SheetMapping) -> tuple[str, str]:
    """Return the text without a line `sep=`, and the delimiter: a named one, or what best gives a catalog's columns."""
    if named := re.match(r'"?sep=(.)"?(?:\r\n|\r|\n)', text):
        text = text[named.end() :]
    if chosen := mapping.reading.delimiter or (named and named[1]):
        return text, chosen
    best, found = ((False, -1, -1), 0), ","
    for delimiter in DELIMITERS:
        rows = csv.reader(io.StringIO(text[:200_000], newline=""), delimiter=delimiter)
        try:
            top = list(itertools.islice(rows, _HEADER_WITHIN))
            fits = list(zip(map(mapping.score, top), map(len, top), strict=True))
        except csv.Error:
            continue
        if max(fits, default=best) > best:
            best, found = max(fits), delimiter
    return text, found


def _parse(content: bytes, name: str, delimiter: str, mapping: SheetMapping) -> "_Table":
    """Return the table of a text. Between tabs a quote is a sign like any other, unless all are well-formed."""
    try:
        return _below_header(_parts(content, name, delimiter, csv.QUOTE_MINIMAL), name, delimiter, mapping)
    except InputRefused as refusal:
        if delimiter != "\t" or refusal.code != "open_quote":
            raise
    return _below_header(_parts(content, name, delimiter, csv.QUOTE_NONE), name, delimiter, mapping)


class _Part(NamedTuple):
    """Some rows of a sheet: the number of the first one, and its line in a text file, where a row may span several."""

    number: int
    rows: list[list[str]]
    line: int = 0
    is_broken: bool = False


class _Table(NamedTuple):
    place: str
    header: tuple[str, ...]
    rows: pd.DataFrame
    blank_rows: int


def _parts(content: bytes, name: str, delimiter: str, quoting: Literal[0, 3]) -> Iterator[_Part]:
    """Yield every record. By csv: pandas' own parsers merge or drop rows at a stray quote."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
    number, line, rows = 1, 1, list[list[str]]()
    try:
        while True:
            rows.extend(itertools.islice(reader, _PART))  # keeps those before an error
            if not rows:
                return
            yield _Part(number, rows, line, reader.line_num - line + 1 > len(rows))
            number, line, rows = number + len(rows), reader.line_num + 1, []
    except csv.Error as error:
        place = f"in row {number + len(rows)}, up to line {reader.line_num} of the file,"
        if "field larger" in str(error):
            message = f"{name}: a cell {place} has more than {csv.field_size_limit():,} characters."
            raise InputRefused("cell_too_long", message, "Is a quote opened there, and not closed?") from None
        raise _open_quote(f'{name}: a quote (") {place} is not closed where its cell ends.') from None


def _open_quote(message: str) -> InputRefused:
    return InputRefused("open_quote", message, 'Close or remove it; within a quoted cell, double it ("").')


def _below_header(parts: Iterator[_Part], name: str, delimiter: str, mapping: SheetMapping) -> _Table:
    """Return the header, which is the row that best names a catalog's columns, and the rows below it."""
    first = next(parts, _Part(1, []))
    number = mapping.reading.header or _header_row(first.rows[:_HEADER_WITHIN], mapping)
    header = tuple(first.rows[number - 1]) if number <= len(first.rows) else ()
    while header and not header[-1].strip():
        header = header[:-1]
    if not 0 < len(header) <= _MOST_COLUMNS:
        message = f"{name} has {counted(len(header), 'column')} in row {number}, its header."
        raise InputRefused("wrong_header", message, "Correct that row, or `header` in the mapping.")
    above = number + len(_BREAK.findall("".join(itertools.chain.from_iterable(first.rows[:number]))))
    rest = _Part(number + 1, first.rows[number:], above + 1, first.is_broken)
    rows, blank = _collect(itertools.chain([rest], parts), header, delimiter)
    if rows.empty:
        raise InputRefused("header_only", f"{name} has a header and no rows below it.", "Add the rows.")
    return _Table(f", header in row {number}" if number > 1 else "", header, rows, blank)


def _header_row(top: Sequence[Sequence[str]], mapping: SheetMapping) -> int:
    """Return the first of the rows that name most columns; of none that name any, the first one with several cells."""
    scores = [(mapping.score(cells), sum(map(bool, cells)) > 1, -at) for at, cells in enumerate(top, 1)]
    return -max(scores)[2] if scores else 1


def _collect(parts: Iterable[_Part], header: Sequence[str], delimiter: str) -> tuple[pd.DataFrame, int]:
    """Return the rows that show anything as a frame, and the number of the others."""
    width, total, numbers, surplus = len(header), 0, list[int](), dict[int, str]()
    columns: list[tuple[list[str | None], dict[str | None, str | None]]] = [([], {}) for _ in header]
    for part in parts:
        total += len(part.rows)
        rows: Sequence[Sequence[str | None]] = part.rows
        if part.is_broken:
            _refuse_swallowed(part, header, delimiter)
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
    index = pd.Index(numbers, dtype="int64")
    columns.reverse()
    frame = {at: pd.Series(columns.pop()[0], index, dtype="str") for at in range(width)}
    return pd.DataFrame(frame | {SURPLUS: pd.Series(surplus, index, dtype="str")}), total - len(numbers)


def _refuse_swallowed(part: _Part, header: Sequence[str], delimiter: str) -> None:
    """Refuse rows of which two lines that follow each other have as many separators as the header.

    A comma with a space behind it is one of a sentence, unless the header has such commas too.
    """
    shape = len(header) - 1 - sum(cell.startswith(" ") for cell in header)
    line = part.line
    for number, cells in enumerate(part.rows, part.number):
        lines = _BREAK.split(delimiter.join(cells))
        alike = [one.count(delimiter) - one.count(f"{delimiter} ") == shape for one in lines] if shape else []
        if any(map(bool.__and__, alike, alike[1:])):
            place = f"in row {number} (lines {line} to {line + len(lines) - 1} of the file)"
            raise _open_quote(f"A quoted cell {place} goes on over lines that look like other rows.")
        line += len(lines)


def _from_workbook(raw: bytes, name: str, sha256: str, mapping: SheetMapping) -> Sheet:
    """Return the worksheet that has a catalog's columns; skus that are numbers as it shows them, if that is meant."""
    meant = read_worksheet(raw, name, mapping)
    place, header, rows, blank = _below_header(iter([_Part(1, meant.rows)]), name, ",", mapping)
    layout, kinds = f"workbook, worksheet {shown(meant.name)}{place}", meant.kinds
    sku = next((at for at, title in enumerate(header) if mapping.meaning(title) == "sku"), None)
    skus = dict(zip(rows.index, rows[sku], strict=True)) if sku is not None else {}
    texts = {row: text for (row, at), kind in kinds.items()
             if at == sku and row in skus and (text := number_as_shown(skus[row], kind))}  # fmt: skip
    if texts and mapping.reading.numbers:
        rows.loc[list(texts), sku] = list(texts.values())
        kinds = {one: kind for one, kind in kinds.items() if one[1] != sku or one[0] not in texts}
    asked = () if mapping.reading.numbers else tuple(numbers_proposal(texts.values()))
    notes = tuple(hidden_note(meant, skus))
    return Sheet(name, sha256, layout, ",", header, rows, blank, kinds, True, notes, asked)
