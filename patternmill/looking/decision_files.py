"""Decisions in files: the page's decisions.csv, and the columns `decision` and `note` of a results.csv."""

from __future__ import annotations

import getpass
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid5

from patternmill.catalog.remote import stable_bytes
from patternmill.catalog.rows import (
    DECISION_COLUMNS,
    RUN_COLUMN,
    header_key,
    read_run_cell,
    restore,
    run_cell,
    sku_key,
    tidy,
)
from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.decisions import (
    Decision,
    decision_time,
    last_decisions,
    last_sequence,
    record_decisions,
    storable,
)
from patternmill.ledger.ledger import Ledger, every_ledger
from patternmill.ledger.records import RunRecord
from patternmill.looking.pictures import Pictures
from patternmill.looking.takes import Take, takes_made
from patternmill.results.file_origin import require_environment
from patternmill.results.picks import rows_refused
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.settings import Settings
from patternmill.sheets.sheet_reader import read_table
from patternmill.states import Decided
from patternmill.text import plain, plural, shown

#: Of the page's file.
FILE_COLUMNS = (RUN_COLUMN, "item", "sku", "picture", "verdict", "note", "by", "at", "id", "checksum")
_NEEDED = frozenset({RUN_COLUMN, "item", "verdict", "id", "checksum"})
_DECISION = DECISION_COLUMNS[0]
_SHEET = frozenset({RUN_COLUMN, "sku", _DECISION})
_SEPARATOR = "\x1f"
_NAMESPACE = UUID("0d2b7a5e-93c1-5f0e-8a44-5a1c7e0f6b32")
_WORDS = "pick, reject, again, later or undecided"


@dataclass(frozen=True)
class DecisionsFile:
    """The decisions that a file has on the patterns of one run, with the skus of the rows that show each."""

    decisions: tuple[Decision, ...]
    skus: Mapping[ItemKey, tuple[str, ...]]

    #: The skus of decisions that it has and that do not count: the pattern was decided otherwise since it was written.
    left: tuple[str, ...] = ()

    @property
    def left_note(self) -> str:
        """What a person is told of these; empty where there are none."""
        skus = ", ".join(map(plain, sorted(self.left)[:5]))
        return f"Decided again since that file was written, and left so: {skus}." if skus else ""

    def decided(self, *verdicts: Decided) -> tuple[str, ...]:
        """The skus of the rows whose pattern was decided so."""
        return tuple(sku for one in self.decisions if one.verdict in verdicts for sku in self.skus[one.item])


def decided_run(path: Path) -> RunId | None:
    """The run of a file with decisions: the page's, or a results file with text in its column `decision`; else None.

    Raises InputRefused for a file of several pages.
    """
    columns, rows = _read(path)
    is_page = columns >= _NEEDED
    if "picked" in columns and not is_page:
        return None
    runs = dict.fromkeys(
        read_run_cell(cells[RUN_COLUMN])[0] for _, cells in rows if is_page or cells[_DECISION]
    )
    if is_page and len(runs) != 1:
        raise _refused(
            path, [f"it has decisions on {plural(len(runs), 'run')}; save the file of one page again"]
        )
    return next(map(RunId, runs), None)


