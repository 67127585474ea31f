"""Writes results.csv and failures.csv: the input's columns, rows and order, with what became of each row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from patternmill.catalog.columns import RESULT_COLUMNS
from patternmill.catalog.spreadsheet import BYTE_ORDER_MARK, defuse
from patternmill.ledger.records import RowResult
from patternmill.results.summary import joined

#: A spreadsheet cell holds 32,767 characters; the whole text is in results.jsonl.
CELL_LIMIT = 32_000
_BATCH = 1000


def table(header: Sequence[str], carried: Sequence[int], rows: Iterable[RowResult]) -> Iterator[bytes]:
    """The bytes of a results table, a batch of rows at a time."""
    columns = [*(header[index] for index in carried), *RESULT_COLUMNS]
    return csv_table(columns, (_cells(row, len(header), carried) for row in rows))


def csv_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """A table for spreadsheets: UTF-8 with a byte order mark, RFC 4180 quoting, CRLF, formula cells defused."""
    # Loaded for this alone: nothing else of a run needs it, and it is slow to import.
    import pandas as pd

    yield BYTE_ORDER_MARK
    defused = (list(map(defuse, line)) for line in lines)
    columns, first = list(map(defuse, header)), True
    while (batch := list(islice(defused, _BATCH))) or first:
        # object: text as it is, without a look at what it might mean.
        frame = pd.DataFrame(batch, columns=columns, dtype=object)
        # CRLF, not LF: a writer that ends lines with LF leaves a lone CR within a cell unquoted.
        text = frame.to_csv(index=False, header=first, lineterminator="\r\n")
        # A NUL makes a file unreadable.
        yield text.replace("\0", "\ufffd").encode("utf-8", "replace")
        first = False


def _cells(row: RowResult, width: int, carried: Sequence[int]) -> list[str]:
    """Missing cells are empty, so that no column shifts."""
    cells = row.cells
    known = len(cells)
    return [
        *(cells[index] if index < known else "" for index in carried),
        row.status.value,
        _shortened(row.product_id),
        _shortened(row.pattern_id),
        _shortened(row.error_code),
        _shortened(_explanation(row, width)),
    ]


def _explanation(row: RowResult, width: int) -> str:
    """What happened and what to do; with the surplus cells, which have no column."""
    surplus = row.cells[width:]
    more = f"Surplus cells: {json.dumps(surplus, ensure_ascii=False)}" if surplus else ""
    return joined(row.error, row.remedy, more)


def _shortened(text: str | None) -> str:
    if not text:
        return ""
    return text if len(text) <= CELL_LIMIT else f"{text[:CELL_LIMIT]}… (whole in results.jsonl)"
