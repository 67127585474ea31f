"""Excel workbooks (.xlsx): calamine reads the values, a pass of our own what it leaves out: formats, errors, bounds."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from xml.parsers import expat

import python_calamine as calamine

from patternmill.catalog.read_limits import Reading
from patternmill.sheets.archives import Attributes, damaged, elements, local, parse_xml, unzipped, zipped
from patternmill.sheets.number_formats import BUILT_IN, GENERAL, Value, cell_text
from patternmill.sheets.tables import Area, Sheet, Unfit, hidden_note, merged_cells, rectangular

T = TypeVar("T")

WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
#: Large at times, and not needed for cells.
_NOT_READ = ("xl/pivotcache/", "xl/drawings/", "xl/charts/", "customxml/", "docprops/")
_STYLES = frozenset({"numFmt", "cellStyleXfs", "cellXfs", "xf", "cellStyles", "dxfs"})
_FONTS = frozenset({"fonts", "font", "strike", "cellStyleXfs", "cellXfs", "xf", "cellStyles", "dxfs"})
_LAST_COLUMN = 16_384
#: Each takes memory, however small the file.
_MOST_KEPT = 3_000_000
_UNSTORED = Unfit("a formula whose result is not stored", "open the workbook in Excel, and save it again")
_AREA = re.compile(r"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})", re.ASCII)
_ERROR_REMEDY = "correct its formula, or type the text itself"


class ExcelWorkbook:
    """Raises InputRefused when it is damaged or too large."""

    format = "Excel workbook"

    def __init__(self, raw: bytes, reading: Reading) -> None:
        self._reading = reading
        self._parts = unzipped(raw, _is_read, reading)
        styles = self._parts.get("xl/styles.xml", b"")
        self._formats, self._struck_styles = _format_codes(styles, reading), _struck_styles(styles, reading)
        self._paths = _worksheet_paths(self._parts, reading)
        self._workbook = _guarded(lambda: calamine.load_workbook(zipped(self._parts)), reading)
        kind = calamine.SheetTypeEnum.WorkSheet
        known = self._workbook.sheets_metadata
        sheets = [one for one in known if one.typ == kind and one.name in self._paths]
        visible = calamine.SheetVisibleEnum.Visible
        self.names = tuple(one.name for one in sheets if one.visible == visible)
        self.hidden = tuple(one.name for one in sheets if one.visible != visible)

    def read(self, name: str) -> Sheet:
        part = self._parts.get(self._paths[name])
        if part is None:
            raise damaged(self._reading)
        scan = _Scan(self._formats, self._struck_styles, self._reading)
        scan.run(part)
        self._reading.check_cells(scan.rows, scan.columns)
        self._check_shared_texts(part, scan.shared)
        values = _guarded(
            lambda: self._workbook.get_sheet_by_name(name).to_python(skip_empty_area=False), self._reading
        )
        texts = _Texts(scan)
        rows = rectangular(
            ((number, texts.of(number, row)) for number, row in enumerate(values, 1)), self._reading
        )
        unfit = merged_cells(scan.merged, rows, self._reading) | texts.unfit
        return Sheet(rows, unfit, scan.struck, scan.hidden_columns, hidden_note(scan.hidden, rows))

    def _check_shared_texts(self, part: bytes, cells: int) -> None:
        """A text that is stored once and named by countless cells."""
        stored = re.split(rb"</(?:\w+:)?si>", self._parts.get("xl/sharedstrings.xml", b""))
        lengths = list(map(len, stored))
        if cells * max(lengths) > self._reading.limits.size:
            self._reading.check_size(_shared_length(part, lengths, self._reading))


def _guarded(work: Callable[[], T], reading: Reading) -> T:
    """A panic of calamine's is no Exception."""
    try:
        return work()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise damaged(reading) from error


