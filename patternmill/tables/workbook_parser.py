"""Parses the workbook on its standard input, in a process of its own with limits, into JSON lines of its worksheets.

Run by its path and with `-P`, it imports nothing of the project; it alone imports calamine. Its arguments are the bytes
of memory, the seconds and the bytes of output that it may take, and the one worksheet that is wanted, if one is.
The first line names the worksheets, and the rows of each that are hidden; each that is read is a line with its name,
then a line for each row with something in it: its number and its cells.
"""

from __future__ import annotations

import contextlib
import errno
import html
import io
import json
import re
import resource
import sys
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any
from xml.etree import ElementTree

#: Exit codes; a limit may also end the process without one.
TOO_LARGE, UNKNOWN, DAMAGED, ERRORS = 3, 4, 5, 6
#: A text; or what a cell is that is none (nothing: a plain number), the best text for it, and what its program shows of
#: a number, where that is known.
Cell = str | tuple[str, str] | tuple[str, str, str | None]
#: Row and column, from 0.
Place = tuple[int, int]


@dataclass(frozen=True)
class Unread:
    """What calamine does not tell of a worksheet."""

    #: Errors, and formulas that have no result.
    cells: Mapping[Place, Cell] = field(default_factory=dict)
    #: The formats of numbers; None where they cannot be told.
    formats: Mapping[Place, str] | None = field(default_factory=dict)
    #: The numbers of hidden rows, as the program shows them.
    hidden: Sequence[int] = ()
    has_filter: bool = False


_CELL = re.compile(rb"<(?:\w+:)?c\b([^<>]*[^<>/])>(.*?)</(?:\w+:)?c>", re.DOTALL)
_PLACE = re.compile(rb'\br="([A-Z]{1,3})(\d{1,7})"')
_VALUE = re.compile(rb"<(?:\w+:)?v\b[^<>]*>([^<]+)<")
_FORMULA = re.compile(rb"<(?:\w+:)?f\b")
_STYLED = re.compile(rb"<(?:\w+:)?c\b([^<>]*\bs=\"(\d+)\"[^<>]*)>")
_ROW = re.compile(rb"<(?:\w+:)?row\b([^<>]*)>")
_ROW_NUMBER = re.compile(rb'\br="(\d{1,7})"')
_DOCUMENT_ROW = re.compile(rb"<table:table-row\b([^<>]*)>")
_DOCUMENT_TABLE = re.compile(
    rb"<table:table\b[^<>]*\btable:name=\"([^\"]*)\"[^<>]*>(.*?)</table:table>", re.DOTALL
)
_REPEATED = re.compile(rb'table:number-rows-repeated="(\d{1,7})"')
#: What makes an OpenDocument's program show another text than the number's own.
_DOCUMENT_FORMAT = re.compile(rb'number:min-integer-digits="(?:[2-9]|\d\d)|<number:text\b')
#: Number formats that show numbers as they are; the others that every workbook has are no codes of articles.
_AS_IT_IS = frozenset({"", "General", "GENERAL", "@"})
_BUILT_IN = {0: "General", 1: "0", 2: "0.00", 49: "@"}
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NOUNS = {time: "time", timedelta: "duration", bool: "truth value", int: "number", float: "number"}


