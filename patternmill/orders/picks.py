"""What a person picked to be ordered, and the products of those rows; all that is wrong is named at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patternmill.catalog.changes import CurrentRow
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.remote import stable_bytes
from patternmill.catalog.rows import header_key, is_results_header, restore, sku_key, tidy
from patternmill.errors import InputRefused
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import PickedLine, RunRecord
from patternmill.ledger.reports.current_rows import PresentRow, present_rows
from patternmill.parameters import MOST_OF_A_PRODUCT
from patternmill.runs.request import OrderRequest
from patternmill.sheets.sheet_reader import read_table
from patternmill.sheets.tables import WRITE_AS_TEXT
from patternmill.states import AttemptState
from patternmill.text import moment, more, plain, readable, shown

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
    """What was picked, and what of it cannot be read, a sentence each."""

    picks: tuple[Pick, ...]
    problems: tuple[str, ...] = ()


def picks_of(request: OrderRequest) -> Picks:
    """Raises InputRefused when the file as a whole cannot be read, or nothing is picked: never everything."""
    named = tuple(Pick(tidy(sku), request.quantity, f"--sku {plain(sku)}") for sku in request.sku)
    if named and request.picks is not None:
        raise InputRefused(
            "Rows are named one by one and in a file of picks.",
            code="picked_twice",
            remedy="Use either --sku or --picks.",
        )
    found = read_picks(request.picks, request.quantity) if request.picks is not None else Picks(named)
    if not found.picks and not found.problems:
        raise InputRefused(
            "Nothing is picked." if request.picks is not None else "No rows are named.",
            code="nothing_picked",
            remedy="Name rows with --sku, or a file with --picks that has yes in its column `picked`.",
        )
    return Picks(found.picks, (*found.problems, *_repeated(found.picks)))


def read_picks(path: Path, quantity: int) -> Picks:
    """`quantity`: of rows that name none. Raises InputRefused."""
    name = plain(path.name, 200)
    table = read_table(stable_bytes(path), name, score=_score)
    columns = _columns(table.header, name)
    picks: list[Pick] = []
    problems: list[str] = []
    for line, written in table.records:
        cells = [tidy(restore(cell) if is_results_header(table.header) else cell) for cell in written]
        read = {column: cells[index] if index < len(cells) else "" for column, index in columns.items()}
        fault = table.sku_fault(line, columns["sku"])
        pick = _pick(read, f"{name}, row {line}", quantity)
        if isinstance(pick, Pick) and fault is not None:
            problems.append(f"{pick.place}: {fault}; {WRITE_AS_TEXT}")
        elif isinstance(pick, Pick):
            picks.append(pick)
        elif pick is not None:
            problems.append(pick)
    return Picks(tuple(picks), tuple(problems))


def _score(header: Sequence[str]) -> tuple[bool, int]:
    keys = set(map(header_key, header))
    return keys >= set(_NEEDED), len(keys & set(_READ))


def _columns(header: Sequence[str], name: str) -> Mapping[str, int]:
    keys = [header_key(cell) for cell in header]
    missing = [column for column in _NEEDED if column not in keys]
    if missing:
        raise refusal(
            FileCode.MISSING_COLUMN,
            f"{name} has no column {' and no column '.join(map(repr, missing))}.",
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


def _repeated(picks: Iterable[Pick]) -> Iterator[str]:
    found = list(picks)
    counts = Counter(sku_key(pick.sku) for pick in found)
    for pick in found:
        if counts[sku_key(pick.sku)] > 1:
            yield f"{pick.place}: {shown(pick.sku)} is picked more than once; write it once, with the sum"


# The products that were picked, by the ledger and not by what a file says.


def picked_lines(
    ledger: Ledger, environment: str, catalog: str, listed: RunRecord | None, found: Picks
) -> tuple[PickedLine, ...]:
    """The lines to order. `listed`: the run whose results were named. Raises InputRefused with everything wrong."""
    current = {row.sku: row for row in ledger.catalog_rows(environment, catalog)}
    of_run = _rows_of(ledger, listed, {pick.sku for pick in found.picks}) if listed is not None else None
    lines: list[PickedLine] = []
    problems = list(found.problems)
    for pick in found.picks:
        now = current.get(pick.sku)
        if of_run is None:
            line = _current_line(pick, now, catalog)
        else:
            assert listed is not None, "its rows were read"
            line = _listed_line(pick, of_run.get(pick.sku), now, listed)
        if isinstance(line, PickedLine):
            lines.append(line)
        else:
            problems.append(f"{pick.place}: {line}")
    if problems:
        raise _refused(problems)
    return tuple(lines)


def _rows_of(ledger: Ledger, record: RunRecord, skus: set[str]) -> Mapping[str, PresentRow]:
    return {row.sku: row for row in present_rows(ledger, record) if row.sku in skus}


def _current_line(pick: Pick, now: CurrentRow | None, catalog: str) -> PickedLine | str:
    if now is None:
        return f"the catalog {catalog!r} has no product for {shown(pick.sku)}; see `patternmill explain`"
    if now.retired_at is not None:
        return f"{shown(pick.sku)} was retired on {moment(now.retired_at)}; leave it out"
    return PickedLine(pick.sku, now.product_key, now.product_id, pick.quantity, pick.note)


def _listed_line(
    pick: Pick, row: PresentRow | None, now: CurrentRow | None, record: RunRecord
) -> PickedLine | str:
    if row is None:
        return f"run {record.run_id} has no row {shown(pick.sku)}; write the sku as its file does"
    made = row.product
    if made is None or made.state is not AttemptState.SUCCEEDED or made.result_id is None:
        return f"{shown(pick.sku)} has no product, as its row is {readable(row.outcome.status.value)}; leave it out"
    assert row.product_key is not None, "it has a product"
    if now is None or now.retired_at is not None:
        return f"the catalog no longer has {shown(pick.sku)}; leave it out"
    if now.product_key != row.product_key:
        return (
            f"{shown(pick.sku)} was made anew since (run {now.run_id}: {now.product_id}); "
            "order from the newer results"
        )
    return PickedLine(pick.sku, row.product_key, made.result_id, pick.quantity, pick.note)


def _refused(problems: Sequence[str]) -> InputRefused:
    listed = "\n".join(
        (*(f"  {text}" for text in problems[:_MOST_PROBLEMS]), *more(len(problems), _MOST_PROBLEMS))
    )
    return InputRefused(
        f"The picks cannot be ordered:\n{listed}\n",
        code="picks_refused",
        remedy="Nothing was sent.",
    )
