"""Reads the rows that a person picked in a sheet with the columns sku and picked, and maybe quantity and note."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey
from patternmill.parameters import MOST_OF_A_PRODUCT
from patternmill.planning.rows import sku_key, tidy
from patternmill.reading import FileCode, refusal, stable_bytes
from patternmill.tables.columns import header_key, is_results_header
from patternmill.tables.written import restore
from patternmill.text import more, plain, shown

_YES = frozenset({"yes", "y", "x", "1", "true", "✓", "✔"})
_NO = frozenset({"no", "n", "0", "false", "-", ""})
_QUANTITY = re.compile(r"[0-9]{1,9}")
_MOST_PROBLEMS = 40
_NEEDED = ("sku", "picked")
_READ = (*_NEEDED, "quantity", "note", "product_id")


@dataclass(frozen=True)
class Pick:
    """One row that a person picked; `place` says where, for messages."""

    sku: str
    quantity: int
    place: str
    note: str | None = None
    #: What the person looked at: the product that the file names for the row, or the pattern that the file picks.
    product_id: str | None = None
    take: ItemKey | None = None


@dataclass(frozen=True)
class Picks:
    """The rows that were picked, the sheet that names them, and a sentence on each row that cannot be read."""

    picks: tuple[Pick, ...]
    problems: tuple[str, ...] = ()
    file: str | None = None
    #: Sentences on what a person should know of the file.
    note: str = ""
    #: Whether a person named the rows, in a file or one by one; otherwise they are all rows that are picked.
    are_named: bool = True

    @property
    def skus(self) -> frozenset[str]:
        return frozenset(pick.sku for pick in self.picks)


def read_picks(path: Path, quantity: int) -> Picks:
    """Read a sheet of picks; `quantity` is that of rows that name none.

    Raises InputRefused for a sheet as a whole, and where nothing is picked.
    """
    name = plain(path.name, 200)
    # pandas takes a while to load.
    from patternmill.tables.sheet import parse_sheet

    sheet = parse_sheet(stable_bytes(path), name, _score)
    columns, written = _columns(sheet.header, name), restore if is_results_header(sheet.header) else str
    picks: list[Pick] = []
    problems: list[str] = []
    for line, cells in sheet.records():
        texts = {column: tidy(written(cells[at])) for column, at in columns.items()}
        if texts["picked"].casefold() in _NO:
            continue
        try:
            pick = _pick(texts, f"{name}, row {line}", quantity)
            if (fault := sheet.fault(line, columns["sku"], is_sku=True)) is not None:
                raise ValueError(f"{pick.place}: {'; '.join(fault)}")
            picks.append(pick)
        except ValueError as error:
            problems.append(str(error))
    if not picks and not problems:
        raise InputRefused(
            f"Nothing is picked in {name}.", code="nothing_picked", remedy="Write yes in its column `picked`."
        )
    return Picks(tuple(picks), (*problems, *repeated(picks)), name)


def skus_picked(path: Path) -> tuple[str, ...]:
    """Return the skus that are picked. Raises InputRefused, also when one of the rows cannot be read."""
    sheet = read_picks(path, 1)
    if sheet.problems:
        raise picks_refused(sheet.problems, sheet.file)
    return tuple(pick.sku for pick in sheet.picks)


def rows_refused(what: str, problems: Sequence[str], *, code: str, remedy: str) -> InputRefused:
    """Return the refusal that names everything that is wrong, each with its place."""
    lines = [f"  {text}" for text in problems[:_MOST_PROBLEMS]] + list(more(len(problems), _MOST_PROBLEMS))
    return InputRefused("\n".join([f"{what}:", *lines, ""]), code=code, remedy=remedy)


def picks_refused(problems: Sequence[str], file: str | None) -> InputRefused:
    """Return the refusal of picks, in a file or on the command line."""
    what = f"The picks in {file} cannot be used" if file else "The order cannot be made"
    return rows_refused(what, problems, code="picks_refused", remedy="Nothing was sent.")


def repeated(picks: Sequence[Pick]) -> Iterator[str]:
    """Yield what is wrong with rows that are picked more than once."""
    counts = Counter(sku_key(pick.sku) for pick in picks)
    for pick in picks:
        if counts[sku_key(pick.sku)] > 1:
            yield f"{pick.place}: {shown(pick.sku)} is picked more than once; write it once, with the sum"


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


def _pick(texts: Mapping[str, str], row: str, default: int) -> Pick:
    """Return the pick of a row. Raises ValueError, which says what is wrong."""
    sku, quantity = texts["sku"], texts.get("quantity") or str(default)
    if texts["picked"].casefold() not in _YES:
        word = shown(texts["picked"])
        raise ValueError(f"{row}, column picked: {word} is neither yes nor no; write yes, or leave it empty")
    if not sku:
        raise ValueError(f"{row}, column sku: it is picked and has no sku; write the row's sku")
    if not _QUANTITY.fullmatch(quantity) or not 1 <= int(quantity) <= MOST_OF_A_PRODUCT:
        bounds = f"from 1 to {MOST_OF_A_PRODUCT:,}"
        raise ValueError(f"{row}, column quantity: {shown(quantity)} is no whole number {bounds}; correct it")
    note, product_id = texts.get("note") or None, texts.get("product_id") or None
    return Pick(sku, int(quantity), f"{row}, column sku", note, product_id)