class _Texts:
    """The rows of values as rows of texts."""

    def __init__(self, scan: _Scan) -> None:
        self._scan = scan
        self._has_blanks = bool(scan.errors or scan.formulas)
        self.unfit: dict[tuple[int, int], Unfit] = {}

    def of(self, number: int, row: list[Value]) -> list[str]:
        if not self._has_blanks and all(type(value) is str for value in row):
            return row  # type: ignore[return-value]
        return [self._text((number, index), value) for index, value in enumerate(row)]

    def _text(self, place: tuple[int, int], value: Value) -> str:
        if value == "":
            text, unfit = self._blank(place)
        else:
            text, unfit = cell_text(value, self._scan.codes.get(place, GENERAL))
        if unfit is not None:
            self.unfit[place] = unfit
        return text

    def _blank(self, place: tuple[int, int]) -> tuple[str, Unfit | None]:
        """What calamine has no value of."""
        if error := self._scan.errors.get(place):
            return error, Unfit(f"the error {error}", _ERROR_REMEDY)
        return "", _UNSTORED if place in self._scan.formulas else None


@dataclass
class _Scan:
    """The cells of a worksheet that calamine alone does not tell enough of, and how far the cells reach."""

    #: By the index of a style.
    formats: tuple[str, ...]
    struck_styles: frozenset[int]
    reading: Reading
    rows: int = 0
    columns: int = 0
    #: Cells whose text is stored elsewhere.
    shared: int = 0
    #: By row and index: the format's code of a number, unless it is `General`.
    codes: dict[tuple[int, int], str] = field(default_factory=dict)
    #: calamine leaves errors out.
    errors: dict[tuple[int, int], str] = field(default_factory=dict)
    #: With a result that is no text, or that no program has calculated yet.
    formulas: set[tuple[int, int]] = field(default_factory=set)
    hidden: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    #: Cells with a line through their text.
    struck: set[tuple[int, int]] = field(default_factory=set)
    merged: list[Area] = field(default_factory=list)
    _row: int = 0
    _column: int = -1
    _cell: dict[str, str] = field(default_factory=dict)
    _indexes: dict[str, int] = field(default_factory=dict)

    def run(self, part: bytes) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._begin_worksheet
        parse_xml(part, self._parser, self.reading)

    def _begin_worksheet(self, name: str, _: Attributes) -> None:
        """The first element: every other has its prefix. One look-up for each, because there are millions."""
        prefix = name.removesuffix(local(name))
        handlers = {
            f"{prefix}col": self._column_style,
            f"{prefix}row": self._begin_row,
            f"{prefix}c": self._begin_cell,
            f"{prefix}f": self._formula,
            f"{prefix}v": self._value,
            f"{prefix}is": self._value,
            f"{prefix}mergeCell": self._merge,
        }

        def start(name: str, attributes: Attributes) -> None:
            if handler := handlers.get(name):
                handler(attributes)

        self._parser.StartElementHandler = start

    def _column_style(self, attributes: Attributes) -> None:
        if attributes.get("hidden") in ("1", "true"):
            first, last = (int(attributes.get(name, 1)) for name in ("min", "max"))
            self.hidden_columns |= {*range(max(first, 1) - 1, min(last, _LAST_COLUMN))}

    def _begin_row(self, attributes: Attributes) -> None:
        self._row, self._column = int(attributes.get("r", self._row + 1)), -1
        self.reading.check_rows(self._row, 0)
        if attributes.get("hidden") in ("1", "true"):
            self.hidden.add(self._row)

    def _begin_cell(self, attributes: Attributes) -> None:
        self._cell = attributes
        place = attributes.get("r")
        if place is None:
            self._column += 1
            return
        letters = place.rstrip("0123456789")
        index = self._indexes.get(letters)
        if index is None:
            index = self._indexes[letters] = _index(letters)
        self._column, self._row = index, int(place[len(letters) :])

    def _formula(self, _: Attributes) -> None:
        if self._cell.get("t", "n") == "n":
            self.formulas.add(self._reached())

    def _value(self, _: Attributes) -> None:
        place = self._reached()
        if self.struck_styles and int(self._cell.get("s", 0)) in self.struck_styles:
            self.struck.add(place)
        kind = self._cell.get("t", "n")
        if kind == "s":
            self.shared += 1
        elif kind == "n":
            style = int(self._cell.get("s", 0))
            if style < len(self.formats) and self.formats[style] != GENERAL:
                self.codes[place] = self.formats[style]
        elif kind == "e":
            self._collect_error(place)

    def _merge(self, attributes: Attributes) -> None:
        if area := _AREA.fullmatch(attributes.get("ref", "")):
            left, top, right, bottom = area.groups()
            self.merged.append((int(top), _index(left), int(bottom), _index(right)))

    def _reached(self) -> tuple[int, int]:
        if self._row > self.rows:
            self.rows = self._row
        if self._column >= self.columns:
            self.columns = self._column + 1
        if len(self.codes) + len(self.formulas) + len(self.errors) + len(self.struck) > _MOST_KEPT:
            raise self.reading.too_large(f"has more than {_MOST_KEPT:,} cells with formulas or formats")
        return self._row, self._column

    def _collect_error(self, place: tuple[int, int]) -> None:
        """The text up to the element's end."""
        texts: list[str] = []

        def end(_: str) -> None:
            self._parser.CharacterDataHandler = self._parser.EndElementHandler = None
            self.errors[place] = "".join(texts)

        self._parser.CharacterDataHandler = texts.append
        self._parser.EndElementHandler = end


