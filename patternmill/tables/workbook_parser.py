"""Parses the workbook on its standard input, in a process of its own with limits, into JSON lines of its worksheets.

Run by its path and with `-P`, it imports nothing of the project, and it alone imports calamine. Its arguments are the
bytes of memory, the seconds and the bytes of output that it may use, and the one worksheet that is wanted, if any.
The first line says what the file is; each worksheet that is read is a line with its name and its hidden rows, then one
for each filled row: its number, its texts, and by position what is odd about cells that are no text.
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
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree

#: Exit codes; a limit may also end the process without one.
TOO_LARGE, UNKNOWN, DAMAGED, ERRORS = 3, 4, 5, 6
#: The best text for a cell that is no text; what the cell is, which is empty for a plain number; and what its program
#: shows of a number, where that is known.
Odd = tuple[str, str, str | None]
#: Row and column, from 0.
Place = tuple[int, int]
#: The first and the last of some merged cells.
Area = tuple[Place, Place]

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
#: Breaks within a paragraph of an OpenDocument cell. Calamine leaves them out, so that two words would become one.
_BREAKS = re.compile(rb"<text:(?:line-break|tab)\s*/>")
_FORMULA = re.compile(rb"<(?:\w+:)?f\b")
#: Formats for which the program of an OpenDocument shows another text than the number's own.
_DOCUMENT_FORMAT = re.compile(rb'number:min-integer-digits="(?:[2-9]|\d\d)|<number:text\b')
#: Number formats that show numbers as they are. Of the built-in ones, those that are not named here are unfit for skus.
_AS_IT_IS = frozenset({"", "General", "GENERAL", "@"})
_BUILT_IN = {0: "General", 1: "0", 49: "@"}
#: A quoted text, an escaped sign, a digit, or a sign shown as it is; with anything else, what is shown is not told.
_TOKEN = re.compile(r'"([^"]*)"|\\(.)|([0#])|([-+/():!^&\'~{}<>= $])')
_LANGUAGE = re.compile(r"\[\$-[0-9A-Fa-f]+\]")
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NOUNS = {time: "time", timedelta: "duration", bool: "truth value"}


@dataclass
class Unread:
    """The facts about a worksheet that calamine does not tell."""

    #: Errors, and formulas without a result.
    cells: dict[Place, Odd] = field(default_factory=dict)
    #: The formats of numbers; None where they cannot be told.
    formats: dict[Place, str] | None = field(default_factory=dict)
    #: The numbers of hidden rows, as the program shows them.
    hidden: list[int] = field(default_factory=list)
    has_filter: bool = False
    #: The cells of OpenDocument files that are merged across rows.
    merged: list[Area] = field(default_factory=list)

    def odd(self, place: Place, value: Any) -> Odd:
        """Return what a cell that is no text is."""
        if place in self.cells:
            return self.cells[place]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            # As many digits as spreadsheets have.
            text = f"{value:.15g}"
            if not _PLAIN_NUMBER.fullmatch(text):
                return text, f"the number {text}", None
            return text, "", None if self.formats is None else shown_number(text, self.formats.get(place, ""))
        is_day = isinstance(value, datetime) and value.time() == time()
        text = str(value).upper() if isinstance(value, bool) else str(value.date() if is_day else value)
        return text, f"the {_NOUNS.get(type(value), 'date')} {text}", None


def main(memory: str, seconds: str, size: str, *wanted: str) -> int:
    """Parse the workbook on standard input, and return the exit code."""
    limits = {
        resource.RLIMIT_AS: int(memory),
        resource.RLIMIT_CPU: int(seconds),
        resource.RLIMIT_FSIZE: int(size),
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        # macOS has no limit of memory.
        with contextlib.suppress(ValueError):
            resource.setrlimit(kind, (most, most))
    raw = sys.stdin.buffer.read()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            parts = {part.filename.replace("\\", "/").lower(): part for part in archive.infolist()}
            if is_excel := "xl/workbook.xml" in parts:
                unread = _unread_excel(archive, parts)
            elif "content.xml" not in parts:
                return UNKNOWN
            elif b'calcext:value-type="error"' in (content := archive.read(parts["content.xml"])):
                return ERRORS
            else:
                unread = _unread_document(content)
                if _BREAKS.search(content):
                    raw = _with_breaks_as_text(archive, content)
        for line in _lines(raw, unread, wanted, is_excel=is_excel):
            print(json.dumps(line))
    except MemoryError:
        return TOO_LARGE
    except BaseException as error:
        # Each damage raises an error of its own, and a panic of calamine is no Exception.
        return TOO_LARGE if getattr(error, "errno", None) == errno.EFBIG else DAMAGED
    return 0


def _lines(
    raw: bytes, unread: Mapping[str, Unread], wanted: Collection[str], *, is_excel: bool
) -> Iterator[Any]:
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    book = CalamineWorkbook.from_filelike(io.BytesIO(raw))
    names = book.sheet_names
    visible = {sheet.name for sheet in book.sheets_metadata if sheet.visible == SheetVisibleEnum.Visible}
    folded = {name.strip().casefold() for name in wanted}
    alike = [name for name in names if name.strip().casefold() in folded]
    chosen = [name for name in alike if name in wanted] or alike
    yield {"format": "Excel workbook" if is_excel else "OpenDocument spreadsheet", "worksheets": names}
    for name in chosen if wanted else [name for name in names if name in visible]:
        others = unread.get(name, Unread())
        yield {"name": name, "hidden": others.hidden, "has_filter": others.has_filter}
        sheet = book.get_sheet_by_name(name)
        rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or others.merged:
            _fill_down(rows, top, bottom, left, right)
        filled = list(_filled_rows(rows, others))
        width = max((_last(texts) for _, texts, _ in filled), default=0)
        yield from ([number, texts[:width], odd] for number, texts, odd in filled)


def _fill_down(rows: list[list[Any]], top: int, bottom: int, left: int, right: int) -> None:
    """Give each row of merged cells the value of the first one, in its first column, as it applies to all the rows."""
    if top >= len(rows) or left >= len(rows[top]):
        return
    first = rows[top][left]
    for row in rows[top : bottom + 1]:
        row[left : right + 1] = [first, *[""] * (len(row[left : right + 1]) - 1)]


def _filled_rows(
    rows: Iterable[list[Any]], others: Unread
) -> Iterator[tuple[int, list[str], dict[int, tuple[str, str | None]]]]:
    cells = others.cells
    for number, values in enumerate(rows):
        odd: dict[int, tuple[str, str | None]] = {}
        for at, value in enumerate(values):
            if not isinstance(value, str) or (cells and (number, at) in cells):
                values[at], what, shown = others.odd((number, at), value)
                odd[at] = what, shown
        if "".join(values).strip():
            yield number + 1, values, odd


def _last(texts: Sequence[str]) -> int:
    """Return the number of cells up to the last filled one."""
    width = len(texts)
    while width and not texts[width - 1]:
        width -= 1
    return width


def shown_number(text: str, number_format: str) -> str | None:
    """Return what a spreadsheet shows of a number (`00012` of 12 in `00000`); None where that is not told."""
    if number_format in _AS_IT_IS:
        return text
    code = _LANGUAGE.sub("", number_format).partition(";")[0]
    tokens = list(_TOKEN.finditer(code))
    places = sum(token[3] is not None for token in tokens)
    if not places or not text.isdecimal() or "".join(token[0] for token in tokens) != code:
        return None
    digits, shown = list(text.lstrip("0")), list[str]()
    for token in reversed(tokens):
        if token[3] is None:
            shown.append(token[1] or token[2] or token[4] or "")
            continue
        places -= 1
        # All remaining digits go into the first place; where none remains, `0` shows a zero, and `#` nothing.
        taken = digits.pop() if places and digits else "".join(digits)
        shown.append(taken or token[3].strip("#"))
    return "".join(reversed(shown))


def _unread_excel(archive: zipfile.ZipFile, parts: Mapping[str, zipfile.ZipInfo]) -> dict[str, Unread]:
    """Return by worksheet what calamine does not tell of an Excel file."""

    def xml(name: str) -> ElementTree.Element:
        return ElementTree.fromstring(archive.read(parts[name]))  # noqa: S314  # in a process with limits

    targets = {link.get("Id"): link.get("Target", "") for link in xml("xl/_rels/workbook.xml.rels")}
    formats = _formats(xml("xl/styles.xml")) if "xl/styles.xml" in parts else {}
    unread: dict[str, Unread] = {}
    for sheet in xml("xl/workbook.xml").iter():
        relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), None)
        if _tag(sheet) == "sheet" and relation in targets:
            place = targets[relation].lower()
            part = parts.get(place.lstrip("/") if place.startswith("/") else f"xl/{place}")
            unread[sheet.attrib["name"]] = _unread_sheet(archive.read(part) if part else b"", formats)
    return unread


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _formats(styles: ElementTree.Element) -> dict[str, str]:
    """Return number formats by the number of a cell's style, where they do not show a number as it is."""
    formats = (element for element in styles.iter() if _tag(element) == "numFmt")
    own = {element.get("numFmtId"): element.get("formatCode", "") for element in formats}
    cells = (style for group in styles.iter() if _tag(group) == "cellXfs" for style in group)
    codes = (style.get("numFmtId", "0") for style in cells)
    by_style = {str(at): own.get(code, _BUILT_IN.get(int(code), "?")) for at, code in enumerate(codes)}
    return {style: code for style, code in by_style.items() if code not in _AS_IT_IS}


