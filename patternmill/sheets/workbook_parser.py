"""Parses the workbook on its standard input, in a process of its own with limits, into JSON lines of its worksheets.

Run by its path and with `-P`, it imports nothing of the project; it alone imports calamine. Its arguments are the bytes
of memory, the seconds and the bytes of output that it may take, and the one worksheet that is wanted, if one is.
The first line names the worksheets; each that is read is a line with its name, then a line for each row with something
in it: its number and its cells.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import re
import resource
import sys
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree

#: Exit codes; a limit may also end the process without one.
TOO_LARGE, UNKNOWN, DAMAGED, ERRORS = 3, 4, 5, 6
#: A text; or what a cell is that is none (nothing: a plain number), and the best text for it.
Cell = str | tuple[str, str]

#: What calamine does not tell of a worksheet: by row and column from 0, errors and formulas that have no result.
Unread = Mapping[tuple[int, int], Cell]

_CELL = re.compile(rb"<(?:\w+:)?c\b([^<>]*[^<>/])>(.*?)</(?:\w+:)?c>", re.DOTALL)
_PLACE = re.compile(rb'\br="([A-Z]{1,3})(\d{1,7})"')
_VALUE = re.compile(rb"<(?:\w+:)?v\b[^<>]*>([^<]+)<")
_FORMULA = re.compile(rb"<(?:\w+:)?f\b")
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NOUNS = {time: "time", timedelta: "duration", bool: "truth value", int: "number", float: "number"}


def main(memory: str, seconds: str, size: str, *wanted: str) -> int:
    """The exit code."""
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
        unread = _unread(raw)
        if isinstance(unread, int):
            return unread
        for line in _lines(raw, unread, wanted):
            print(json.dumps(line))
    except MemoryError:
        return TOO_LARGE
    except BaseException as error:
        # Each damage has its own, and a panic of calamine's is no Exception.
        return TOO_LARGE if getattr(error, "errno", None) == errno.EFBIG else DAMAGED
    return 0


def _lines(raw: bytes, unread: Mapping[str, Unread], wanted: Collection[str]) -> Iterator[Any]:
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
        "format": "Excel workbook" if unread else "OpenDocument spreadsheet",
    }
    for name in chosen:
        yield name
        sheet = book.get_sheet_by_name(name)
        rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
            _fill_down(rows, top, bottom, left, right)
        yield from _rows(rows, unread.get(name, {}))


def _fill_down(rows: list[list[Any]], top: int, bottom: int, left: int, right: int) -> None:
    """Of merged cells, each row has the first one's value in the first column: it stands beside all of them."""
    if top >= len(rows) or left >= len(rows[top]):
        return
    first = rows[top][left]
    for row in rows[top : bottom + 1]:
        row[left : right + 1] = [first, *[""] * (len(row[left : right + 1]) - 1)]


def _rows(rows: Iterable[Sequence[Any]], others: Unread) -> Iterator[tuple[int, list[Cell]]]:
    for number, values in enumerate(rows):
        cells = [value if isinstance(value, str) else _cell(value) for value in values]
        if others:
            cells = [others.get((number, index), cell) for index, cell in enumerate(cells)]
        if any(cells):
            yield number + 1, cells


def _cell(value: Any) -> Cell:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # As many digits as spreadsheets have.
        text = f"{value:.15g}"
        return ("" if _PLAIN_NUMBER.fullmatch(text) else f"the number {text}"), text
    is_day = isinstance(value, datetime) and value.time() == time()
    text = str(value).upper() if isinstance(value, bool) else str(value.date() if is_day else value)
    return f"the {_NOUNS.get(type(value), 'date')} {text}", text


def _unread(raw: bytes) -> dict[str, Unread] | int:
    """By worksheet, of .xlsx alone; or the code of what is refused."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        parts = {part.filename.replace("\\", "/").lower(): part for part in archive.infolist()}
        if "xl/workbook.xml" not in parts:
            if "content.xml" not in parts:
                return UNKNOWN
            return ERRORS if b'calcext:value-type="error"' in archive.read(parts["content.xml"]) else {}

        def xml(name: str) -> ElementTree.Element:
            return ElementTree.fromstring(archive.read(parts[name]))  # noqa: S314  # in a process with limits

        targets = {one.get("Id"): one.get("Target", "") for one in xml("xl/_rels/workbook.xml.rels")}
        found: dict[str, Unread] = {}
        for sheet in xml("xl/workbook.xml").iter():
            relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), None)
            if sheet.tag.rpartition("}")[2] == "sheet" and relation in targets:
                place = targets[relation].lower()
                part = parts.get(place.lstrip("/") if place.startswith("/") else f"xl/{place}")
                found[sheet.attrib["name"]] = _unread_of(archive.read(part)) if part else {}
        return found


def _unread_of(part: bytes) -> Unread:
    cells: dict[tuple[int, int], Cell] = {}
    for attributes, content in _CELL.findall(part) if b't="e"' in part or _FORMULA.search(part) else ():
        value = _VALUE.search(content)
        if b't="e"' in attributes:
            error = value[1].decode() if value else "#VALUE!"
            cell = f"the error {error}", error
        elif value is None and _FORMULA.search(content) and b't="str"' not in attributes:
            cell = "a formula whose result is not stored", "#VALUE!"
        else:
            continue
        letters, number = _PLACE.search(attributes).groups()  # type: ignore[union-attr]  # else it is damaged
        cells[int(number) - 1, _index(letters)] = cell
    return cells


def _index(letters: bytes) -> int:
    """Of a column, from 0."""
    index = 0
    for letter in letters:
        index = index * 26 + letter - 64
    return index - 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
