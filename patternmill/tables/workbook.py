"""Reads a workbook in a process of its own: a small file can make the parser ask for more memory than there is."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from patternmill.errors import InputRefused

_COMMAND = (sys.executable, "-I", str(Path(__file__).with_name("workbook_parser.py")))
_SECONDS = 120


@dataclass(frozen=True)
class Worksheet:
    """A worksheet as texts; `kinds` says of each cell that is no text what it is, by row number and position."""

    name: str
    rows: list[list[str]]
    kinds: dict[tuple[int, int], str]


def read_workbook(raw: bytes, name: str) -> list[Worksheet]:
    """Return the visible worksheets that have anything in them. Raises InputRefused."""
    try:
        done = subprocess.run(_COMMAND, input=raw, capture_output=True, timeout=_SECONDS)
        sheets = json.loads(done.stdout) if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError):
        sheets = None
    if sheets is None:
        message = f"{name} is no workbook that can be read, is damaged, has a password, or is too large."
        raise InputRefused("file_unreadable", message, "Open it in its program, and save it again or as CSV.")
    return [Worksheet(kinds={(row, at): kind for row, at, kind in one.pop("odd")}, **one) for one in sheets]