def read_decisions(ledger: Ledger, record: RunRecord, path: Path, pictures: Pictures) -> DecisionsFile:
    """The decisions of a file on the patterns of a run. Writes nothing.

    Raises InputRefused, which names everything that is wrong: unknown patterns, pictures that have changed, rows that
    contradict one another, words that are no decision.
    """
    columns, written = _read(path)
    is_page, takes = columns >= _NEEDED, takes_made(ledger, record.environment, record.catalog)
    file = input_file(ledger, record)
    rows = list(row_results(ledger, record, file, now=True))
    own = next((index for index in file.columns.kept if header_key(file.header[index]) == _DECISION), None)
    by_sku = {sku_key(row.sku): row for row in rows}
    digests = dict.fromkeys(takes, "") | pictures.digests(takes.values())
    found: list[tuple[int, str, Decision]] = []
    problems: list[str] = []
    latest = last_sequence(ledger, record.environment, record.catalog)
    for line, cells in written:
        try:
            if is_page:
                decision = _of_page(cells, record.run_id, digests)
                found.append((line, cells["sku"], _credible(decision, latest)))
            elif tidy(cells[_DECISION]) not in (
                "",
                _as_written(own, by_sku.get(sku_key(tidy(cells["sku"])))),
            ):
                sku, decision = _of_sheet(cells, record.run_id, digests, by_sku)
                found.append((line, sku, _credible(decision, latest)))
        except ValueError as error:
            problems.append(f"row {line}{error}")
    problems += _contradictions(found)
    if problems:
        raise _refused(path, problems)
    decisions = {decision.item: decision for _, _, decision in found}
    if is_page:
        skus = {item: _skus(item, rows, takes) for item in decisions}
    else:  # a sheet names rows, and the page patterns
        skus = {item: tuple(sku for _, sku, one in found if one.item == item) for item in decisions}
    return _not_overtaken(ledger, record, DecisionsFile(tuple(decisions.values()), skus))


def _as_written(own: int | None, row: RowResult | None) -> str:
    """What a results file had in its column `decision` before a person wrote there; `own`: that of the input."""
    return tidy(row.cells[own]) if row is not None and own is not None and own < len(row.cells) else ""


def _not_overtaken(ledger: Ledger, record: RunRecord, file: DecisionsFile) -> DecisionsFile:
    """Return the file without decisions on what was decided since it was written."""
    last = last_decisions(ledger, record.environment, record.catalog)
    kept, left = [], list(file.left)
    for one in file.decisions:
        now = last.get(one.item, one)
        if now.id == one.id or now.sequence <= one.sequence:
            kept.append(one)
        else:
            left += file.skus[one.item]
    return replace(file, decisions=tuple(kept), left=tuple(left))


def keep_decisions(ledger: Ledger, record: RunRecord, file: DecisionsFile) -> str:
    """Write them, each once; in a sentence, what was new, and what was decided otherwise since the file was written."""
    with ledger.transaction():
        file = _not_overtaken(ledger, record, file)
        new = set(record_decisions(ledger, record.run_id, file.decisions))
    text = f"{plural(len(new), 'decision')} recorded, {len(file.decisions) - len(new)} known before."
    return f"{text} {file.left_note}".strip()


def record_file(settings: Settings, path: Path) -> str | None:
    """Record what the page's file says of a run in the environment of the settings; in a sentence, what became of it.

    None for any other file. Raises InputRefused as `read_decisions`.
    """
    if not _is_of_page(path):
        return None
    run_id = decided_run(path)
    assert run_id is not None, "the page's file names its run"
    for ledger in every_ledger(settings):
        record = ledger.runs.get(run_id)
        if record is not None:
            require_environment(path.name, record, None, settings)
            decided = read_decisions(ledger, record, path, Pictures(settings.home))
            return keep_decisions(ledger, record, decided)
    raise _refused(path, [f"no ledger here has run {plain(run_id)}; use the one that it is in"])


def _is_of_page(path: Path) -> bool:
    """By the beginning of the file, which may be of any kind: as the page writes it, or a spreadsheet after it."""
    try:
        with path.open("rb") as file:
            first = file.read(4096).decode("utf-8-sig", "replace").partition("\n")[0]
    except OSError:
        return False
    return {header_key(cell.strip('" ')) for cell in re.split("[,;\t]", first.strip())} >= _NEEDED


def _read(path: Path) -> tuple[frozenset[str], list[tuple[int, Mapping[str, str]]]]:
    """The columns of a file, and its rows with their lines; none of a file that can have no decisions.

    Raises InputRefused.
    """
    table = read_table(stable_bytes(path), plain(path.name, 200), score=_score)
    keys = [header_key(cell) for cell in table.header]
    columns = frozenset(keys)
    if not (columns >= _NEEDED or columns >= _SHEET):
        return columns, []
    empty = dict.fromkeys((*FILE_COLUMNS, *DECISION_COLUMNS), "")
    return columns, [
        (line, empty | dict(zip(keys, map(restore, written), strict=False)))
        for line, written in table.records
    ]