def _unread_sheet(part: bytes, formats: Mapping[str, str]) -> Unread:
    unread = Unread(has_filter=b"autoFilter" in part or b"filterMode" in part)
    assert unread.formats is not None
    is_telling = formats or b" hidden=" in part or b't="e"' in part or _FORMULA.search(part)
    row = -1
    for _, element in ElementTree.iterparse(io.BytesIO(part)) if is_telling else ():  # noqa: S314
        if _tag(element) != "row":
            continue
        row, column = int(element.get("r", row + 2)) - 1, -1
        if element.get("hidden") in ("1", "true"):
            unread.hidden.append(row + 1)
        for cell in element:
            place = row, (column := _column(cell.get("r"), column + 1))
            if cell.get("t") in ("s", "inlineStr"):
                continue
            if odd := _odd_of_excel(cell):
                unread.cells[place] = odd
            elif cell.get("s") in formats:
                unread.formats[place] = formats[cell.attrib["s"]]
        element.clear()
    return unread


def _column(place: str | None, following: int) -> int:
    """Return the position of a cell's column, from 0; a cell without a place follows the last one."""
    column = 0
    for letter in place.rstrip("0123456789") if place else "":
        column = column * 26 + ord(letter) - 64
    return column - 1 if place else following


def _odd_of_excel(cell: ElementTree.Element) -> Odd | None:
    """Return an error, or a formula without a result."""
    children = {_tag(child): child.text for child in cell}
    if cell.get("t") == "e":
        error = children.get("v") or "#VALUE!"
        return error, f"the error {error}", None
    if "f" in children and not children.get("v") and cell.get("t") != "str":
        return "#VALUE!", "a formula whose result is not stored", None
    return None


