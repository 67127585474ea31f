"""Parses the workbook on standard input into JSON on standard output. A program of its own, within limits."""

import io
import json
import re
import resource
import sys
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree

_MEMORY, _SECONDS, _MOST_CELLS = 2 << 30, 60, 20_000_000
_ODD = re.compile(rb"""\bhidden=|\bt=["']e["']|<(\w+:)?f[ />]""")
Place = tuple[int, int]  # a cell's row number and its position from 0


def main() -> None:
    """Write the visible worksheets; exit with another code than 0 where that takes too much, or is impossible."""
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    raw = sys.stdin.buffer.read()
    book, parts, sheets = CalamineWorkbook.from_filelike(io.BytesIO(raw)), _parts(raw), []
    for one in book.sheets_metadata:
        sheet = book.get_sheet_by_name(one.name) if one.visible == SheetVisibleEnum.Visible else None
        if sheet is None or not sheet.total_height:
            continue
        if sheet.total_height * sheet.total_width > _MOST_CELLS:
            raise SystemExit(1)
        rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
        for (top, left), (bottom, _) in sheet.merged_cell_ranges or ():
            for row in rows[top + 1 : bottom + 1]:
                row[left] = rows[top][left]
        hidden, errors = _unread(parts.get(one.name, b""))
        odd: list[tuple[int, int, str]] = []
        for number, row in enumerate(rows, 1):
            for at, cell in enumerate(row):
                row[at], kind = (errors[number, at], "") if (number, at) in errors else _text(cell)
                odd += [(number, at, kind)] if kind else []
        found = {"name": one.name, "rows": rows, "odd": odd, "hidden": hidden}
        sheets.append({**found, "has_filter": b"autoFilter" in parts.get(one.name, b"")})
    json.dump(sheets, sys.stdout)


def _text(cell: Any) -> tuple[str, str]:
    """Return a cell as text, and what it is if it is none."""
    if isinstance(cell, str):
        return cell, ""
    if isinstance(cell, float | int) and not isinstance(cell, bool):
        return f"{cell:.15g}", "a number"
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    nouns = {bool: "truth value", time: "time", timedelta: "duration", date: "date", datetime: "date"}
    text = str(cell).upper() if isinstance(cell, bool) else str(cell)
    return text, f"the {nouns.get(type(cell), 'value')} {text}"


def _parts(raw: bytes) -> dict[str, bytes]:
    """Return the XML of each worksheet by its name: calamine does not tell what is hidden or an error."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = {name.lower(): name for name in archive.namelist()}

        def read(name: str) -> bytes:
            return archive.read(names[name.lower()]) if name.lower() in names else b""

        relations = _elements(read("xl/_rels/workbook.xml.rels"))
        links = {link.get("Id"): link.get("Target", "") for link in relations}
        found = {}
        for element in _elements(read("xl/workbook.xml")):
            relation = next((value for key, value in element.attrib.items() if key.endswith("}id")), None)
            if element.tag.endswith("}sheet") and relation in links:
                target = links[relation]
                path = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
                found[element.attrib["name"]] = read(path)
        return found


def _elements(part: bytes) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(part).iter()  # noqa: S314  # within limits


def _unread(part: bytes) -> tuple[list[int], dict[Place, str]]:
    """Return the numbers of hidden rows, and the errors of cells; a formula without a result is one too."""
    hidden, errors, number = list[int](), dict[Place, str](), 0
    for _, row in ElementTree.iterparse(io.BytesIO(part)) if _ODD.search(part) else ():  # noqa: S314
        if not row.tag.endswith("}row"):
            continue
        number, at = int(row.get("r", number + 1)), -1
        hidden += [number] if row.get("hidden") in ("1", "true") else []
        for cell in row:
            at = _position(cell.get("r", ""), at + 1)
            inner = {child.tag.rpartition("}")[2]: child.text for child in cell}
            if cell.get("t") == "e" or ("f" in inner and not inner.get("v") and cell.get("t") != "str"):
                errors[number, at] = inner.get("v") or "#VALUE!"
        row.clear()
    return hidden, errors


def _position(place: str, following: int) -> int:
    """Return the position of a cell's column, from 0, of an address such as `AB12`; a cell without one follows."""
    column = 0
    for letter in place.rstrip("0123456789"):
        column = column * 26 + ord(letter) - 64
    return column - 1 if place else following


if __name__ == "__main__":
    main()