def main(memory: str, seconds: str, size: str, *wanted: str) -> int:
    """Parse the workbook on standard input, and return the exit code."""
    limits = {
        resource.RLIMIT_AS: int(memory),
        resource.RLIMIT_CPU: int(seconds),
        resource.RLIMIT_FSIZE: int(size),
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        # macOS knows no limit of memory.
        with contextlib.suppress(ValueError):
            resource.setrlimit(kind, (most, most))
    raw = sys.stdin.buffer.read()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            parts = {part.filename.replace("\\", "/").lower(): part for part in archive.infolist()}
            is_excel = "xl/workbook.xml" in parts
            if not is_excel and "content.xml" not in parts:
                return UNKNOWN
            read = partial(_read_part, archive, parts)
            if not is_excel and b'calcext:value-type="error"' in read("content.xml"):
                return ERRORS
            unread = _unread_excel(read) if is_excel else _unread_document(read("content.xml"))
        for line in _lines(raw, unread, wanted, is_excel=is_excel):
            print(json.dumps(line))
    except MemoryError:
        return TOO_LARGE
    except BaseException as error:
        # Each damage has its own, and a panic of calamine's is no Exception.
        return TOO_LARGE if getattr(error, "errno", None) == errno.EFBIG else DAMAGED
    return 0


def _lines(
    raw: bytes, unread: Mapping[str, Unread], wanted: Collection[str], *, is_excel: bool
) -> Iterator[Any]:
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    book = CalamineWorkbook.from_filelike(io.BytesIO(raw))
    visible = {one.name for one in book.sheets_metadata if one.visible == SheetVisibleEnum.Visible}
    folded = {name.strip().casefold() for name in wanted}
    chosen = [name for name in book.sheet_names if name in wanted] or [
        name
        for name in book.sheet_names
        if (name.strip().casefold() in folded if wanted else name in visible)
    ]
    yield {
        "worksheets": book.sheet_names,
        "format": "Excel workbook" if is_excel else "OpenDocument spreadsheet",
        "hidden": {name: [one.has_filter, *one.hidden] for name, one in unread.items() if one.hidden},
    }
    for name in chosen:
        yield name
        sheet = book.get_sheet_by_name(name)
        rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
            _fill_down(rows, top, bottom, left, right)
        yield from _rows(rows, unread.get(name, Unread()))


def _fill_down(rows: list[list[Any]], top: int, bottom: int, left: int, right: int) -> None:
    """Give each row of merged cells the value of the first one, in the first column: it stands beside all of them."""
    if top >= len(rows) or left >= len(rows[top]):
        return
    first = rows[top][left]
    for row in rows[top : bottom + 1]:
        row[left : right + 1] = [first, *[""] * (len(row[left : right + 1]) - 1)]


def _rows(rows: Iterable[Sequence[Any]], others: Unread) -> Iterator[tuple[int, list[Cell]]]:
    formats = others.formats
    for number, values in enumerate(rows):
        cells: list[Cell] = [
            value
            if isinstance(value, str)
            else _cell(value, None if formats is None else formats.get((number, index), "General"))
            for index, value in enumerate(values)
        ]
        if others.cells:
            cells = [others.cells.get((number, index), cell) for index, cell in enumerate(cells)]
        if any(cells):
            yield number + 1, cells


def _cell(value: Any, number_format: str | None) -> Cell:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # As many digits as spreadsheets have.
        text = f"{value:.15g}"
        if not _PLAIN_NUMBER.fullmatch(text):
            return f"the number {text}", text
        return "", text, number_format and shown_number(text, number_format)
    is_day = isinstance(value, datetime) and value.time() == time()
    text = str(value).upper() if isinstance(value, bool) else str(value.date() if is_day else value)
    return f"the {_NOUNS.get(type(value), 'date')} {text}", text


#: A quoted text, an escaped sign, digits, what is shown as it is; anything else is not told here.
_TOKEN = re.compile(r'"([^"]*)"|\\(.)|([0#])|([-+/():!^&\'~{}<>= $])')


def shown_number(text: str, number_format: str) -> str | None:
    """Return what a spreadsheet shows of a number (`00012` of 12 in `00000`); None where that is not told."""
    if number_format in _AS_IT_IS:
        return text
    code = re.sub(
        r"\[(?:\$-[0-9A-Fa-f]+|Black|Blue|Cyan|Green|Magenta|Red|White|Yellow)\]", "", number_format
    )
    whole, _, decimals = code.partition(";")[0].partition(".")
    number, _, fraction = text.partition(".")
    if number.startswith("-") or decimals.strip("0") or len(fraction) > len(decimals):
        return None
    tokens = [match.groups() for match in _TOKEN.finditer(whole)]
    places = [place for *_, place, _ in tokens if place]
    if sum(len(match[0]) for match in _TOKEN.finditer(whole)) != len(whole) or not places:
        return None
    digits = list(number.lstrip("0").rjust(len(places), "\0"))
    first, left = len(digits) - len(places) + 1, []
    for quoted, escaped, place, literal in tokens:
        if not place:
            left.append(quoted or escaped or literal or "")
            continue
        taken, digits, first = digits[:first], digits[first:], 1
        left += [digit if digit != "\0" else place.replace("#", "") for digit in taken]
    return "".join(left) + (f".{fraction.ljust(len(decimals), '0')}" if decimals else "")


def _read_part(archive: zipfile.ZipFile, parts: Mapping[str, zipfile.ZipInfo], name: str) -> bytes:
    return archive.read(parts[name]) if name in parts else b""


def _unread_excel(read: Callable[[str], bytes]) -> dict[str, Unread]:
    """Return by worksheet what calamine does not tell of an Excel file."""

    def xml(name: str) -> ElementTree.Element:
        return ElementTree.fromstring(read(name))  # noqa: S314  # in a process with limits

    targets = {one.get("Id"): one.get("Target", "") for one in xml("xl/_rels/workbook.xml.rels")}
    styles = read("xl/styles.xml")
    formats = _formats(ElementTree.fromstring(styles)) if styles else {}  # noqa: S314
    found: dict[str, Unread] = {}
    for sheet in xml("xl/workbook.xml").iter():
        relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), None)
        if sheet.tag.rpartition("}")[2] == "sheet" and relation in targets:
            place = targets[relation].lower()
            part = read(place.lstrip("/") if place.startswith("/") else f"xl/{place}")
            hidden = list(_hidden_rows(part)) if b"hidden=" in part else []
            is_filtered = b"autoFilter" in part or b"filterMode" in part
            found[sheet.attrib["name"]] = Unread(
                _unread_cells(part), _number_formats(part, formats), hidden, is_filtered
            )
    return found


