"""The text of a file as records of cells, quotes that are not closed, and cells that a spreadsheet would run."""

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import pandas as pd

from patternmill.errors import InputRefused
from patternmill.tables.encodings import encodings_of
from patternmill.tables.mapping import SheetMapping, Unsaid, either

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
#: The header is one of so many first rows.
HEADER_WITHIN = 20
_PART, _PLACES = 500, 6
_NO_TABLES = {
    rb"PAR1": "a Parquet file",
    rb"%PDF-": "a PDF document",
    rb"\s*<[!?a-zA-Z]": "a web page or XML",
    rb"\s*(\{|\[\s*[\[{\"\]])": "JSON",
}
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`"
#: What a spreadsheet runs as a formula, and the apostrophes before it, so that `restored(defused(cell)) == cell`.
_FORMULA = r"'*(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r])"
_BREAK = re.compile(r"\r\n|\r|\n")
#: A first line that names the delimiter; no program shows it as a row.
_SEPARATOR = re.compile(r'(?i)"?sep=(.)"?(?:\r\n|\r|\n)')


def decode(raw: bytes, name: str, asked: str | None) -> tuple[str, str, tuple[Unsaid, ...]]:
    """Return the text of a file, its encoding, and the doubt where another one may be meant. Raises InputRefused.

    `asked` is the encoding that a person named, for a text that is not UTF-8.
    """
    for magic, what in _NO_TABLES.items():
        if re.match(magic, raw):
            raise InputRefused("not_csv", f"{name} is {what}.", "Save it as CSV or .xlsx; those are read.")
    is_marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    first = "utf-16" if is_marked else asked if asked and b"\0" in raw else "utf-8"
    try:
        "".encode(asked or first)
    except LookupError:
        message = f"{asked!r}, in the mapping of {name}, is no encoding."
        raise InputRefused("unknown_encoding", message, "Correct it.") from None
    for encoding in dict.fromkeys((first, asked or first)):
        try:
            return _cleaned(raw.decode(encoding), name), encoding, ()
        except UnicodeError as error:
            line = raw.count(b"\n", 0, getattr(error, "start", 0)) + 1
            message = f"{name} is not {encoding.upper()}: line {line} cannot be read."
    lines = tuple(encodings_of(raw))
    remedy = f"{_SAVE}, or name its `encoding` under [reading] of its mapping."
    if not lines:
        raise InputRefused("unreadable_encoding", message, remedy)
    message += f" Here it is read as {lines[0].meant}."
    doubt = Unsaid("unreadable_encoding", message, remedy, [either(lines)])
    return _cleaned(raw.decode(lines[0].meant), name), lines[0].meant, (doubt,)


def _cleaned(text: str, name: str) -> str:
    """Return the text without marks and the end sign of DOS. Raises InputRefused for NUL, or where nothing is left."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        message = f"{name} has a NUL character in line {line}, as no text has."
        raise InputRefused("nul_bytes", message, f"{_SAVE}.")
    # The mark stands at the beginning of each file that was joined to this one.
    text = re.sub("(?m)^\ufeff+", "", text) if "\ufeff" in text else text
    text = text.rstrip("\x1a\r\n ") if "\x1a" in text[-9:] else text
    if not text.strip():
        raise InputRefused("empty_file", f"{name} is empty.", "Is it the right file?")
    return text


def delimiter_of(text: str, mapping: SheetMapping) -> str:
    """Return the delimiter: one that is named, or what best gives a catalog's columns."""
    named = _SEPARATOR.match(text)
    if chosen := mapping.reading.delimiter or (named and named[1]):
        return chosen
    rows, divided = list[list[str]](), list[str]()
    for delimiter in DELIMITERS:
        lines = csv.reader(io.StringIO(text[:200_000], newline=""), delimiter=delimiter)
        with contextlib.suppress(csv.Error):  # which may be far below the header
            rows.extend(itertools.islice(lines, HEADER_WITHIN))
        divided += [delimiter] * (len(rows) - len(divided))
    fits = list(zip(mapping.scores(rows), map(len, rows), strict=True))
    return divided[fits.index(max(fits))] if fits else ","


class Part(NamedTuple):
    """Some rows of a sheet: the number of the first one, and its line in a text file, where a row may span several."""

    number: int
    rows: list[list[str]]
    line: int = 0
    is_broken: bool = False
    #: Where a quote is not closed where its cell ends: the last row, which is empty in its place.
    open_quote: str = ""


def parts_of(content: bytes, name: str, delimiter: str, quoting: Literal[0, 3]) -> Iterator[Part]:
    """Yield every record. By csv: pandas' own parsers merge or drop rows at a stray quote."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
    if above := int(bool(_SEPARATOR.match(content[:12].decode(errors="ignore")))):
        lines.readline()
    reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
    number, line, rows, place = 1, 1 + above, list[list[str]](), ""
    while True:
        try:
            rows.extend(itertools.islice(reader, _PART))  # keeps those before an error
        except csv.Error as error:
            at, first = number + len(rows), line + sum(map(len, map(lines_of, rows)))
            if "field larger" in str(error):
                message = f"{name}: a cell in row {at} has more than {csv.field_size_limit():,} characters."
                remedy = "Is a quote opened there, and not closed?"
                raise InputRefused("cell_too_long", message, remedy) from None
            place = _place(at, first, reader.line_num + above)
            rows.append([])
        if not rows:
            return
        last = reader.line_num + above
        yield Part(number, rows, line, last - line + 1 > len(rows), place)
        number, line, rows, place = number + len(rows), last + 1, [], ""


def lines_of(cells: Sequence[str]) -> list[str]:
    """Return the lines of a record, without its quotes."""
    return _BREAK.split("\0".join(cells))


def _place(number: int, first: int, last: int) -> str:
    lines = f"lines {first} to {last}" if last > first else f"line {first}"
    return f"row {number} ({lines} of the file)"


def open_quotes(name: str, places: Sequence[str]) -> InputRefused:
    more = f" and {len(places) - _PLACES:,} more" if len(places) > _PLACES else ""
    what = "a quoted cell is not closed where it ends, or goes on over lines that look like other rows"
    remedy = 'Close or remove the quote; within a quoted cell, double it ("").'
    return InputRefused("open_quote", f"{name}: {what}: {', '.join(places[:_PLACES])}{more}.", remedy)


def swallowed(part: Part, header: Sequence[str], delimiter: str) -> Iterator[str]:
    """Yield the places of rows of which two lines that follow each other have as many separators as a row.

    A comma with a space behind it is one of a sentence, unless the header has such commas too.
    """
    sentences = "\0" if any(cell.startswith(" ") for cell in header) else f"{delimiter} "
    shapes = {len(cells) - 1 for cells in (header, *part.rows)} - {-1, 0, 1}
    line = part.line
    for number, cells in enumerate(part.rows, part.number):
        lines = _BREAK.split(delimiter.join(cells))
        if len(lines) > 1:
            texts = [one.replace(sentences, "") for one in lines if one.strip()]
            alike = [one.count(delimiter) in shapes for one in texts]
            if any(map(all, itertools.pairwise(alike))):
                yield _place(number, line, line + len(lines) - 1)
        line += len(lines)


def defused(cells: pd.Series) -> pd.Series:
    """Return cells of which a spreadsheet runs none as a formula."""
    return cells.where(~cells.str.match(_FORMULA).astype(bool), "'" + cells) if len(cells) else cells


def restored(cells: pd.Series) -> pd.Series:
    """Return cells as they were before `defused`."""
    is_defused = cells.str.match(f"'{_FORMULA}").fillna(False).astype(bool)
    return cells.where(~is_defused, cells.str[1:]) if is_defused.any() else cells
