"""The place where a quote was opened: the CSV reader reports that a record is malformed, but not where that began."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patternmill.catalog.problems import FileCode, refusal
from patternmill.errors import InputRefused

#: Characters of a record that are looked at one by one: some seconds at most.
LONGEST_SCAN = 4_000_000


@dataclass(frozen=True)
class QuoteFault:
    """Physical lines, from 0 at the record's first; `noticed` is None when the file ended first."""

    opened: int
    noticed: int | None


def find_quote_fault(lines: Iterable[str]) -> QuoteFault | None:
    """Scan one record from its first physical line; None when its quotes are right."""
    state, opened = "start", 0
    for number, line in enumerate(lines):
        for character in line:
            before, state = state, _next_state(state, character)
            if state == "quoted" and before == "start":
                opened = number
            if state == "wrong":
                return QuoteFault(opened, number)
        if state == "start" and line.endswith(("\n", "\r")):
            return None
    return QuoteFault(opened, None) if state == "quoted" else None


def _at_most(lines: Iterable[str], characters: int) -> Iterator[str]:
    for line in lines:
        yield line[:characters]
        characters -= len(line)
        if characters <= 0:
            return


def _next_state(state: str, character: str) -> str:
    if state == "quoted":
        return "closing" if character == '"' else "quoted"
    if character in ",\r\n":
        return "start"
    if character == '"':
        return {"start": "quoted", "closing": "quoted"}.get(state, "plain")
    return "wrong" if state == "closing" else "plain"


def explain(error: csv.Error, name: str, row: int, first_line: int, lines: Iterable[str]) -> InputRefused:
    """Why the record in `row`, which begins on physical line `first_line` (from 1), cannot be read."""
    scanned = list(_at_most(lines, LONGEST_SCAN))
    fault = find_quote_fault(scanned)
    unfinished = fault is not None and fault.noticed is None and sum(map(len, scanned)) >= LONGEST_SCAN
    if fault is None or unfinished:
        return _too_long(name, row, error)
    line = first_line + fault.opened
    place = f"row {row}" if row == line else f"row {row} (line {line} of the text file)"
    if fault.noticed is None or fault.noticed > fault.opened:
        return refusal(
            FileCode.OPEN_QUOTE,
            f'{name}: the quote (") that opens a cell in {place} is not closed where the cell ends.',
            'Close it there, or remove it. A quote within a quoted cell is written twice ("").',
        )
    return refusal(
        FileCode.STRAY_QUOTE,
        f'{name}: in {place} something follows the quote (") that closes a cell.',
        'A quote within a quoted cell is written twice (""); after the closing one comes a comma.',
    )


def _too_long(name: str, row: int, error: csv.Error) -> InputRefused:
    if "field limit" not in str(error):
        return refusal(
            FileCode.STRAY_QUOTE, f"{name}: row {row} cannot be read: {error}.", "Look at that row."
        )
    return refusal(
        FileCode.CELL_TOO_LONG,
        f"{name}: a cell in row {row} is longer than {csv.field_size_limit()} characters.",
        'Shorten it, or take its column out of the file. Is a quote (") opened there and not closed?',
    )
