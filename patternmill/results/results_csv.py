"""Writes results.csv and failures.csv: the input's columns, rows and order, with what became of each row.

They are for spreadsheets: UTF-8 with a byte order mark, comma separated, RFC 4180 quoting, CRLF, formula cells
defused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    columns = [defuse(header[index]) for index in carried]
    cells_of = _cells_of(len(header), carried)
    yield BYTE_ORDER_MARK
    yield from _encoded([*columns, *RESULT_COLUMNS], (cells_of(row) for row in rows))


def _cells_of(width: int, carried: Sequence[int]) -> Callable[[RowResult], list[str]]:
    """How a row is laid out under the header: missing cells are empty, so that no column shifts."""

    def cells_of(row: RowResult) -> list[str]:
        cells = row.cells
        known = len(cells)
        line = [defuse(cells[index]) if index < known else "" for index in carried]
        line += [defuse(text) for text in _outcome(row, width)]
        return line

    return cells_of


def _outcome(row: RowResult, width: int) -> tuple[str, ...]:
    return (
        row.status.value,
        _writable(row.product_id),
        _writable(row.pattern_id),
        _writable(row.error_code),
        _writable(_explanation(row, width)),
    )


def _explanation(row: RowResult, width: int) -> str:
    """What happened and what to do; with the surplus cells, which have no column."""
    surplus = row.cells[width:]
    more = f"Surplus cells: {json.dumps(surplus, ensure_ascii=False)}" if surplus else ""
    return joined(row.error, row.remedy, more)


def _writable(text: str | None) -> str:
    """Text from outside as a table can hold it: no NUL, which makes a file unreadable, and not endless."""
    if not text:
        return ""
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= CELL_LIMIT else f"{text[:CELL_LIMIT]}… (whole in results.jsonl)"


def _encoded(header: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[bytes]:
    # Loaded for this alone: nothing else of a run needs it, and it takes its time.
    import pandas as pd

    lines = iter(lines)
    batch: list[Sequence[str]] = list(islice(lines, _BATCH))
    first = True
    while batch or first:
        # object: text as it is, without a look at what it might mean.
        frame = pd.DataFrame(batch, columns=list(header), dtype=object)
        # CRLF, not LF: a writer that ends lines with LF leaves a lone CR within a cell unquoted.
        text = frame.to_csv(index=False, header=first, lineterminator="\r\n")
        yield text.encode("utf-8", "replace")
        first, batch = False, list(islice(lines, _BATCH))