def _credible(decision: Decision, latest: int) -> Decision:
    """Return a decision of a file, which may be anybody's. Raises ValueError for one that no page or table writes.

    `latest`: the place of the last decision in the ledger, which no file can be newer than.
    """
    if decision.sequence > latest:
        raise ValueError(
            f", column run: it names decision {decision.sequence}, and the last one here is {latest}"
        )
    if not decision.fits:
        raise ValueError(": it has no ID, or is longer than a decision may be (2,000 characters of a note)")
    return decision


def _of_page(cells: Mapping[str, str], run_id: RunId, digests: Mapping[ItemKey, str]) -> Decision:
    """Return the decision of a line. `digests`: of all that was made; "" where the picture is not at hand.

    Raises ValueError, which says what is wrong.
    """
    item, picture = ItemKey(cells["item"]), cells["picture"]
    if _checksum(cells) != cells["checksum"]:
        raise ValueError(": its checksum does not fit: save the file again, and do not edit it")
    run, sequence = read_run_cell(cells[RUN_COLUMN])
    if run != run_id:
        raise ValueError(f": it is on run {plain(cells[RUN_COLUMN])}; save the file of one page again")
    verdict = _verdict("verdict", cells["verdict"])
    if item not in digests:
        raise ValueError(f", column item: run {run_id} made no such pattern")
    now = digests[item]
    if picture and now and picture != now:
        raise ValueError(", column picture: the picture has changed since; look at it and decide again")
    at = decision_time(cells["at"]) or datetime.now(UTC)
    # Whoever wrote the file wrote the name, too.
    by, note, id = (storable(cells[name]) for name in ("by", "note", "id"))
    return Decision(id, item, picture or now, verdict, note, f"file: {by or user()}", at, sequence)


def _of_sheet(
    cells: Mapping[str, str], run_id: RunId, digests: Mapping[ItemKey, str], rows: Mapping[str, RowResult]
) -> tuple[str, Decision]:
    """A cell has no ID of its own: what it says of a picture is one event, however often the sheet is read."""
    text, note, sku = (storable(tidy(cells[name])) for name in (*DECISION_COLUMNS, "sku"))
    verdict, row = _verdict(_DECISION, text), rows.get(sku_key(sku))
    if row is None or row.pattern is None or row.pattern.key not in digests:
        raise ValueError(f": run {run_id} has no pattern for {shown(sku)}; empty the cell")
    item = row.pattern.key
    _, sequence = read_run_cell(cells[RUN_COLUMN])
    id = uuid5(_NAMESPACE, _SEPARATOR.join((run_cell(run_id, sequence), item, digests[item], verdict, note)))
    return row.sku, Decision(str(id), item, digests[item], verdict, note, user(), datetime.now(UTC), sequence)


def _verdict(column: str, text: str) -> Decided:
    if text.casefold() not in list(Decided):
        raise ValueError(f", column {column}: {shown(text)} is no decision: write {_WORDS}")
    return Decided(text.casefold())


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


def _score(header: Sequence[str]) -> tuple[bool, int]:
    keys = set(map(header_key, header))
    return keys >= _NEEDED or keys >= _SHEET, len(keys & {*FILE_COLUMNS, *_SHEET})


def _checksum(cells: Mapping[str, str]) -> str:
    text = _SEPARATOR.join(cells[name] for name in FILE_COLUMNS[:-1])
    return f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}"


def _refused(path: Path, problems: Sequence[str]) -> InputRefused:
    what = f"The decisions in {plain(path.name)} cannot be used"
    return rows_refused(what, problems, code="decisions_refused", remedy="Nothing was recorded.")