def _shared_length(part: bytes, lengths: Sequence[int], reading: Reading) -> int:
    """Of all texts that the cells name by a number, in bytes. Slow: for the few worksheets with very long texts."""
    parser, texts, total = expat.ParserCreate(), list[str](), 0

    def start(name: str, attributes: Attributes) -> None:
        if local(name) == "c":
            texts.clear()
            parser.CharacterDataHandler = texts.append if attributes.get("t") == "s" else None

    def end(name: str) -> None:
        nonlocal total
        if local(name) == "v" and texts:
            index = int("".join(texts))
            total += lengths[index] if index < len(lengths) else 0
            texts.clear()

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parse_xml(part, parser, reading)
    return total


def _is_read(part: str) -> bool:
    return part.endswith((".xml", ".rels")) and not part.startswith(_NOT_READ)


def _index(letters: str) -> int:
    """Of a column, from 0."""
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - 64
    return index - 1


def _format_codes(styles: bytes, reading: Reading) -> tuple[str, ...]:
    """By the index of a cell's style."""
    custom: dict[int, str] = {}
    codes: list[str] = []
    section = ""
    for name, attributes in elements(styles, _STYLES, reading) if styles else ():
        if name == "numFmt" and section == "":
            custom[int(attributes.get("numFmtId", 0))] = attributes.get("formatCode", GENERAL)
        elif name != "xf":
            section = name
        elif section == "cellXfs":
            number = int(attributes.get("numFmtId", 0))
            codes.append(custom.get(number) or BUILT_IN.get(number, f"number format {number}"))
    return tuple(GENERAL if code.casefold() == GENERAL.casefold() else code for code in codes)


def _struck_styles(styles: bytes, reading: Reading) -> frozenset[int]:
    """The indexes of the cells' styles whose font draws a line through the text."""
    fonts, found = 0, 0
    struck: set[int] = set()
    indexes: set[int] = set()
    section = ""
    for name, attributes in elements(styles, _FONTS, reading) if styles else ():
        if name == "font":
            fonts += section == "fonts"
        elif name == "strike":
            if section == "fonts" and attributes.get("val", "1") not in ("0", "false"):
                struck.add(fonts - 1)
        elif name != "xf":
            section = name
        elif section == "cellXfs":
            if int(attributes.get("fontId", 0)) in struck:
                indexes.add(found)
            found += 1
    return frozenset(indexes)


def _worksheet_paths(parts: Mapping[str, bytes], reading: Reading) -> dict[str, str]:
    """By the worksheet's name."""
    relations = {
        attributes.get("Id", ""): attributes.get("Target", "")
        for _, attributes in elements(parts.get(_RELATIONS, b""), {"Relationship"}, reading)
    }
    return {
        attributes.get("name", ""): _path(relations.get(attributes.get("id", ""), ""))
        for _, attributes in elements(parts.get(WORKBOOK, b""), {"sheet"}, reading)
    }


def _path(target: str) -> str:
    return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/").lower()
