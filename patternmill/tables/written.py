"""Writes tables of text as CSV files and workbooks, none of whose cells a spreadsheet runs as a formula."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from patternmill.planning.changes import CurrentRow
from patternmill.tables.columns import RESULT_COLUMNS
from patternmill.text import iso_time

if TYPE_CHECKING:
    import pandas as pd

#: A spreadsheet cell holds 32,767 characters; the whole text is in results.jsonl.
CELL_LIMIT = 32_000
_BATCH = 1000
#: The beginning of all our CSV: without it a spreadsheet takes UTF-8 for a legacy encoding, and saves what it misread.
BYTE_ORDER_MARK = codecs.BOM_UTF8
#: The beginning of a formula, with full-width signs too, and behind spaces that a program would leave out.
_FORMULA = r"(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r])"
_DANGEROUS = re.compile(rf"'*{_FORMULA}")
_DEFUSED = re.compile(rf"'+{_FORMULA}")
#: The first characters of cells that need a closer look.
_FIRST = frozenset("'=+-@\uff1d\uff0b\uff0d\uff20")
CATALOG_COLUMNS = (
    *("sku", "status", "product_id", "pattern_id", "category_id", "selections", "prompt"),
    *("since", "retired_at", "run_id"),
)


def defuse(cell: str) -> str:
    """Return the cell as it goes into a CSV file, which no spreadsheet runs.

    `restore(defuse(cell)) == cell` for every cell.

    A cell that begins with `=`, `+`, `-`, `@` (full-width or behind spaces and lines too), a tab or a carriage return
    gets a leading `'`. So does one that has only `'` before that, as otherwise a cell that was `'=x` all along would
    read back as `=x`. Numbers such as `-3` and skus such as `-12` are defused too: which text is harmless is not ours
    to guess.
    """
    first = cell[:1]
    return "'" + cell if (first in _FIRST or first.isspace()) and _DANGEROUS.match(cell) else cell


def defuse_in_workbook(cell: str) -> str:
    """Return the cell as it goes into a workbook, whose cells are typed as text and so are never run.

    `restore(defuse_in_workbook(cell)) == cell` for every cell: only one that looks like a defused one is changed.
    """
    return "'" + cell if cell[:1] == "'" and _DEFUSED.match(cell) else cell


def restore(cell: str) -> str:
    """Return the cell as it was before `defuse`."""
    return cell[1:] if cell[:1] == "'" and _DEFUSED.match(cell) else cell


def shortened(text: str) -> str:
    """Return a text of the service, cut to fit into a cell."""
    return text if len(text) <= CELL_LIMIT else f"{text[:CELL_LIMIT]}… (whole in results.jsonl)"


def csv_bytes(header: Sequence[str], lines: Iterable[Sequence[str]], delimiter: str = ",") -> Iterator[bytes]:
    """Yield a table for spreadsheets: UTF-8 with a byte order mark, RFC 4180 quoting, CRLF, formula cells defused."""
    yield BYTE_ORDER_MARK
    left = chain([header], lines)
    while batch := list(islice(left, _BATCH)):
        text = io.StringIO(newline="")
        # CRLF, not LF: a writer that ends lines with LF leaves a lone CR within a cell unquoted.
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
        writer.writerows(map(defuse, line) for line in batch)
        # A NUL makes a file unreadable.
        yield text.getvalue().replace("\0", "\ufffd").encode("utf-8", "replace")


def catalog_csv(rows: Iterable[CurrentRow]) -> Iterator[bytes]:
    """Yield the bytes of catalog.csv, which has the rows of a catalog in the order of their skus."""
    yield from csv_bytes(CATALOG_COLUMNS, map(_catalog_cells, sorted(rows, key=lambda row: row.sku)))


def _catalog_cells(row: CurrentRow) -> tuple[str, ...]:
    """Return the cells of a row, with the selections as JSON, as tables have no place for objects."""
    content = row.content
    return (
        row.sku,
        "current" if row.retired_at is None else "retired",
        row.product_id,
        row.pattern_id,
        content.category,
        json.dumps(dict(sorted(content.selections.items())), ensure_ascii=False),
        content.prompt,
        iso_time(row.since) or "",
        iso_time(row.retired_at) or "",
        row.run_id,
    )


def table_csv(table: pd.DataFrame, delimiter: str = ",") -> Iterator[bytes]:
    """Yield the bytes of a CSV file of a table of texts, in which several columns may have the same name."""
    yield from csv_bytes(list(table.columns), _lines(table), delimiter)


def table_workbook(table: pd.DataFrame) -> bytes:
    """Return a table of texts as an Excel workbook whose cells are all text. The same rows make the same bytes.

    The person's columns end before the status; the texts from there on are defused, as they would run once somebody
    saves the workbook as CSV.
    """
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE, WriteOnlyCell

    header = list(table.columns)
    own = header.index(RESULT_COLUMNS[0])
    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    for line in chain([header], _lines(table)):
        safe = (*map(defuse_in_workbook, line[:own]), *map(defuse, line[own:]))
        cells = [WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("\ufffd", text)) for text in safe]
        for cell in cells:
            # Without this, a text that begins with `=` becomes a formula.
            cell.number_format, cell.data_type = "@", "s"
        sheet.append(cells)
    target = io.BytesIO()
    book.save(target)
    return _timeless(target)


def _lines(table: pd.DataFrame) -> Iterator[Sequence[str]]:
    # Columns of texts are slow to iterate over.
    columns = (table.iloc[:, at].to_numpy(dtype=object) for at in range(table.shape[1]))
    return zip(*columns, strict=True)


def _timeless(book: io.BytesIO) -> bytes:
    """Return a workbook without the time at which it was written."""
    target = io.BytesIO()
    with ZipFile(book) as written, ZipFile(target, "w", ZIP_DEFLATED) as fixed:
        for name in written.namelist():
            content = re.sub(rb"(<dcterms:\w+[^>]*>)[^<]+", rb"\g<1>2000-01-01T00:00:00Z", written.read(name))
            fixed.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return target.getvalue()
