"""Decisions in files: the page's decisions.csv, and the columns `decision` and `note` of a results.csv."""

from __future__ import annotations

import getpass
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid5

from patternmill.catalog.remote import stable_bytes
from patternmill.catalog.rows import DECISION_COLUMNS, RUN_COLUMN, header_key, restore, sku_key, tidy
from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.decisions import (
    Decision,
    decision_time,
    is_recorded,
    last_decisions,
    record_decisions,
)
from patternmill.ledger.ledger import Ledger, every_ledger
from patternmill.ledger.records import RunRecord
from patternmill.looking.looks import Looks, digests
from patternmill.looking.takes import Take, takes_made
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.settings import Settings
from patternmill.sheets.sheet_reader import read_table
from patternmill.states import Decided
from patternmill.text import more, plain, plural, shown

#: Of the page's file.
FILE_COLUMNS = (RUN_COLUMN, "item", "sku", "picture", "verdict", "note", "by", "at", "id", "checksum")
_NEEDED = frozenset({RUN_COLUMN, "item", "verdict", "id", "checksum"})
_SHEET = frozenset({RUN_COLUMN, "sku", DECISION_COLUMNS[0]})
_MOST_PROBLEMS = 40
_SEPARATOR = "\x1f"
_NAMESPACE = UUID("0d2b7a5e-93c1-5f0e-8a44-5a1c7e0f6b32")
_WORDS = "pick, reject, again, later or undecided"


@dataclass(frozen=True)
class DecisionsFile:
    """The decisions that a file has on the patterns of one run, with the skus of the rows that show each."""

    decisions: tuple[Decision, ...]
    skus: Mapping[ItemKey, tuple[str, ...]]

    def decided(self, *verdicts: Decided) -> tuple[str, ...]:
        """The skus of the rows whose pattern was decided so."""
        return tuple(sku for one in self.decisions if one.verdict in verdicts for sku in self.skus[one.item])


def is_decisions_file(path: Path) -> bool:
    """Whether it is the page's file; raises nothing for what cannot be read."""
    try:
        with path.open("rb") as file:
            beginning = file.read(4096)
    except OSError:
        return False
    first = beginning.decode("utf-8-sig", "replace").partition("\n")[0]
    # As the page writes it, or a spreadsheet after it.
    return {header_key(cell.strip('" ')) for cell in re.split("[,;\t]", first.strip())} >= _NEEDED


def run_of_decisions(path: Path) -> RunId | None:
    """The run whose pictures were looked at, of the page's file; None for others. Raises InputRefused."""
    if not is_decisions_file(path):
        return None
    runs = {cells[RUN_COLUMN] for _, cells in _records(path)}
    if len(runs) != 1:
        raise _refused(
            path, [f"it has decisions on {plural(len(runs), 'run')}; save the file of one page again"]
        )
    return RunId(runs.pop())


def decided_run(path: Path) -> RunId | None:
    """The run of a file with decisions: the page's, or a results file with text in its column `decision`; else None."""
    run_id = run_of_decisions(path)
    if run_id is not None:
        return run_id
    table = read_table(stable_bytes(path), plain(path.name, 200), score=_score)
    keys = [header_key(cell) for cell in table.header]
    if "picked" in keys or not set(keys) >= _SHEET:
        return None
    named = [dict(zip(keys, cells, strict=False)) for _, cells in table.records]
    return next((RunId(row[RUN_COLUMN]) for row in named if row.get(DECISION_COLUMNS[0], "").strip()), None)


