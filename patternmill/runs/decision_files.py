"""Decisions in files: the page's decisions.csv, and the columns `decision` and `note` of a results.csv."""

from __future__ import annotations

import getpass
import math
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.events import Decision, last_decisions, record_decisions, storable
from patternmill.ledger.ledger import Ledger, every_ledger
from patternmill.ledger.records import RunRecord
from patternmill.planning.rows import sku_key, tidy
from patternmill.reading import stable_bytes
from patternmill.runs.catalog_takes import CatalogTakes
from patternmill.runs.origin import require_environment
from patternmill.runs.recorded_rows import input_file, run_results
from patternmill.settings import Settings
from patternmill.states import Decided, RowStatus
from patternmill.tables.columns import DECISION_COLUMNS, RUN_COLUMN, header_key, read_run_cell, run_cell
from patternmill.tables.picks import rows_refused
from patternmill.tables.written import restore
from patternmill.text import plain, plural, shown

if TYPE_CHECKING:
    from patternmill.tables.results import ResultLine

#: All columns of the page's file. In a sheet with others, a column `take` is the person's own.
PAGE_COLUMNS = (RUN_COLUMN, "sku", "take", *DECISION_COLUMNS)
_DECISION = DECISION_COLUMNS[0]
_NEEDED = frozenset({RUN_COLUMN, "sku", _DECISION})
_NAMESPACE = UUID("0d2b7a5e-93c1-5f0e-8a44-5a1c7e0f6b32")
#: The most rows that a sentence names.
_MOST_NAMED = 5
_WORDS = "pick, reject, again, later or undecided"


