"""Workbooks (.xlsx, .ods): parsed by a process of its own with little memory and time, and which worksheet is meant."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from patternmill.catalog.catalog_file import NumberedRow, SheetChoices, SheetLayout
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.errors import InputRefused
from patternmill.sheets.tables import Score, Table, Unfit, rectangular, table_of
from patternmill.sheets.text_encodings import not_read
from patternmill.sheets.workbook_parser import DAMAGED, ERRORS, UNKNOWN
from patternmill.text import plain, plural, shown

_PARSER = Path(__file__).with_name("workbook_parser.py")
_MEMORY = 2 << 30
_MOST_NAMED = 8


def workbook_tables(
    raw: bytes, name: str, choices: SheetChoices, score: Score, reading: Reading
) -> list[Table]:
    """The worksheet that was chosen, or those that can be meant as well as one another. Raises InputRefused."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as parsed:
        source.write(raw)
        source.seek(0)
        _parse(source.fileno(), parsed.fileno(), choices.get("worksheet"), reading)
        parsed.seek(0)
        kind, sheets = _sheets(map(json.loads, parsed), name, choices.get("worksheet"))
    layout = SheetLayout(kind, hashlib.sha256(raw).hexdigest())
    tables = [
        table_of(texts, name, replace(layout, worksheet=worksheet), choices.get("header"), score, unfit)
        for worksheet, rows in sheets.items()
        for texts, unfit in (_texts(rows, reading),)
    ]
    whole = [table for table in tables if table.fit[0]]
    most = max(table.fit for table in tables)
    return whole or [table for table in tables if table.fit == most]


def _parse(source: int, target: int, worksheet: str | None, reading: Reading) -> None:
    """From one file into another, both by their descriptors. Raises InputRefused."""
    seconds = reading.time_left()
    limits = (_MEMORY, int(seconds) + 1, 2 * reading.size)
    command = [sys.executable, "-P", str(_PARSER), *map(str, limits), *([worksheet] if worksheet else [])]
    try:
        ended = subprocess.run(
            command,
            stdin=source,
            stdout=target,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            # Each thread of it would take of the memory.
            env=_environment() | {"OPENBLAS_NUM_THREADS": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise reading.too_slow() from None
    if ended.returncode == UNKNOWN:
        raise not_read(reading.name, "no workbook of Excel (.xlsx) or OpenDocument (.ods)")
    if ended.returncode in (DAMAGED, ERRORS):
        what = "is damaged, was not saved whole, or has a password"
        if ended.returncode == ERRORS:
            what = "has errors of formulas in it (`#REF!`, `Err:508`)"
        remedy = "Open it in its program, correct it, and save it again; or export it as CSV."
        raise refusal(FileCode.FILE_UNREADABLE, f"{reading.name} {what}.", remedy)
    if ended.returncode:
        raise reading.too_large(
            f"takes more than {_MEMORY >> 20} MiB of memory, or is damaged",
            "Delete the rows, columns and worksheets without use, and save it again; or export it as CSV.",
        )


def _environment() -> dict[str, str]:
    """Without keys."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PATTERNMILL_")}


def _sheets(lines: Iterator[Any], name: str, asked: str | None) -> tuple[str, dict[str, list[Any]]]:
    """What the file is, and its worksheets with something in them, by their rows."""
    about = next(lines)
    rows: dict[str, list[Any]] = {}
    for line in lines:
        if isinstance(line, str):
            rows[line] = found = []
        else:
            found.append(line)
    if asked is not None and not rows:
        every = ", ".join(map(shown, about["worksheets"][:_MOST_NAMED]))
        raise refusal(
            FileCode.SEVERAL_WORKSHEETS,
            f"{name} has no worksheet {shown(asked)}; it has {every}.",
            "Name one of them in the mapping: `worksheet` under [reading].",
        )
    if not any(rows.values()):
        message = f"{name} has no worksheet with anything in it."
        raise refusal(FileCode.EMPTY_FILE, message, "Is it the right file?")
    return about["format"], {worksheet: found for worksheet, found in rows.items() if found}


def _texts(rows: Iterable[tuple[int, list[Any]]], reading: Reading) -> tuple[tuple[NumberedRow, ...], Unfit]:
    """The rows as texts, and what their cells are that are none."""
    unfit: dict[int, dict[int, str]] = {}
    texts: list[tuple[int, list[str]]] = []
    for number, cells in rows:
        if others := {index: cell[0] for index, cell in enumerate(cells) if not isinstance(cell, str)}:
            unfit[number] = others
        texts.append((number, [cell if isinstance(cell, str) else cell[1] for cell in cells]))
    return rectangular(texts, reading), unfit


def several_worksheets(name: str, tables: Sequence[Table]) -> InputRefused:
    found = ", ".join(
        f"“{plain(table.layout.worksheet or '')}” ({plural(len(table.records), 'row')})"
        for table in tables[:_MOST_NAMED]
    )
    return refusal(
        FileCode.SEVERAL_WORKSHEETS,
        f"{name} has {plural(len(tables), 'worksheet')} that could be meant: {found}.",
        "Name one in its mapping: `worksheet` under [reading].",
    )