def read_decisions(ledger: Ledger, record: RunRecord, path: Path, looks: Looks) -> DecisionsFile:
    """The decisions of a file on the patterns of a run. Writes nothing.

    Raises InputRefused, which names everything that is wrong: unknown patterns, pictures that have changed, rows that
    contradict one another, words that are no decision.
    """
    rows = list(row_results(ledger, record, input_file(ledger, record), now=True))
    takes = takes_made(ledger, record.environment, record.catalog)
    reading, is_page = _Reading(path, record, rows, takes, looks), is_decisions_file(path)
    found = list(reading.of_page() if is_page else reading.of_sheet())
    problems = [*reading.problems, *_contradictions(found)]
    if not is_page:
        last = last_decisions(ledger, record.environment, record.catalog)
        problems += [
            f"row {line}: {shown(sku)} was decided as {one.verdict} before, and as {last[one.item].verdict} since; "
            "empty the cell, or write another note to decide so again"
            for line, sku, one in found
            if one.item in last and last[one.item].id != one.id and is_recorded(ledger, one.id)
        ]
    if problems:
        raise _refused(path, problems)
    decisions = {decision.item: decision for _, _, decision in found}
    skus = {item: _skus(item, rows, takes) for item in decisions}
    if not is_page:  # a sheet names rows, and the page patterns
        skus = {item: tuple(sku for _, sku, one in found if one.item == item) for item in decisions}
    return DecisionsFile(tuple(decisions.values()), skus)


def keep_decisions(ledger: Ledger, record: RunRecord, file: DecisionsFile) -> str:
    """Write them, each once; in a sentence, what was new and what an other decision had overtaken meanwhile."""
    with ledger.transaction():
        new = set(record_decisions(ledger, record.run_id, file.decisions))
    last = last_decisions(ledger, record.environment, record.catalog)
    overtaken = [one for one in file.decisions if last[one.item].id != one.id]
    text = f"{plural(len(new), 'decision')} recorded, {len(file.decisions) - len(new)} known before."
    if overtaken:
        skus = sorted(sku for one in overtaken for sku in file.skus[one.item])
        text += f" Decided again since then, and left so: {', '.join(map(plain, skus[:5]))}."
    return text


def record_file(settings: Settings, path: Path) -> str | None:
    """Record what the page's file says, in the ledger of its run; in a sentence, what became of it.

    None for any other file. Raises InputRefused as `read_decisions`.
    """
    run_id = run_of_decisions(path)
    if run_id is None:
        return None
    for ledger in every_ledger(settings):
        record = ledger.run(run_id)
        if record is not None:
            return keep_decisions(ledger, record, read_decisions(ledger, record, path, Looks(settings.home)))
    raise _refused(path, [f"no ledger here has run {plain(run_id)}; use the one that it is in"])


