"""results.csv, failures.csv and results.jsonl: the input's rows in their order, with what became of each."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from patternmill.catalog.catalog_file import READING, WORKBOOK_FORMATS
from patternmill.catalog.rows import (
    BYTE_ORDER_MARK,
    DECISION_COLUMNS,
    RESULT_COLUMNS,
    RUN_COLUMN,
    column_letter,
    defuse,
    header_key,
    run_cell,
)
from patternmill.ledger.records import RunRecord
from patternmill.ledger.row_outcomes import ItemOutcome
from patternmill.results.row_results import RowResult
from patternmill.text import joined

#: A spreadsheet cell holds 32,767 characters; the whole text is in results.jsonl.
CELL_LIMIT = 32_000
_BATCH = 1000


def table(
    run: RunRecord,
    header: Sequence[str],
    carried: Sequence[int],
    rows: Iterable[RowResult],
    decided: int = 0,
) -> Iterator[bytes]:
    """The bytes of a results table, a batch of rows at a time; in the delimiter of the input.

    `decided`: the place in the ledger of the last decision before it is written.
    """
    columns, lines = _table(run, header, carried, rows, decided)
    return csv_table(columns, lines, _reading(run).get("delimiter") or ",")


def workbook(
    run: RunRecord,
    header: Sequence[str],
    carried: Sequence[int],
    rows: Iterable[RowResult],
    decided: int = 0,
) -> Iterator[bytes]:
    """The same table as an Excel workbook, whose cells are all text. The same rows are the same bytes."""
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE, WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    columns, lines = _table(run, header, carried, rows, decided)
    for line in chain([columns], lines):
        cells = []
        for text in map(defuse, line):
            cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("\ufffd", text))
            cell.number_format, cell.data_type = "@", "s"
            cells.append(cell)
        sheet.append(cells)
    target = io.BytesIO()
    book.save(target)
    yield _timeless(target)


def _timeless(book: io.BytesIO) -> bytes:
    """A workbook without the time at which it was written."""
    target = io.BytesIO()
    with ZipFile(book) as written, ZipFile(target, "w", ZIP_DEFLATED) as fixed:
        for name in written.namelist():
            content = re.sub(rb"(<dcterms:\w+[^>]*>)[^<]+", rb"\g<1>2000-01-01T00:00:00Z", written.read(name))
            fixed.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return target.getvalue()


def is_workbook(run: RunRecord) -> bool:
    """Whether its input was one."""
    return _reading(run).get("format") in WORKBOOK_FORMATS


def _reading(run: RunRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run.options.get(READING, {})
    return found


def _table(
    run: RunRecord, header: Sequence[str], carried: Sequence[int], rows: Iterable[RowResult], decided: int
) -> tuple[list[str], Iterator[list[str]]]:
    names = [header[index] for index in carried]
    # A column of that name in the input stays the input's.
    own = [name for name in DECISION_COLUMNS if name not in map(header_key, names)]
    columns = [*names, *RESULT_COLUMNS[:-1], *own, RUN_COLUMN]
    last = [*[""] * len(own), run_cell(run.run_id, decided)]
    lines = ([*_cells(row, len(header), carried), *last] for row in rows)
    return columns, lines


def csv_table(header: Sequence[str], lines: Iterable[Sequence[str]], delimiter: str = ",") -> Iterator[bytes]:
    """A table for spreadsheets: UTF-8 with a byte order mark, RFC 4180 quoting, CRLF, formula cells defused."""
    yield BYTE_ORDER_MARK
    left = chain([header], lines)
    while batch := list(islice(left, _BATCH)):
        text = io.StringIO(newline="")
        # CRLF, not LF: a writer that ends lines with LF leaves a lone CR within a cell unquoted.
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
        writer.writerows(map(defuse, line) for line in batch)
        # A NUL makes a file unreadable.
        yield text.getvalue().replace("\0", "\ufffd").encode("utf-8", "replace")


def _cells(row: RowResult, width: int, carried: Sequence[int]) -> list[str]:
    """Missing cells are empty, so that no column shifts; surplus ones, which have no column, are with what happened."""
    cells, surplus = row.cells, row.cells[width:]
    known = len(cells)
    more = f"Surplus cells: {json.dumps(surplus, ensure_ascii=False)}" if surplus else ""
    return [
        *(cells[index] if index < known else "" for index in carried),
        row.status.value,
        _shortened(row.product_id),
        _shortened(row.pattern_id),
        _shortened(row.error_code),
        _shortened(joined(row.error, row.remedy, more)),
    ]


def _shortened(text: str | None) -> str:
    if not text:
        return ""
    return text if len(text) <= CELL_LIMIT else f"{text[:CELL_LIMIT]}… (whole in results.jsonl)"


def lines(
    run_id: str, header: Sequence[str], carried: Sequence[int], rows: Iterable[RowResult]
) -> Iterator[bytes]:
    columns = _column_names(header, carried)
    for row in rows:
        yield json_bytes({"run": run_id, **_row_object(len(header), columns, row)}) + b"\n"


def _column_names(header: Sequence[str], carried: Sequence[int]) -> dict[str, int]:
    """Each column's index by its name; columns without a name of their own are distinguished by their letter."""
    columns: dict[str, int] = {}
    for index in carried:
        name = header[index]
        columns[name if name.strip() and name not in columns else f"{name}[{column_letter(index)}]"] = index
    return columns


def _row_object(width: int, columns: Mapping[str, int], row: RowResult) -> dict[str, Any]:
    """Exact cells: a missing one is absent, surplus ones are listed."""
    return {
        "line": row.line,
        "sku": row.sku,
        "status": row.status.value,
        "product_id": row.product_id,
        "pattern_id": row.pattern_id,
        "error_code": row.error_code,
        "error": row.error,
        "remedy": row.remedy,
        "prompt": row.prompt,
        "category_id": row.category_id,
        "selections": dict(sorted(row.selections.items())),
        "cells": {name: row.cells[index] for name, index in columns.items() if index < len(row.cells)},
        "surplus_cells": list(row.cells[width:]),
        "before": [{"stage": item.stage} | _item_object(item) for item in row.items[:-2]],
        "pattern": _item_object(row.pattern) if row.pattern else None,
        "product": _item_object(row.product) if row.product else None,
    }


def iso_time(moment: float | datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds, as in 2026-03-01T09:30:00.250Z."""
    if moment is None:
        return None
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def json_bytes(value: object, *, indent: int | None = None, sort_keys: bool = False) -> bytes:
    """JSON in UTF-8; text that UTF-8 cannot carry (half a surrogate pair, from an odd answer) is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys).encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, sort_keys=sort_keys).encode()


#: Its stage is where it stands.
_ITEM_FIELDS = [field.name for field in fields(ItemOutcome)][1:]


def _item_object(item: ItemOutcome) -> dict[str, Any]:
    return {name: getattr(item, name) for name in _ITEM_FIELDS} | {"since": iso_time(item.since)}
