"""The rows of a run as results show them: rebuilt from the ledger alone, so that they are always the same, and written.

results.csv, failures.csv and results.jsonl have the input's rows in their order, with what became of each.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.refinements import Refinement
from patternmill.catalog.rows import BYTE_ORDER_MARK, RESULT_COLUMNS, column_letter, defuse
from patternmill.catalog.sheet_choices import READING
from patternmill.catalog.source_rows import with_texts
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord, RunRow
from patternmill.ledger.runs import Attempts, RowOutcome, outcome_of_row
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from patternmill.text import joined


@dataclass(frozen=True, slots=True)
class ItemTrace:
    """One item of one row, with every attempt at it, the first one first."""

    stage: Stage
    key: ItemKey
    attempts: tuple[Attempt, ...]

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def result_id(self) -> str | None:
        """The ID of what was made."""
        last = self.last
        return last.result_id if last is not None and last.state is AttemptState.SUCCEEDED else None


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row as it came in, with its status: what results files are made of."""

    position: int
    #: The row number as a spreadsheet shows it; the header is 1.
    line: int
    sku: str
    #: The cells exactly as read, one a column of the input's header (fewer or more where the row was malformed).
    cells: tuple[str, ...]
    prompt: str
    category_id: str
    selections: Mapping[str, str]
    status: RowStatus
    product_id: str | None = None
    pattern_id: str | None = None
    error_code: str | None = None
    error: str | None = None
    #: What to do about it.
    remedy: str | None = None
    pattern: ItemTrace | None = None
    product: ItemTrace | None = None
    #: What the pattern is built on, in the order in which it is made.
    before: tuple[ItemTrace, ...] = ()
    #: The SHA-256 of the picture that guides the pattern, and what was done to the pattern.
    reference: str | None = None
    refinements: tuple[Refinement, ...] = ()
    #: When its product was ordered, and under which ID; empty where it was not.
    ordered: str = ""

    @property
    def items(self) -> tuple[ItemTrace, ...]:
        """In the order in which they are made."""
        return (*self.before, *(item for item in (self.pattern, self.product) if item is not None))


def input_file(ledger: Ledger, record: RunRecord) -> CatalogFile:
    """The input of a run, with what people had corrected in it."""
    corrected = ledger.texts_of_run(record.run_id, corrected=True)
    file = parsed_input(ledger, record, ColumnMapping.of_record(record.options))
    return with_texts(file, {line: texts for line, (_, texts) in corrected.items()})


def parsed_input(ledger: Ledger, record: RunRecord, mapping: ColumnMapping) -> CatalogFile:
    """The input of a run as it was, its columns found by a mapping. Raises InputRefused where that does not fit."""
    name, raw = record.source.rpartition("/")[2], ledger.input_of(record)
    return parse_catalog(raw, name=name, encoding=record.input_encoding, mapping=mapping, empty=True)


def row_results(ledger: Ledger, record: RunRecord, file: CatalogFile) -> Iterator[RowResult]:
    """Every row of a run, in the order of its file. Rows of a run that has ended are as they were then."""
    for rows, attempts in ledger.rows_with_attempts(record.run_id):
        for row in rows:
            yield row_result(row, file.records[row.position].cells, attempts, record.outcome)


def row_result(
    row: RunRow, cells: tuple[str, ...], attempts: Attempts, run_outcome: Outcome | None
) -> RowResult:
    ended = json.loads(row.outcome) if row.outcome else None
    outcome = RowOutcome.from_json(ended) if ended else outcome_of_row(row, attempts, run_outcome)
    pattern = _trace(Stage.PATTERN, row.pattern_key, attempts, ended)
    if pattern is not None:
        pattern = replace(pattern, stage=row.stages[-1])
    product = _trace(Stage.PRODUCT, row.product_key, attempts, ended)
    kept = json.loads(row.row)
    return RowResult(
        row.position,
        row.line,
        row.sku,
        cells,
        kept.get("prompt", ""),
        kept.get("category", ""),
        kept.get("selections", {}),
        outcome.status,
        product.result_id if product is not None else None,
        pattern.result_id if pattern is not None else None,
        outcome.error_code,
        outcome.error,
        outcome.remedy,
        pattern,
        product,
        tuple(_trace_before(stage, key, attempts, ended) for stage, key in row.chain[:-2]),
        kept.get("reference"),
        tuple(Refinement(*one) for one in kept.get("refinements", ())),
    )