def _formats(styles: ElementTree.Element) -> dict[bytes, str]:
    """Return number formats by the number of a cell's style, where they do not show a number as it is."""
    own: dict[int, str] = {}
    found: dict[bytes, str] = {}
    for element in styles.iter():
        tag = element.tag.rpartition("}")[2]
        if tag == "numFmt":
            own[int(element.get("numFmtId", "0"))] = element.get("formatCode", "")
        elif tag == "cellXfs":
            for number, style in enumerate(element):
                identity = int(style.get("numFmtId", "0"))
                code = own.get(identity, _BUILT_IN.get(identity, "?"))
                if code not in _AS_IT_IS:
                    found[str(number).encode()] = code
    return found


def _number_formats(part: bytes, formats: Mapping[bytes, str]) -> dict[Place, str]:
    found: dict[Place, str] = {}
    for attributes, style in _STYLED.findall(part) if formats else ():
        place = _PLACE.search(attributes) if style in formats else None
        if place:
            found[int(place[2]) - 1, _index(place[1])] = formats[style]
    return found


def _hidden_rows(part: bytes) -> Iterator[int]:
    number = 0
    for attributes in _ROW.findall(part):
        written = _ROW_NUMBER.search(attributes)
        number = int(written[1]) if written else number + 1
        if b'hidden="1"' in attributes or b'hidden="true"' in attributes:
            yield number


def _unread_document(content: bytes) -> dict[str, Unread]:
    """Return by worksheet what calamine does not tell of an OpenDocument file; no formats of a person's own."""
    formats: dict[Place, str] | None = None if _DOCUMENT_FORMAT.search(content) else {}
    found: dict[str, Unread] = {}
    for name, table in _DOCUMENT_TABLE.findall(content):
        hidden: list[int] = []
        number = 0
        for attributes in _DOCUMENT_ROW.findall(table):
            repeated = _REPEATED.search(attributes)
            first, number = number + 1, number + (int(repeated[1]) if repeated else 1)
            if b"table:visibility" in attributes and b'table:visibility="visible"' not in attributes:
                hidden += range(first, number + 1)
        is_filtered = b'table:visibility="filter"' in table
        found[html.unescape(name.decode())] = Unread({}, formats, hidden, is_filtered)
    return found


def _unread_cells(part: bytes) -> dict[Place, Cell]:
    cells: dict[Place, Cell] = {}
    for attributes, content in _CELL.findall(part) if b't="e"' in part or _FORMULA.search(part) else ():
        value = _VALUE.search(content)
        if b't="e"' in attributes:
            error = value[1].decode() if value else "#VALUE!"
            cell: Cell = (f"the error {error}", error)
        elif value is None and _FORMULA.search(content) and b't="str"' not in attributes:
            cell = "a formula whose result is not stored", "#VALUE!"
        else:
            continue
        letters, number = _PLACE.search(attributes).groups()  # type: ignore[union-attr]  # else it is damaged
        cells[int(number) - 1, _index(letters)] = cell
    return cells


def _index(letters: bytes) -> int:
    """Return the position of a column, from 0."""
    index = 0
    for letter in letters:
        index = index * 26 + letter - 64
    return index - 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