@dataclass(frozen=True)
class DecisionsFile:
    """The decisions in a file about patterns of a catalog, with the skus of the rows that name each."""

    decisions: tuple[Decision, ...]
    skus: Mapping[ItemKey, tuple[str, ...]]
    #: The skus whose decisions no longer count: there is a later one about the same pattern.
    left: tuple[str, ...] = ()
    #: The skus that the file does not name, and that share a pattern with one that it names.
    also: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Return what a person should know: which other rows the decisions affect, and which decisions do not count."""
        notes = {
            "They count for rows that share these patterns, too: also": self.also,
            "Decided again since that file was written, and left so:": sorted(self.left),
        }
        return " ".join(f"{what} {_named(skus)}." for what, skus in notes.items() if skus)

    def decided(self, *verdicts: Decided) -> tuple[str, ...]:
        """Return the skus of the rows whose decision is one of these."""
        items = [decision.item for decision in self.decisions if decision.verdict in verdicts]
        return tuple(sku for item in items for sku in self.skus[item])

    def not_overtaken(self, ledger: Ledger, record: RunRecord) -> DecisionsFile:
        """Return the file without the decisions that later ones have replaced."""
        last = last_decisions(ledger, record.environment, record.catalog)
        latest = [(new, last.get(new.item, new)) for new in self.decisions]
        still = [new for new, now in latest if now.id == new.id or now.sequence <= new.sequence]
        left = [sku for new in self.decisions if new not in still for sku in self.skus[new.item]]
        return replace(self, decisions=tuple(still), left=(*self.left, *left))


def _named(skus: Sequence[str]) -> str:
    """Return the first skus, and how many more there are."""
    further = f" and {len(skus) - _MOST_NAMED:,} more" if len(skus) > _MOST_NAMED else ""
    return f"{', '.join(map(plain, skus[:_MOST_NAMED]))}{further}"


def decided_run(path: Path) -> RunId | None:
    """Return a run that the decisions in a file are about; None for a file without decisions, or one of picks.

    Raises InputRefused.
    """
    sheet = _Sheet.read(path)
    return None if sheet.has_picks else next((line.run_id for line in sheet.lines if line.word), None)


def read_decisions(ledger: Ledger, record: RunRecord, path: Path) -> DecisionsFile:
    """Return the decisions in a file about patterns of a run's catalog. Writes nothing.

    Raises InputRefused, which lists everything that is wrong: unknown patterns and takes, rows that contradict each
    other, words that are no decision.
    """
    sheet = _Sheet.read(path)
    reader = _Reader(ledger, record, sheet)
    decided: list[tuple[int, str, Decision]] = []
    problems: list[str] = []
    for line in sheet.lines:
        try:
            if (read := reader.decision(line)) is not None:
                decided.append((line.number, *read))
        except ValueError as error:
            problems.append(f"row {line.number}{error}")
    problems += _contradictions(decided)
    if problems:
        raise _refused(path, problems)
    decisions = {decision.item: decision for _, _, decision in decided}
    named = {item: tuple(sku for _, sku, other in decided if other.item == item) for item in decisions}
    also = tuple(sku for item in decisions for sku in reader.sharing(item) if sku not in named[item])
    file = DecisionsFile(tuple(decisions.values()), named, also=also)
    return file.not_overtaken(ledger, record)


def keep_decisions(ledger: Ledger, record: RunRecord, file: DecisionsFile) -> str:
    """Record decisions, each once; return a sentence that says how many were new, and which no longer count."""
    with ledger.transaction():
        file = file.not_overtaken(ledger, record)
        new = set(record_decisions(ledger, record.run_id, file.decisions))
    known = len(file.decisions) - len(new)
    return f"{plural(len(new), 'decision')} recorded, {known} known before. {file.note}".strip()


def record_file(settings: Settings, path: Path, *, plan_only: bool = False) -> str | None:
    """Record the decisions in the page's file, in the environment of the settings; return a sentence about them.

    Returns None for any other file. `plan_only`: only read them. Raises InputRefused as `read_decisions` does.
    """
    if not _is_of_page(path):
        return None
    run_id = decided_run(path)
    if run_id is None:
        return "0 decisions recorded, 0 known before."
    for ledger in every_ledger(settings):
        record = ledger.runs.get(run_id)
        if record is not None:
            require_environment(path.name, record, None, settings)
            file = read_decisions(ledger, record, path)
            if plan_only:
                return f"To be recorded: {plural(len(file.decisions), 'decision')}. {file.note}".strip()
            return keep_decisions(ledger, record, file)
    raise _refused(path, [f"no ledger here has run {plain(run_id)}; use the one that it is in"])


def _is_of_page(path: Path) -> bool:
    """Return whether a file begins as the page writes its own, or as a spreadsheet program saves that."""
    try:
        with path.open("rb") as file:
            first = file.read(4096).decode("utf-8-sig", "replace").partition("\n")[0]
    except OSError:
        return False
    return {header_key(cell.strip('" ')) for cell in re.split("[,;\t]", first.strip())} == {*PAGE_COLUMNS}


@dataclass(frozen=True)
class _Line:
    """A line of a file that may have a decision; texts that it lacks are empty."""

    number: int
    run_id: RunId
    #: The place in the ledger of the last decision before the file was written; 0 if there was none.
    sequence: int
    sku: str
    take: str
    word: str
    note: str

    @classmethod
    def read(cls, number: int, cells: Mapping[str, str]) -> _Line:
        run, *texts = (storable(tidy(restore(cells.get(name, "")))) for name in PAGE_COLUMNS)
        run_id, sequence = read_run_cell(run)
        return cls(number, RunId(run_id), sequence, *texts)


@dataclass(frozen=True)
class _Sheet:
    """A file that may have decisions."""

    lines: Sequence[_Line]
    is_of_page: bool
    has_picks: bool

    @classmethod
    def read(cls, path: Path) -> _Sheet:
        """Read a file; it has no lines if it has no columns for decisions. Raises InputRefused."""
        # Imported here because pandas takes a while to load.
        from patternmill.tables.sheet import parse_sheet

        sheet = parse_sheet(stable_bytes(path), plain(path.name, 200), _score)
        keys = [header_key(cell) for cell in sheet.header]
        records = sheet.records() if _NEEDED.issubset(keys) else ()
        lines = [_Line.read(number, dict(zip(keys, cells, strict=False))) for number, cells in records]
        return cls(lines, set(keys) == set(PAGE_COLUMNS), "picked" in keys)


@dataclass(frozen=True)
class _SheetRun:
    """A run that a file names, with its rows as they are now, by the keys of their skus."""

    record: RunRecord
    rows: Mapping[str, ResultLine]
    #: The cells of the input's own column `decision`, if it has one, by row number.
    own_texts: Mapping[int, str]


class _Reader:
    """Reads the decisions in a file, by the rows of its runs and the takes of their patterns."""

    def __init__(self, ledger: Ledger, record: RunRecord, sheet: _Sheet) -> None:
        self._ledger, self._sheet = ledger, sheet
        self._takes = CatalogTakes(ledger, record.environment, record.catalog)
        named = {line.run_id for line in sheet.lines if line.word} - {record.run_id}
        others = filter(None, map(ledger.runs.get, sorted(named, reverse=True)))
        scope = record.environment, record.catalog
        records = [record, *(other for other in others if (other.environment, other.catalog) == scope)]
        #: The given run comes first, then the others, the newest first.
        self._runs = {each.run_id: self._read_run(each) for each in records}
        #: The run of lines that name none, or an unknown one.
        self._newest = self._runs[record.run_id]
        self._rows = dict(ChainMap(*(dict(run.rows) for run in self._runs.values()))).values()

    def _read_run(self, record: RunRecord) -> _SheetRun:
        file = input_file(self._ledger, record)
        # The page's file has no columns of the input.
        kept = () if self._sheet.is_of_page else file.columns.kept
        own = next((at for at in kept if header_key(file.sheet.header[at]) == _DECISION), None)
        texts = {} if own is None else {number: tidy(cells[own]) for number, cells in file.sheet.records()}
        rows = run_results(self._ledger, record, file, now=True).read().lines
        return _SheetRun(record, {sku_key(row.sku): row for row in rows}, texts)

    def decision(self, line: _Line) -> tuple[str, Decision] | None:
        """Return the sku of a line and its decision; None where a person wrote none. Raises ValueError, which says why.

        Its ID follows from what the line says, so that a file that is read again records nothing new.
        """
        run = self._runs.get(line.run_id, self._newest)
        row = run.rows.get(sku_key(line.sku))
        if not line.word or (row is not None and line.word == run.own_texts.get(row.line)):
            return None
        if line.word.casefold() not in list(Decided):
            raise ValueError(f", column {_DECISION}: {shown(line.word)} is no decision: write {_WORDS}")
        verdict, run_id = Decided(line.word.casefold()), run.record.run_id
        item = self._item(run.record, row, verdict, line.take) if row is not None else None
        if row is None or item is None or item not in self._takes.made:
            what = f"take {plain(line.take)}" if self._sheet.is_of_page else "pattern"
            raise ValueError(f": run {run_id} has no {what} for {shown(line.sku)}; empty the cell")
        if line.sequence > (latest := self._takes.last_sequence):
            raise ValueError(
                f", column run: it names decision {line.sequence}, and the last one here is {latest}"
            )
        parts = (run_cell(run_id, line.sequence), item, verdict, line.note)
        id = str(uuid5(_NAMESPACE, "\x1f".join(parts)))
        decision = Decision(id, item, "", verdict, line.note, user(), datetime.now(UTC), line.sequence)
        if not decision.fits:
            raise ValueError(": it is longer than a decision may be (2,000 characters of a note)")
        return row.sku, decision

    def _item(self, run: RunRecord, row: ResultLine, verdict: Decided, take: str) -> ItemKey | None:
        """Return the take that a line is about; None if there is none. Raises ValueError.

        The page's file names it. In a sheet it is the row's take, and for `again` the highest one that had been made
        when the run ended and the sheet was written.
        """
        if row.take is None:
            return None
        takes = [other for other in self._takes.of(row.take) if other.has_result]
        if self._sheet.is_of_page:
            return next((other.item for other in takes if str(other.number) == take), None)
        if row.status is RowStatus.TO_CHOOSE and verdict in (Decided.PICK, Decided.REJECT):
            several = f"the pattern of {shown(row.sku)} has several takes; decide with `patternmill look`"
            raise ValueError(f", column {_DECISION}: {several}")
        if verdict is not Decided.AGAIN:
            return row.take
        ended = run.ended_at.timestamp() if run.ended_at is not None else math.inf
        return [row.take, *(other.item for other in takes if (other.made_at or 0.0) <= ended)][-1]

    def sharing(self, item: ItemKey) -> list[str]:
        """Return the skus of the rows that share a pattern, whichever take of it they are on."""
        same = {take.item for take in self._takes.of(item)}
        return [row.sku for row in self._rows if row.take in same]


def user() -> str:
    """Return the name of the user of this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _contradictions(decided: Sequence[tuple[int, str, Decision]]) -> Iterator[str]:
    first: dict[ItemKey, tuple[int, Decision]] = {}
    for line, sku, decision in decided:
        before, other = first.setdefault(decision.item, (line, decision))
        if other.verdict is not decision.verdict:
            yield (
                f"row {line}: {shown(sku)} says {decision.verdict}, and row {before}, which shares its pattern, says "
                f"{other.verdict}; say the same in both"
            )


def _score(header: Sequence[str]) -> tuple[bool, int]:
    keys = set(map(header_key, header))
    return keys >= _NEEDED, len(keys & {*PAGE_COLUMNS})


def _refused(path: Path, problems: Sequence[str]) -> InputRefused:
    what = f"The decisions in {plain(path.name)} cannot be used"
    return rows_refused(what, problems, code="decisions_refused", remedy="Nothing was recorded.")