def _trace_before(
    stage: Stage, key: ItemKey, attempts: Attempts, ended: Mapping[str, Any] | None
) -> ItemTrace:
    """The same of what a pattern is built on, whose attempts are fixed by the item's key."""
    kept, was = (ended or {}).get("before", {}).get(key), (ended or {}).get("open_before", {}).get(key)
    return ItemTrace(stage, key, _as_of_then(attempts.get(key, ()), kept, was))


def _trace(
    stage: Stage, key: ItemKey | None, attempts: Attempts, ended: Mapping[str, Any] | None
) -> ItemTrace | None:
    """`ended`: what was fixed as the run ended. Later attempts are left out, and open ones are as they were."""
    if key is None:
        return None
    kept, was = (ended[stage.value], ended.get(f"open_{stage.value}")) if ended is not None else (None, None)
    return ItemTrace(stage, key, _as_of_then(attempts.get(key, ()), kept, was))


def _as_of_then(
    those: tuple[Attempt, ...], kept: int | None, was: Mapping[str, Any] | None
) -> tuple[Attempt, ...]:
    """The first so many (None: all); `was`: the last of them, where it was open."""
    if was is None:
        return those[:kept]
    typed = {
        "state": AttemptState(was["state"]),
        "body": b"",
        "request_id": RequestId(was["request_id"]),
        "item_key": ItemKey(was["item_key"]),
    }
    return (*those[:kept][:-1], Attempt(**{**was, **typed}))


#: A spreadsheet cell holds 32,767 characters; the whole text is in results.jsonl.
CELL_LIMIT = 32_000
_BATCH = 1000


def table(
    run: RunRecord, header: Sequence[str], carried: Sequence[int], rows: Iterable[RowResult]
) -> Iterator[bytes]:
    """The bytes of a results table, a batch of rows at a time; in the delimiter of the input."""
    columns = [*(header[index] for index in carried), *RESULT_COLUMNS]
    lines = ([*_cells(row, len(header), carried), run.run_id] for row in rows)
    return csv_table(columns, lines, run.options.get(READING, {}).get("delimiter") or ",")


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
        **(
            {"before": [{"stage": one.stage} | _trace_object(one) for one in row.before]}
            if row.before
            else {}
        ),
        "cells": {name: row.cells[index] for name, index in columns.items() if index < len(row.cells)},
        "surplus_cells": list(row.cells[width:]),
        "pattern": _item_object(row.pattern),
        "product": _item_object(row.product),
    }


def iso_time(moment: float | datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds, as in 2026-03-01T09:30:00.250Z."""
    if moment is None:
        return None
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def json_bytes(value: object, *, indent: int | None = None) -> bytes:
    """JSON in UTF-8; text that UTF-8 cannot carry (half a surrogate pair, from an odd answer) is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent).encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode()


def _item_object(item: ItemTrace | None) -> dict[str, Any] | None:
    return _trace_object(item) if item is not None else None


def _trace_object(item: ItemTrace) -> dict[str, Any]:
    last = item.last
    return {
        "key": item.key,
        "request_id": last.request_id if last else None,
        "job_id": last.job_id if last else None,
        "picture_url": last.picture_url if last else None,
        "attempts": [_attempt_object(attempt) for attempt in item.attempts],
    }


def _attempt_object(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "state": attempt.state.value,
        "request_id": attempt.request_id,
        "job_id": attempt.job_id,
        "result_id": attempt.result_id,
        "picture_url": attempt.picture_url,
        "error_code": attempt.error_code,
        "error": attempt.error,
        "intended_at": iso_time(attempt.intended_at),
        "accepted_at": iso_time(attempt.accepted_at),
        "ended_at": iso_time(attempt.ended_at),
    }