def _unread_document(content: bytes) -> dict[str, Unread]:
    """Return by worksheet what calamine does not tell of an OpenDocument file, except custom number formats."""
    by_name: dict[str, Unread] = {}
    for table in ElementTree.fromstring(content).iter(f"{_TABLE}table"):  # noqa: S314
        unread, number = Unread(formats=None if _DOCUMENT_FORMAT.search(content) else {}), 0
        for row in table.iter(f"{_TABLE}table-row"):
            first, number = number + 1, number + int(row.get(f"{_TABLE}number-rows-repeated", 1))
            visibility = row.get(f"{_TABLE}visibility", "visible")
            if visibility != "visible":
                unread.hidden += range(first, number + 1)
                unread.has_filter |= visibility == "filter"
            if b"number-rows-spanned" in content:
                unread.merged += _merged_down(row, first - 1)
        by_name[table.get(f"{_TABLE}name", "")] = unread
    return by_name


def _merged_down(row: ElementTree.Element, top: int) -> Iterator[Area]:
    """Yield the cells of a row that are merged with those below them."""
    left = 0
    for cell in row:
        width, height = (int(cell.get(f"{_TABLE}number-{what}-spanned", 1)) for what in ("columns", "rows"))
        if height > 1:
            yield (top, left), (top + height - 1, left + width - 1)
        left += int(cell.get(f"{_TABLE}number-columns-repeated", 1))


def _with_breaks_as_text(archive: zipfile.ZipFile, content: bytes) -> bytes:
    """Return an OpenDocument file in which line breaks and tabs are the signs themselves."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as written:
        for name in archive.namelist():
            if name != "content.xml":
                written.writestr(name, archive.read(name))
        text = _BREAKS.sub(lambda element: b"\t" if b"tab" in element[0] else b"\n", content)
        written.writestr("content.xml", text)
    return target.getvalue()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
