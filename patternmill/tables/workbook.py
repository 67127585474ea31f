"""Reads a workbook in a process of its own: a small file can make the parser ask for more memory than there is."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from patternmill.errors import InputRefused
from patternmill.tables.mapping import Proposal, SheetMapping, Unsaid, either
from patternmill.text import counted, shown

#: Beginnings of the files that are read here, or named for what they are.
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_COMMAND = (sys.executable, "-I", str(Path(__file__).with_name("workbook_parser.py")))
_SECONDS, _DIED = 120, 3
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_AGAIN = "Save it as .xlsx without a password, or as CSV."
_LITERAL = r'(?:"[^"]*"|\\.|[-/ ])*'


class Kind(NamedTuple):
    """A cell that is no text: what it is, and the format of a number that is not shown as it is."""

    what: str
    format: str = ""


@dataclass(frozen=True)
class Worksheet:
    """A worksheet as texts; `kinds` are of cells that are no texts, by row number and position."""

    name: str
    rows: list[list[str]]
    kinds: dict[tuple[int, int], Kind]
    hidden: list[int]
    has_filter: bool


def _several(name: str, sheets: Sequence[Worksheet]) -> Unsaid:
    """Return the refusal of a workbook of which several worksheets could be meant."""
    lines = [Proposal("reading", "worksheet", one.name) for one in sheets]
    names = ", ".join(shown(one.name) for one in sheets)
    message = f"{name} has {counted(len(sheets), 'worksheet')} that could be meant: {names}."
    remedy = "Name one in its mapping: `worksheet` under [reading]."
    return Unsaid("several_worksheets", message, remedy, [either(lines)])


def read_worksheet(raw: bytes, name: str, mapping: SheetMapping) -> Worksheet:
    """Return the worksheet that has a catalog's columns, or that the mapping names. Raises InputRefused."""
    sheets, asked = _read_workbook(raw, name), mapping.reading.worksheet
    if not sheets:
        raise InputRefused("empty_file", f"{name} has nothing in its worksheets.", "Is it the right file?")
    if asked:
        sheets = [one for one in sheets if one.name == asked] or sheets
        if sheets[0].name != asked:
            raise _several(name, sheets)
        return sheets[0]
    best = {one.name: max(mapping.scores(one.rows[:20])) for one in sheets}
    fit = [one for one in sheets if best[one.name][0]] or [max(sheets, key=lambda one: best[one.name])]
    if len(fit) > 1:
        raise _several(name, fit)
    return fit[0]


def _read_workbook(raw: bytes, name: str) -> list[Worksheet]:
    """Return the visible worksheets that have anything in them."""
    if not raw.startswith(b"PK"):
        what = "is protected by a password" if _ENCRYPTED in raw else "is an old Excel workbook (.xls)"
        raise InputRefused("not_csv", f"{name} {what}.", _AGAIN)
    try:
        # Without our environment: the parser of a stranger's file needs no key.
        done = subprocess.run(_COMMAND, input=raw, capture_output=True, timeout=_SECONDS, env={})
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(_COMMAND, _DIED)
    if done.returncode == _DIED or done.returncode < 0:
        message = f"{name} takes more memory or time to read than a workbook may."
        raise InputRefused("file_too_large", message, "Copy its rows into a new workbook, or save it as CSV.")
    if done.returncode:
        message = f"{name} is damaged, or was not saved whole: its workbook cannot be read."
        raise InputRefused("file_unreadable", message, "Open it in its program, and save it again or as CSV.")
    sheets = json.loads(done.stdout)
    if isinstance(sheets, str):
        raise InputRefused("not_csv", f"{name} {sheets}.", _AGAIN)
    for one in sheets:
        one["kinds"] = {tuple(place): Kind(what, code) for place, what, code in one.pop("odd")}
    return [Worksheet(**one) for one in sheets]


def number_as_shown(text: str, kind: Kind) -> str | None:
    """Return what a spreadsheet shows of a number (`00012` of 12 in `00000`); None where that is not told."""
    if kind.what != "a number" or not kind.format:
        return text if kind.what == "a number" else None
    found = re.fullmatch(rf"({_LITERAL})([0#]+)({_LITERAL})(?:;.*)?", kind.format)
    if not found or not text.isdecimal():
        return None
    before, after = (re.sub(r'["\\]', "", found[at]) for at in (1, 3))
    return before + text.zfill(found[2].count("0")) + after


def hidden_note(sheet: Worksheet, skus: Mapping[int, str]) -> Iterator[str]:
    """Yield a note about the rows that a person who looks at the sheet cannot see. `skus` are by row number."""
    spans: list[list[int]] = []
    hidden = sorted(skus.keys() & set(sheet.hidden))
    for row in hidden:
        if not spans or row > spans[-1][-1] + 1:
            spans.append([row])
        spans[-1][1:] = [row]
    rows = ", ".join(f"{first} to {last}" if first < last else f"{first}" for first, last in spans[:8])
    if hidden:
        names = counted(len(set(map(skus.__getitem__, hidden))), "sku")
        where = "hidden in the workbook" + (", which has a filter" if sheet.has_filter else "")
        more = ", ..." if len(spans) > 8 else ""
        yield (
            f"{len(hidden):,} of {counted(len(skus), 'row')} are {where}: row {rows}{more} ({names}). They are made "
            "like the others; delete them there, if that is not meant."
        )
