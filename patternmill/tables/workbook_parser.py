"""Parses the workbook on standard input into JSON on standard output. A program of its own, within limits.

The JSON is a list of worksheets, or a text that says why the file is none that is read.
"""

import io
import json
import re
import resource
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree

_MEMORY, _SECONDS, _MOST_CELLS = 2 << 30, 60, 20_000_000
_ODD = re.compile(rb"""\bhidden=|\bht=["']0|\bt=["']e["']|<(\w+:)?f[ />]""")
_TABLE, _OFFICE, _TEXT = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("table", "office", "text")
)
_BUILT_IN = {"0": "", "1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "49": ""}
Place = tuple[int, int]  # a cell's row number and its position from 0


@dataclass
class Unread:
    """The parts of a worksheet that calamine does not tell."""

    #: Texts that it has otherwise, or not: errors, and formulas without a stored result.
    texts: dict[Place, str] = field(default_factory=dict)
    formulas: list[Place] = field(default_factory=list)
    #: The formats of numbers that are not shown as they are; `?` for one that is not told.
    formats: dict[Place, str] = field(default_factory=dict)
    hidden: list[int] = field(default_factory=list)
    has_filter: bool = False
    #: First and last cell of merged ones, rows from 0 as calamine counts them.
    merged: list[tuple[Place, Place]] = field(default_factory=list)


def main() -> None:
    """Write the visible worksheets. Ends by a signal or with 3 where that takes too much, with 1 where it fails."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    raw = sys.stdin.buffer.read()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            parts = {info.filename.replace("\\", "/").lower(): info for info in archive.infolist()}
            if any(info.flag_bits & 1 for info in parts.values()):
                found: Any = "is protected by a password"
            elif "xl/workbook.xml" in parts:
                found = list(_worksheets(raw, _unread_excel(archive, parts)))
            elif "xl/workbook.bin" in parts:
                found = "is a binary Excel workbook (.xlsb)"
            elif "content.xml" not in parts:
                found = "is a zip archive, and no workbook"
            elif b"encryption-data" in archive.read("META-INF/manifest.xml"):
                found = "is protected by a password"
            else:
                found = list(_worksheets(raw, _unread_document(archive)))
        json.dump(found, sys.stdout)
    except MemoryError:
        raise SystemExit(3) from None


def _worksheets(raw: bytes, unread: Mapping[str, Unread]) -> Iterator[dict[str, Any]]:
    from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    book = CalamineWorkbook.from_filelike(io.BytesIO(raw))
    for one in book.sheets_metadata:
        if one.visible != SheetVisibleEnum.Visible or one.typ != SheetTypeEnum.WorkSheet:
            continue
        sheet, others = book.get_sheet_by_name(one.name), unread.get(one.name, Unread())
        if sheet.total_height * sheet.total_width > _MOST_CELLS:
            raise MemoryError
        rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
        for (number, at), text in others.texts.items():
            rows += ([] for _ in range(number - len(rows)))
            rows[number - 1] += [""] * (at + 1 - len(rows[number - 1]))
            rows[number - 1][at] = text
        for (top, left), (bottom, _) in sheet.merged_cell_ranges or others.merged:
            for row in rows[top + 1 : bottom + 1]:
                if left < min(len(row), len(rows[top])):
                    row[left] = rows[top][left]
        if rows:
            about = {"name": one.name, "hidden": others.hidden, "has_filter": others.has_filter}
            yield {**about, "odd": list(_odd(rows, others)), "rows": rows}


def _odd(rows: Sequence[list[Any]], others: Unread) -> Iterator[tuple[Place, str, str]]:
    """Make each cell a text, and yield those that were none: what they are, and the format of a number."""
    for number, row in enumerate(rows, 1):
        for at, cell in enumerate(row):
            if not isinstance(cell, str):
                row[at], kind = _text(cell)
                yield (number, at), kind, others.formats.get((number, at), "")
    yield from ((place, "a formula without a stored result", "") for place in others.formulas)


def _text(cell: Any) -> tuple[str, str]:
    """Return a cell as text, and what it is."""
    if isinstance(cell, float | int) and not isinstance(cell, bool):
        text = f"{cell:.15g}"  # as many digits as spreadsheets have
        return text, f"the number {text}" if "e" in text else "a number"
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    nouns = {bool: "truth value", time: "time", timedelta: "duration", date: "date", datetime: "date"}
    text = str(cell).upper() if isinstance(cell, bool) else str(cell)
    return text, f"the {nouns.get(type(cell), 'value')} {text}"


def _unread_excel(archive: zipfile.ZipFile, parts: Mapping[str, zipfile.ZipInfo]) -> dict[str, Unread]:
    def elements(name: str) -> Sequence[ElementTree.Element]:
        return list(ElementTree.fromstring(archive.read(parts[name])).iter()) if name in parts else ()  # noqa: S314

    links = {one.get("Id"): one.get("Target", "").lower() for one in elements("xl/_rels/workbook.xml.rels")}
    formats, found = _formats(elements("xl/styles.xml")), dict[str, Unread]()
    for one in elements("xl/workbook.xml"):
        target = links.get(next((value for key, value in one.attrib.items() if key.endswith("}id")), None))
        if _tag(one) == "sheet" and target:
            part = parts.get(target.lstrip("/") if target.startswith("/") else f"xl/{target}")
            found[one.attrib["name"]] = _unread_sheet(archive.read(part) if part else b"", formats)
    return found


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _formats(styles: Sequence[ElementTree.Element]) -> dict[str, str]:
    """Return number formats by the number of a cell's style, where they do not show a number as it is."""
    own = {one.get("numFmtId"): one.get("formatCode", "") for one in styles if _tag(one) == "numFmt"}
    cells = next((one for one in styles if _tag(one) == "cellXfs"), ())
    numbers = [cell.get("numFmtId", "0") for cell in cells]
    codes = [own.get(number, _BUILT_IN.get(number, "?")) for number in numbers]
    return {str(at): code for at, code in enumerate(codes) if code not in ("", "General", "@")}


def _unread_sheet(part: bytes, formats: Mapping[str, str]) -> Unread:
    unread, number = Unread(has_filter=b"autoFilter" in part or b"filterMode" in part), 0
    for _, row in ElementTree.iterparse(io.BytesIO(part)) if formats or _ODD.search(part) else ():  # noqa: S314
        if _tag(row) != "row":
            continue
        number, at = int(row.get("r", number + 1)), -1
        if row.get("hidden") in ("1", "true") or float(row.get("ht", 1)) == 0:
            unread.hidden.append(number)
        for cell in row:
            at, kind = _position(cell.get("r", ""), at + 1), cell.get("t", "n")
            inner = {_tag(child): child.text for child in cell} if kind not in ("s", "inlineStr") else {}
            if kind == "e":
                unread.texts[number, at] = inner.get("v") or "#VALUE!"
            elif "f" in inner and not inner.get("v") and kind != "str":
                unread.texts[number, at] = f"={inner['f'] or ''}"
                unread.formulas.append((number, at))
            elif inner and cell.get("s") in formats:
                unread.formats[number, at] = formats[cell.attrib["s"]]
        row.clear()
    return unread


def _position(place: str, following: int) -> int:
    """Return the position of a cell's column, from 0, of an address such as `AB12`; a cell without one follows."""
    column = 0
    for letter in place.rstrip("0123456789"):
        column = column * 26 + ord(letter) - 64
    return column - 1 if place else following


def _unread_document(archive: zipfile.ZipFile) -> dict[str, Unread]:
    found = dict[str, Unread]()
    for table in ElementTree.fromstring(archive.read("content.xml")).iter(f"{_TABLE}table"):  # noqa: S314
        unread = found[table.get(f"{_TABLE}name", "")] = Unread()
        number = 1
        for row in table.iter(f"{_TABLE}table-row"):
            repeated, at = _count(row, "rows-repeated"), 0
            if (visibility := row.get(f"{_TABLE}visibility", "visible")) != "visible":
                unread.hidden += range(number, number + repeated)
                unread.has_filter |= visibility == "filter"
            for cell in row:
                _note(unread, cell, (number, at))
                at += _count(cell, "columns-repeated")
            number += repeated
    return found


def _count(element: ElementTree.Element, what: str) -> int:
    return int(element.get(f"{_TABLE}number-{what}", 1))


def _note(unread: Unread, cell: ElementTree.Element, place: Place) -> None:
    """Note what an OpenDocument cell shows other than its value."""
    breaks = [*cell.iter(f"{_TEXT}line-break"), *cell.iter(f"{_TEXT}tab")]
    for one in breaks:  # calamine leaves them out, so that two words would become one
        one.text = "\n"
    shown = "\n".join("".join(one.itertext()) for one in cell.iterfind(f"{_TEXT}p"))
    kinds = [value for key, value in cell.attrib.items() if key.endswith("}value-type")]
    if breaks or "error" in kinds:
        unread.texts[place] = shown or "#VALUE!"
    elif {"float", "percentage", "currency"} & {*kinds}:
        number = float(cell.get(f"{_OFFICE}value", "nan"))
        is_told = re.fullmatch(r"\d+(\.\d+)?", shown) and float(shown) == number
        unread.formats[place] = re.sub(r"\d", "0", shown) if is_told else "?"
    if (height := _count(cell, "rows-spanned")) > 1:
        unread.merged.append(((place[0] - 1, place[1]), (place[0] + height - 2, place[1])))


if __name__ == "__main__":
    main()
