"""OpenDocument spreadsheets (.ods): each cell has the text that it displays beside its value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from xml.parsers import expat

from patternmill.catalog.read_limits import Reading
from patternmill.sheets.archives import Attributes, local, parse_xml, protected, unzipped
from patternmill.sheets.tables import Area, Sheet, Unfit, hidden_note, merged_cells, rectangular

CONTENT = "content.xml"
#: All there is of a document that LibreOffice 24.8 and later protects with a password.
ENCRYPTED_PACKAGE = "encrypted-package"
_MANIFEST = "meta-inf/manifest.xml"
#: Inside a cell, but not of its text: comments, pictures, forms.
_ASIDE = frozenset({"annotation", "frame", "shapes", "forms", "ruby-text", "note"})
_DISPLAYED_NUMBER = re.compile(r"-?\d[\d.,'\s]*")
_MOST_SPACES = 1000
_LAST_COLUMN = 16_384
_NOUNS = {"date": "the date", "time": "the time", "percentage": "the percentage", "currency": "the amount"}


class OpenDocument:
    """Raises InputRefused when it is damaged or too large."""

    format = "OpenDocument spreadsheet"

    def __init__(self, raw: bytes, reading: Reading) -> None:
        parts = unzipped(raw, {CONTENT, _MANIFEST}.__contains__, reading)
        if b"encryption-data" in parts.get(_MANIFEST, b""):
            raise protected(reading)
        document = _Document(reading)
        document.run(parts[CONTENT])
        self._reading, self._tables = reading, document.tables
        self.names = tuple(name for name, table in self._tables.items() if not table.hidden)
        self.hidden = tuple(name for name, table in self._tables.items() if table.hidden)

    def read(self, name: str) -> Sheet:
        table = self._tables[name]
        rows = rectangular(table.rows, self._reading)
        unfit = merged_cells(table.merged, rows, self._reading) | table.unfit
        return Sheet(rows, unfit, table.struck, table.hidden_columns, hidden_note(table.hidden_rows, rows))


@dataclass
class _Table:
    hidden: bool
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    unfit: dict[tuple[int, int], Unfit] = field(default_factory=dict)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    #: Cells with a line through their text.
    struck: set[tuple[int, int]] = field(default_factory=set)
    #: The columns that were declared so far.
    width: int = 0
    merged: list[Area] = field(default_factory=list)
    #: The rows read so far, with those that are written once and repeated.
    height: int = 0
    #: Cells with the blank ones between them, against the limits.
    cells: int = 0


class _Document:
    """The tables of one document, by name, collected as it is parsed."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.tables: dict[str, _Table] = {}
        self._table = _Table(hidden=False)
        self._hidden_styles: set[str] = set()
        self._struck_styles: set[str] = set()
        self._style = ""
        self._row: list[str] = []
        self._row_attributes: Attributes = {}
        self._row_unfit: dict[int, Unfit] = {}
        self._row_struck: set[int] = set()
        self._blanks = 0
        self._cell: Attributes = {}
        #: Of the cell that is read, with their characters and paragraphs counted.
        self._texts: list[str] = []
        self._length = self._paragraphs = 0
        self._in_paragraph = False
        self._aside = 0
        self._starts: dict[str, Callable[[Attributes], None]] = {
            "style": self._begin_style,
            "table-properties": self._table_properties,
            "text-properties": self._text_properties,
            "table": self._begin_table,
            "table-column": self._column,
            "table-row": self._begin_row,
            "table-cell": self._begin_cell,
            "covered-table-cell": self._begin_cell,
            "p": self._begin_paragraph,
            "s": self._spaces,
            "tab": lambda _: self._text("\t"),
            "line-break": lambda _: self._text("\n"),
        }

    def run(self, part: bytes) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        parse_xml(part, parser, self._reading)

    def _start(self, name: str, attributes: Attributes) -> None:
        name, found = local(name), {local(key): value for key, value in attributes.items()}
        if self._aside or name in _ASIDE:
            self._aside += 1
        elif start := self._starts.get(name):
            start(found)

    def _end(self, name: str) -> None:
        name = local(name)
        if self._aside:
            self._aside -= 1
        elif name == "p":
            self._in_paragraph = False
        elif name in ("table-cell", "covered-table-cell"):
            self._end_cell()
        elif name == "table-row":
            self._end_row()

    def _text(self, text: str) -> None:
        if not self._in_paragraph or self._aside:
            return
        self._texts.append(text)
        self._length += len(text)
        if self._length > self._reading.limits.row_length:
            raise self._reading.too_large("has a cell of too many characters", "Shorten it.")

    def _begin_style(self, attributes: Attributes) -> None:
        self._style = attributes.get("name", "")

    def _table_properties(self, attributes: Attributes) -> None:
        if attributes.get("display") == "false":
            self._hidden_styles.add(self._style)

    def _text_properties(self, attributes: Attributes) -> None:
        if attributes.get("text-line-through-style", "none") != "none":
            self._struck_styles.add(self._style)

    def _column(self, attributes: Attributes) -> None:
        table, repeated = self._table, _repeated(attributes, "number-columns-repeated")
        first, table.width = table.width, min(table.width + repeated, _LAST_COLUMN)
        if attributes.get("visibility") in ("collapse", "filter"):
            table.hidden_columns |= {*range(first, table.width)}

    def _begin_table(self, attributes: Attributes) -> None:
        self._table = _Table(attributes.get("style-name") in self._hidden_styles)
        self.tables[attributes.get("name", f"{len(self.tables) + 1}")] = self._table

    def _begin_row(self, attributes: Attributes) -> None:
        self._row, self._row_unfit, self._blanks, self._row_attributes = [], {}, 0, attributes
        self._row_struck = set()

    def _begin_cell(self, attributes: Attributes) -> None:
        self._cell, self._texts = attributes, []
        self._length = self._paragraphs = 0

    def _begin_paragraph(self, attributes: Attributes) -> None:
        self._in_paragraph = True
        if self._paragraphs:
            self._text("\n")
        self._paragraphs += 1

    def _spaces(self, attributes: Attributes) -> None:
        self._text(" " * min(int(attributes.get("c", "1")), _MOST_SPACES))

    def _end_cell(self) -> None:
        text, repeated = "".join(self._texts), _repeated(self._cell, "number-columns-repeated")
        if not text:
            self._blanks += repeated
            return
        self._reading.check_columns(len(self._row) + self._blanks + repeated)
        self._row += [""] * self._blanks
        self._blanks = 0
        places = range(len(self._row), len(self._row) + repeated)
        if unfit := _unfit(self._cell, text):
            self._row_unfit |= dict.fromkeys(places, unfit)
        if self._cell.get("style-name") in self._struck_styles:
            self._row_struck.update(places)
        self._merge()
        self._row += [text] * repeated

    def _merge(self) -> None:
        rows, columns = (_repeated(self._cell, f"number-{kind}-spanned") for kind in ("rows", "columns"))
        if rows > 1 or columns > 1:
            top, left = self._table.height + 1, len(self._row)
            self._table.merged.append((top, left, top + rows - 1, left + columns - 1))

    def _end_row(self) -> None:
        table, repeated = self._table, _repeated(self._row_attributes, "number-rows-repeated")
        first, table.height = table.height + 1, table.height + repeated
        if not self._row:
            return
        table.cells += len(self._row) * repeated
        # Before so many rows are made of one.
        self._reading.check_cells(table.height, 1)
        if table.cells > self._reading.limits.cells:
            raise self._reading.too_large(f"has more than {self._reading.limits.cells:,} cells")
        for number in range(first, first + repeated):
            table.rows.append((number, self._row))
            table.unfit |= {(number, index): unfit for index, unfit in self._row_unfit.items()}
            table.struck |= {(number, index) for index in self._row_struck}
            if self._row_attributes.get("visibility") in ("collapse", "filter"):
                table.hidden_rows.add(number)


def _repeated(attributes: Attributes, name: str) -> int:
    return max(1, int(attributes.get(name, "1")))


def _unfit(cell: Attributes, text: str) -> Unfit | None:
    kind = cell.get("value-type", "string")
    if kind in _NOUNS:
        return Unfit(f"{_NOUNS[kind]} {text}, not text")
    if text.startswith(("#", "Err:")) and "formula" in cell:
        return Unfit(f"the error {text}", "correct its formula, or type the text itself")
    if kind == "float" and not _shows(text, float(cell.get("value", "nan"))):
        return Unfit(f"the number {cell.get('value')}, which is displayed as {text}")
    return None


def _shows(text: str, value: float) -> bool:
    """Whether the text is the number itself, in whatever way a language writes its thousands and decimals."""
    if not _DISPLAYED_NUMBER.fullmatch(text):
        return False
    digits = re.sub(r"[\s']", "", text)
    return any(
        _same(digits.replace(thousands, "").replace(decimal, "."), value)
        for thousands, decimal in ((",", "."), (".", ","))
    )


def _same(digits: str, value: float) -> bool:
    try:
        return float(digits) == value
    except ValueError:
        return False
