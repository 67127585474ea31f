"""The rows that a person picked in a sheet: sku and picked, and maybe quantity and note; what is wrong is named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.remote import stable_bytes
from patternmill.catalog.rows import header_key, is_results_header, restore, sku_key, tidy
from patternmill.errors import InputRefused
from patternmill.parameters import MOST_OF_A_PRODUCT
from patternmill.sheets.sheet_reader import read_table
from patternmill.text import more, plain, shown

_YES = frozenset({"yes", "y", "x", "1", "true", "✓", "✔"})
_NO = frozenset({"no", "n", "0", "false", "-", ""})
_QUANTITY = re.compile(r"[0-9]{1,9}")
_MOST_PROBLEMS = 40
_NEEDED = ("sku", "picked")
_READ = (*_NEEDED, "quantity", "note")


@dataclass(frozen=True)
class Pick:
    """One row that a person picked; `place` is where, for messages."""

    sku: str
    quantity: int
    place: str
    note: str | None = None


@dataclass(frozen=True)
class Picks:
    """What was picked, in which sheet if in one, and what of it cannot be read, a sentence each."""

    picks: tuple[Pick, ...]
    problems: tuple[str, ...] = ()
    file: str | None = None


def read_picks(path: Path, quantity: int) -> Picks:
    """`quantity`: of rows that name none. Raises InputRefused for a sheet as a whole, and where nothing is picked."""
    name = plain(path.name, 200)
    table = read_table(stable_bytes(path), name, score=_score)
    columns = _columns(table.header, name)
    picks: list[Pick] = []
    problems: list[str] = []
    for line, written in table.records:
        cells = [tidy(restore(cell) if is_results_header(table.header) else cell) for cell in written]
        read = {column: cells[index] if index < len(cells) else "" for column, index in columns.items()}
        fault = table.fault(line, columns["sku"], is_sku=True)
        pick = _pick(read, f"{name}, row {line}", quantity)
        if isinstance(pick, Pick) and fault is not None:
            problems.append(f"{pick.place}: {'; '.join(fault)}")
        elif isinstance(pick, Pick):
            picks.append(pick)
        elif pick is not None:
            problems.append(pick)
    if not picks and not problems:
        raise InputRefused(
            f"Nothing is picked in {name}.", code="nothing_picked", remedy="Write yes in its column `picked`."
        )
    return Picks(tuple(picks), (*problems, *repeated(picks)), name)


def skus_picked(path: Path) -> tuple[str, ...]:
    """Raises InputRefused, also when one of its rows cannot be read."""
    found = read_picks(path, 1)
    if found.problems:
        raise picks_refused(found.problems, found.file)
    return tuple(pick.sku for pick in found.picks)


def rows_refused(what: str, problems: Sequence[str], *, code: str, remedy: str) -> InputRefused:
    """The refusal that names everything that is wrong, with its place."""
    lines = [f"  {text}" for text in problems[:_MOST_PROBLEMS]] + list(more(len(problems), _MOST_PROBLEMS))
    return InputRefused("\n".join([f"{what}:", *lines, ""]), code=code, remedy=remedy)


def picks_refused(problems: Sequence[str], file: str | None) -> InputRefused:
    what = f"The picks in {file} cannot be used" if file else "The order cannot be made"
    return rows_refused(what, problems, code="picks_refused", remedy="Nothing was sent.")


def _score(header: Sequence[str]) -> tuple[bool, int]:
    keys = set(map(header_key, header))
    return keys >= set(_NEEDED), len(keys & set(_READ))


def _columns(header: Sequence[str], name: str) -> Mapping[str, int]:
    keys = [header_key(cell) for cell in header]
    missing = [column for column in _NEEDED if column not in keys]
    if missing:
        raise refusal(
            FileCode.MISSING_COLUMN,
            f"{name} has no column {' or '.join(map(repr, missing))}.",
            f"Add {'them' if len(missing) > 1 else 'it'} to the first row: sku, picked, and maybe quantity and note.",
        )
    twice = [column for column in _READ if keys.count(column) > 1]
    if twice:
        raise refusal(
            FileCode.DUPLICATE_HEADER, f"{name} has the column {twice[0]!r} twice.", "Delete one of them."
        )
    return {column: keys.index(column) for column in _READ if column in keys}


def _pick(cells: Mapping[str, str], row: str, default: int) -> Pick | str | None:
    """The pick; None for a row that was not picked; text for what is wrong with it."""
    picked, quantity = cells["picked"].casefold(), cells.get("quantity", "")
    if picked in _NO:
        return None
    if picked not in _YES:
        return f"{row}, column picked: {shown(cells['picked'])} is neither yes nor no; write yes, or leave it empty"
    if not cells["sku"]:
        return f"{row}, column sku: it is picked and has no sku; write the row's sku"
    if quantity and (not _QUANTITY.fullmatch(quantity) or not 1 <= int(quantity) <= MOST_OF_A_PRODUCT):
        bounds = f"from 1 to {MOST_OF_A_PRODUCT:,}"
        return f"{row}, column quantity: {shown(quantity)} is no whole number {bounds}; correct it"
    return Pick(
        cells["sku"], int(quantity) if quantity else default, f"{row}, column sku", cells.get("note") or None
    )


def repeated(picks: Sequence[Pick]) -> Iterator[str]:
    """What is wrong with rows that are picked more than once."""
    counts = Counter(sku_key(pick.sku) for pick in picks)
    for pick in picks:
        if counts[sku_key(pick.sku)] > 1:
            yield f"{pick.place}: {shown(pick.sku)} is picked more than once; write it once, with the sum"
