"""Text files: JSON lines, or by which sign the columns are separated, and in which row the header stands."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from patternmill.catalog.catalog_file import NumberedRow
from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.sheet_choices import DELIMITERS, SheetChoices, SheetLayout
from patternmill.errors import InputRefused
from patternmill.sheets.csv_reader import CsvText, has_content
from patternmill.sheets.json_rows import json_sheet
from patternmill.sheets.tables import Sheet, Table, names_columns, table_of
from patternmill.sheets.text_encodings import check_text, choose_encoding, not_read
from patternmill.text import plain

#: Excel reads this first line, and does not show it as a row.
_NAMED_DELIMITER = re.compile('\ufeff?"?sep=(.)"?(?:\r\n|\r|\n)')
#: Past a mark; a title line may begin with `[Draft]`.
_JSON_OBJECT = re.compile(r"\ufeff?\s*\{\s*[\"}]")
_JSON_ARRAY = re.compile(r"\ufeff?\s*\[\s*[\[{\]]")
_SAMPLE_ROWS = 40
_SAMPLE = 200_000
_SURE = 0.9
_FEWEST_COLUMNS = 3


def text_table(
    raw: bytes, name: str, choices: SheetChoices, mapping: ColumnMapping, reading: Reading, quoting: bool
) -> Table:
    """Raises InputRefused when it is no text, or can be read in two ways. `quoting`: a refusal may quote the file."""
    encoding = choose_encoding(raw, name, choices.encoding)
    layout = SheetLayout("JSON lines", hashlib.sha256(raw).hexdigest())
    text = check_text(raw, name, encoding, quoting=quoting)
    if _JSON_ARRAY.match(text):
        raise not_read(name, "a JSON array")
    if _JSON_OBJECT.match(text):
        return table_of(json_sheet(text, name, reading), name, layout, SheetChoices(header_row=1))
    named = _NAMED_DELIMITER.match(text)
    read_as = encoding
    if named is not None:
        raw, read_as = text[named.end() :].encode(), "utf-8"
    delimiter = choices.delimiter or (named.group(1) if named else None)
    if delimiter is None:
        delimiter = _likeliest(text[:_SAMPLE], name, mapping, quoting)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise refusal(FileCode.WRONG_DELIMITER, f"{name} names {delimiter!r} as its delimiter.", _SAVE)
    numbered = CsvText(raw, name, read_as, reading, delimiter).rows
    sheet = Sheet(tuple(row for row in numbered if has_content(row[1])))
    layout = replace(layout, format=_FORMATS.get(delimiter, "text"), encoding=encoding, delimiter=delimiter)
    return table_of(sheet, name, layout, choices, mapping)


_SAVE = "Save it as `CSV UTF-8 (comma delimited)`."
_FORMATS = {",": "CSV", ";": "CSV"}


@dataclass(frozen=True)
class _Guess:
    """The first rows as one delimiter divides them."""

    delimiter: str
    rows: tuple[NumberedRow, ...]
    exact: bool

    @property
    def width(self) -> int:
        """Of most rows."""
        return self._widths.most_common(1)[0][0] if self.rows else 0

    @property
    def share(self) -> float:
        """Of the rows that have this width."""
        return self._widths[self.width] / len(self.rows) if self.rows else 0

    @property
    def begins(self) -> int:
        """The first row of that width: the header, if this is the delimiter."""
        return next((number for number, cells in self.rows if len(cells) == self.width), 0)

    @property
    def is_sure(self) -> bool:
        return self.exact or (self.width >= _FEWEST_COLUMNS and self.share >= _SURE)

    @property
    def score(self) -> tuple[bool, bool, float, int]:
        return self.exact, self.width > 1, round(self.share, 1), self.width

    @property
    def _widths(self) -> Counter[int]:
        return Counter(len(cells) for _, cells in self.rows)

    def shown(self) -> str:
        header = next((cells for _, cells in self.rows), ())
        return f"with {DELIMITERS[self.delimiter]} {' | '.join(plain(cell, 20) for cell in header[:6])}"


def _likeliest(sample: str, name: str, mapping: ColumnMapping, quoting: bool) -> str:
    guesses = sorted(_guesses(sample, mapping), key=lambda guess: guess.score, reverse=True)
    if not guesses or guesses[0].width < 2:
        return ","
    sure = [guess for guess in guesses if guess.is_sure and guess.exact == guesses[0].exact]
    # Lists within cells (`a;b;c` in each row) are not in the header.
    earliest = [guess for guess in sure if guess.begins == min(one.begins for one in sure)]
    if len(earliest) > 1:
        raise _two_readings(name, earliest, quoting)
    return (earliest or guesses)[0].delimiter


def _guesses(sample: str, mapping: ColumnMapping) -> Iterator[_Guess]:
    for delimiter in DELIMITERS:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            rows = [tuple(cells) for cells in itertools.islice(reader, _SAMPLE_ROWS)]
        except csv.Error:
            continue
        if len(rows) > 2 and len(rows) < _SAMPLE_ROWS and len(sample) == _SAMPLE:
            # Cut in the middle.
            rows.pop()
        numbered = tuple((number, cells) for number, cells in enumerate(rows, 1) if has_content(cells))
        yield _Guess(delimiter, numbered, any(names_columns(cells, mapping) for _, cells in numbered))


def _two_readings(name: str, guesses: list[_Guess], quoting: bool) -> InputRefused:
    ways = " or ".join(
        guess.shown() if quoting else f"with {DELIMITERS[guess.delimiter]}" for guess in guesses
    )
    return refusal(
        FileCode.WRONG_DELIMITER,
        f"The columns of {name} can be read in {len(guesses)} ways: {ways}.",
        f"Write the one that is meant above the header, as `sep={guesses[0].delimiter}` in a line of its own; or save "
        "it as `CSV UTF-8 (comma delimited)`.",
    )
