"""Text files: JSON lines, or by which sign the columns are separated, and in which row the header stands."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re
from collections import Counter
from dataclasses import replace

from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.sheet_choices import DELIMITERS, SheetChoices, SheetLayout
from patternmill.sheets.csv_reader import CsvText, has_content
from patternmill.sheets.json_rows import json_sheet
from patternmill.sheets.tables import Sheet, Table, names_columns, table_of
from patternmill.sheets.text_encodings import check_text, choose_encoding, not_read

#: Excel reads this first line, and does not show it as a row.
_NAMED_DELIMITER = re.compile('\ufeff?"?sep=(.)"?(?:\r\n|\r|\n)')
#: Past a mark; a title line may begin with `[Draft]`.
_JSON_OBJECT = re.compile(r"\ufeff?\s*\{\s*[\"}]")
_JSON_ARRAY = re.compile(r"\ufeff?\s*\[\s*[\[{\]]")
_SAMPLE_ROWS = 40
_SAMPLE = 200_000


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
        delimiter = _likeliest(text[:_SAMPLE], mapping)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise refusal(FileCode.WRONG_DELIMITER, f"{name} names {delimiter!r} as its delimiter.", _SAVE)
    numbered = CsvText(raw, name, read_as, reading, delimiter).rows
    sheet = Sheet(tuple(row for row in numbered if has_content(row[1])))
    layout = replace(layout, format=_FORMATS.get(delimiter, "text"), encoding=encoding, delimiter=delimiter)
    return table_of(sheet, name, layout, choices, mapping)


_SAVE = "Save it as `CSV UTF-8 (comma delimited)`."
_FORMATS = {",": "CSV", ";": "CSV"}


def _likeliest(sample: str, mapping: ColumnMapping) -> str:
    """The delimiter by which a row names a catalog's columns, else the one that divides most rows alike."""
    return max(DELIMITERS, key=lambda delimiter: _fit(sample, delimiter, mapping))


def _fit(sample: str, delimiter: str, mapping: ColumnMapping) -> tuple[bool, bool, float, int, int]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    try:
        rows = [cells for cells in itertools.islice(reader, _SAMPLE_ROWS) if has_content(cells)]
    except csv.Error:
        rows = []
    widths = list(map(len, rows))
    width, count = Counter(widths).most_common(1)[0] if widths else (0, 0)
    exact = any(names_columns(cells, mapping) for cells in rows)
    # Lists within cells (`a;b;c` in each row) are not in the header.
    begins = widths.index(width) if widths else 0
    return exact, width > 1, round(count / max(1, len(rows)), 1), -begins, width
