"""Text files: by which sign the columns are separated, and in which row the header stands."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re

from patternmill.catalog.catalog_file import DELIMITERS, NumberedRow, SheetChoices, SheetLayout
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.sheets.csv_reader import CsvText, has_content
from patternmill.sheets.tables import Score, Table, best_row, table_of
from patternmill.sheets.text_encodings import check_text, choose_encoding

#: Excel reads this first line, and does not show it as a row.
_NAMED_DELIMITER = re.compile('\ufeff?"?sep=(.)"?(?:\r\n|\r|\n)')
_SAMPLE_ROWS = 40
_SAMPLE = 200_000


def text_tables(raw: bytes, name: str, choices: SheetChoices, score: Score, reading: Reading) -> list[Table]:
    """The only one. Raises InputRefused when it is no text."""
    encoding = choose_encoding(raw, name, choices.get("encoding"))
    sha256 = hashlib.sha256(raw).hexdigest()
    text = check_text(raw, name, encoding)
    named = _NAMED_DELIMITER.match(text)
    read_as = encoding
    if named is not None:
        raw, read_as = text[named.end() :].encode(), "utf-8"
    delimiter = choices.get("delimiter") or (named.group(1) if named else None)
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda one: best_row(_sample(text, one), score)[0])
    if len(delimiter) != 1 or delimiter in '"\r\n':
        message = f"{name} names {delimiter!r} as its delimiter."
        raise refusal(FileCode.WRONG_DELIMITER, message, "Save it as `CSV UTF-8 (comma delimited)`.")
    numbered = CsvText(raw, name, read_as, reading, delimiter).rows
    rows = [row for row in numbered if has_content(row[1])]
    layout = SheetLayout("CSV" if delimiter in ",;" else "text", sha256, encoding, delimiter)
    return [table_of(rows, name, layout, choices.get("header"), score)]


def _sample(text: str, delimiter: str) -> list[NumberedRow]:
    """The first rows by this delimiter; none where they cannot be read by it."""
    reader = csv.reader(io.StringIO(text[:_SAMPLE], newline=""), delimiter=delimiter)
    try:
        rows = [tuple(cells) for cells in itertools.islice(reader, _SAMPLE_ROWS) if has_content(cells)]
    except csv.Error:
        return []
    return list(enumerate(rows))