class _Reading:
    """The rows of one file, held to the rows of its run."""

    def __init__(
        self,
        path: Path,
        record: RunRecord,
        rows: Sequence[RowResult],
        takes: Mapping[ItemKey, Take],
        looks: Looks,
    ) -> None:
        self._path, self._record = path, record
        looked = ((take.item, looks.of(take.picture_url)) for take in takes.values())
        self._digests = digests(rows, looks) | {
            item: look.digest for item, look in looked if look is not None
        }
        self._rows = {sku_key(row.sku): row for row in rows}
        shown = (row.pattern for row in rows)
        self._items = {*takes, *(one.key for one in shown if one is not None and one.result_id)}
        self._now = datetime.now(UTC)
        self.problems: list[str] = []

    def of_page(self) -> Iterator[tuple[int, str, Decision]]:
        for line, cells in _records(self._path):
            where = f"row {line}"
            if _checksum(cells) != cells["checksum"]:
                self._wrong(where, "its checksum does not fit: save the file again, and do not edit it")
            elif cells[RUN_COLUMN] != self._record.run_id:
                self._wrong(
                    where, f"it is on run {plain(cells[RUN_COLUMN])}; save the file of one page again"
                )
            elif (verdict := self._verdict(where, "verdict", cells["verdict"])) is not None:
                item, picture = ItemKey(cells["item"]), cells["picture"]
                if self._is_known(where, item, picture):
                    at = decision_time(cells["at"]) or self._now
                    picture = picture or self._digests.get(item, "")
                    decision = Decision(
                        cells["id"], item, picture, verdict, cells["note"], cells["by"] or user(), at
                    )
                    yield line, cells["sku"], decision

    def of_sheet(self) -> Iterator[tuple[int, str, Decision]]:
        table = read_table(stable_bytes(self._path), plain(self._path.name, 200), score=_score)
        keys = [header_key(cell) for cell in table.header]
        if not set(keys) >= _SHEET:
            return
        for line, written in table.records:
            cells = dict(zip(keys, (tidy(restore(cell)) for cell in written), strict=False))
            text = cells.get(DECISION_COLUMNS[0], "")
            if not text:
                continue
            where = f"row {line}"
            verdict, row = self._verdict(where, "decision", text), self._rows.get(sku_key(cells["sku"]))
            if verdict is None:
                continue
            if row is None or row.pattern is None or row.pattern.result_id is None:
                self._wrong(
                    where,
                    f"run {self._record.run_id} has no pattern for {shown(cells['sku'])}; empty the cell",
                )
                continue
            item = row.pattern.key
            decision = self._in_words(item, verdict, cells.get(DECISION_COLUMNS[1], ""))
            yield line, row.sku, decision

    def _in_words(self, item: ItemKey, verdict: Decided, note: str) -> Decision:
        """A cell has no ID of its own: what it says of a picture is one event, however often the sheet is read."""
        picture = self._digests.get(item, "")
        name = _SEPARATOR.join((self._record.run_id, item, picture, verdict, note))
        return Decision(str(uuid5(_NAMESPACE, name)), item, picture, verdict, note, user(), self._now)

    def _verdict(self, where: str, column: str, text: str) -> Decided | None:
        try:
            return Decided(text.casefold())
        except ValueError:
            self._wrong(f"{where}, column {column}", f"{shown(text)} is no decision: write {_WORDS}")
            return None

    def _is_known(self, where: str, item: ItemKey, picture: str) -> bool:
        if item not in self._items:
            self._wrong(f"{where}, column item", f"run {self._record.run_id} made no such pattern")
            return False
        now = self._digests.get(item, "")
        if picture and now and picture != now:
            self._wrong(
                f"{where}, column picture", "the picture has changed since; look at it and decide again"
            )
            return False
        return True

    def _wrong(self, where: str, what: str) -> None:
        self.problems.append(f"{where}: {what}")


def _skus(item: ItemKey, rows: Iterable[RowResult], takes: Mapping[ItemKey, Take]) -> tuple[str, ...]:
    """Of the rows that show this pattern, or another take of it."""
    take = takes.get(item)
    same = {item} if take is None else {one.item for one in takes.values() if one.content == take.content}
    return tuple(row.sku for row in rows if row.pattern is not None and row.pattern.key in same)


def user() -> str:
    """Who decides, as this machine knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _contradictions(found: Sequence[tuple[int, str, Decision]]) -> Iterator[str]:
    first: dict[ItemKey, tuple[int, Decision]] = {}
    for line, sku, decision in found:
        before, other = first.setdefault(decision.item, (line, decision))
        if other.verdict is not decision.verdict:
            yield (
                f"row {line}: {shown(sku)} says {decision.verdict}, and row {before}, which shares its pattern, says "
                f"{other.verdict}; say the same in both"
            )


def _records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    table = read_table(stable_bytes(path), plain(path.name, 200), score=_score)
    keys = [header_key(cell) for cell in table.header]
    for line, written in table.records:
        cells = dict.fromkeys(FILE_COLUMNS, "") | dict(zip(keys, map(restore, written), strict=False))
        yield line, cells


def _score(header: Sequence[str]) -> tuple[bool, int]:
    keys = set(map(header_key, header))
    return keys >= _NEEDED or keys >= _SHEET, len(keys & {*FILE_COLUMNS, *_SHEET})


def _checksum(cells: Mapping[str, str]) -> str:
    text = _SEPARATOR.join(cells[name] for name in FILE_COLUMNS[:-1])
    return f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}"


def _refused(path: Path, problems: Sequence[str]) -> InputRefused:
    lines = (*(f"  {text}" for text in problems[:_MOST_PROBLEMS]), *more(len(problems), _MOST_PROBLEMS))
    listed = "\n".join(lines)
    return InputRefused(
        f"The decisions in {plain(path.name)} cannot be used:\n{listed}\n",
        code="decisions_refused",
        remedy="Nothing was recorded.",
    )
