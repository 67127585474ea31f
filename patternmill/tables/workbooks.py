"""Workbooks (.xlsx, .ods), parsed by a process of its own with little memory and time, and without secrets.

A workbook of 1.7 kB makes the library that parses it allocate 550 GB and abort its process, with nothing to catch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patternmill.reading import FileCode, Reading, refusal
from patternmill.tables.text_encodings import not_read
from patternmill.tables.workbook_parser import DAMAGED, ERRORS, UNKNOWN
from patternmill.text import shown

_PARSER = Path(__file__).with_name("workbook_parser.py")
_MEMORY = 2 << 30
_MOST_NAMED = 8


@dataclass(frozen=True)
class Worksheet:
    """The rows of one worksheet as texts, all of one width."""

    name: str
    #: The numbers of hidden rows.
    hidden: Sequence[int] = ()
    has_filter: bool = False
    #: The filled rows, with the numbers that the program shows.
    rows: list[tuple[int, list[str]]] = field(default_factory=list, repr=False)
    #: The cells that are no text, by row number and position: what each is, which is empty for plain numbers, and what
    #: the program shows of a number, where that is known.
    unfit: dict[tuple[int, int], tuple[str, str | None]] = field(default_factory=dict, repr=False)


def parse_workbook(
    raw: bytes, name: str, worksheet: str | None, limits: Reading
) -> tuple[str, list[Worksheet]]:
    """Return what the file is, and its filled worksheets: the one that is named, or the visible ones.

    Raises InputRefused.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(raw)
        source.seek(0)
        _run_parser(source.fileno(), target.fileno(), worksheet, limits)
        target.seek(0)
        lines = map(json.loads, target)
        about = next(lines)
        worksheets = _worksheets(lines, limits)
    if worksheet is not None and not worksheets:
        every = ", ".join(map(shown, about["worksheets"][:_MOST_NAMED]))
        raise refusal(
            FileCode.SEVERAL_WORKSHEETS,
            f"{name} has no worksheet {shown(worksheet)}; it has {every}.",
            "Name one of them in the mapping: `worksheet` under [reading].",
        )
    filled = [sheet for sheet in worksheets if sheet.rows]
    if not filled:
        message = f"{name} has no worksheet with anything in it."
        raise refusal(FileCode.EMPTY_FILE, message, "Is it the right file?")
    return about["format"], filled


def _run_parser(source: int, target: int, worksheet: str | None, limits: Reading) -> None:
    """Parse one file into another, both by their descriptors. Raises InputRefused."""
    seconds = limits.time_left()
    most = (_MEMORY, int(min(seconds, 1e6)) + 1, min(2 * limits.size, sys.maxsize))
    command = [sys.executable, "-P", str(_PARSER), *map(str, most), *([worksheet] if worksheet else [])]
    try:
        ended = subprocess.run(
            command,
            stdin=source,
            stdout=target,
            stderr=subprocess.DEVNULL,
            timeout=min(seconds, 1e6),
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise limits.too_slow() from None
    if ended.returncode == UNKNOWN:
        raise not_read(limits.name, "no workbook of Excel (.xlsx) or OpenDocument (.ods)")
    if ended.returncode in (DAMAGED, ERRORS):
        what = "is damaged, was not saved whole, or has a password"
        if ended.returncode == ERRORS:
            what = "has errors of formulas in it (`#REF!`, `Err:508`)"
        remedy = "Open it in its program, correct it, and save it again; or export it as CSV."
        raise refusal(FileCode.FILE_UNREADABLE, f"{limits.name} {what}.", remedy)
    if ended.returncode:
        raise limits.too_large(
            f"takes more than {_MEMORY >> 20} MiB of memory, or is damaged",
            "Delete the rows, columns and worksheets without use, and save it again; or export it as CSV.",
        )


def _environment() -> dict[str, str]:
    """Return the environment without our keys, and with one thread for numerical libraries, as each takes memory."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PATTERNMILL_")}
    return ours | {"OPENBLAS_NUM_THREADS": "1"}


def _worksheets(lines: Iterable[Any], limits: Reading) -> list[Worksheet]:
    worksheets: list[Worksheet] = []
    for line in lines:
        if isinstance(line, dict):
            worksheets.append(Worksheet(**line))
            continue
        number, texts, odd = line
        worksheet = worksheets[-1]
        if not worksheet.rows:
            limits.check_columns(len(texts))
        limits.check_rows(number)
        worksheet.rows.append((number, texts))
        worksheet.unfit.update(
            {(number, int(at)): (what, displayed) for at, (what, displayed) in odd.items()}
        )
    return worksheets
