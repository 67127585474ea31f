"""The whole catalog as its runs leave it: the rows of its newest source, with what later runs of parts made of them.

`latest` leads to it, so that an import of six corrected rows does not hide the other hundred.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.problems import RowCode
from patternmill.catalog.row_corrections import cells_of_rows
from patternmill.catalog.rows import header_key, sku_key
from patternmill.identifiers import RunId
from patternmill.ledger.catalog_rows import RETRY_OF
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord, RunRow
from patternmill.ledger.reports.run_lookup import runs_with_lease, without_retries
from patternmill.results.row_files import RowResult, input_file, row_result, with_corrections

#: The name in a run's options: by position, the row of an earlier run that a row is, where their skus do not show it.
REPLACES = "replaces"
#: Where the whole catalog is, in the folder of a run that had a part of it.
WHOLE_FOLDER = "catalog"
#: The name in a manifest's options that says so: its files have rows of several runs.
WHOLE_CATALOG = "whole_catalog"
_CHUNK = 500
_FEW_RUNS = 4

Place = tuple[RunId, int]
_Column = tuple[str, int]
#: Its position and sku, and whether it was accepted.
_PlacedRow = tuple[int, str, bool]


@dataclass(frozen=True)
class WholeCatalog:
    """Which row of which run is the catalog's, in the order of its source; then what only earlier runs had."""

    places: tuple[Place, ...]
    records: Mapping[RunId, RunRecord]

    def runs(self) -> list[RunRecord]:
        return [self.records[run_id] for run_id in dict.fromkeys(run_id for run_id, _ in self.places)]

    def is_of(self, run_id: RunId) -> bool:
        """Whether all of it is in the run's own files."""
        return all(its_run == run_id for its_run, _ in self.places)


def is_whole_source(ledger: Ledger, record: RunRecord, file: CatalogFile) -> bool:
    """Whether a run had a source with all that its catalog has: cheaper to see than the whole catalog."""
    is_source = RETRY_OF not in record.options and not file.columns.is_results_file
    return is_source and not ledger.has_more_than(record) and not ledger.has_twins(record.run_id)


def whole_catalog(ledger: Ledger, record: RunRecord, file: CatalogFile | None = None) -> WholeCatalog:
    """The catalog of a run, as of that run; what later runs made of the same items counts too.

    `file`: the run's input, where it is parsed already.
    """
    runs = list(runs_with_lease(ledger, record.catalog, record.environment))
    begin = next((place for place, run in enumerate(runs) if run.run_id == record.run_id), 0)
    rows = _PlacedRows()
    for run in reversed(_since_source(ledger, runs[begin:], file)):
        rows.add(run, _rows(ledger, run))
    by_id = {run.run_id: run for run in runs}
    _add_earlier(ledger, record, rows, by_id)
    places = _of_retry(record, rows.places, by_id)
    return WholeCatalog(tuple(places), by_id)


def whole_rows(ledger: Ledger, whole: WholeCatalog) -> Iterator[tuple[RunRecord, RunRow]]:
    """Its rows, run by run."""
    for run_id, positions in _by_run(whole).items():
        for row in ledger.rows_at(run_id, positions):
            yield whole.records[run_id], row


def whole_results(ledger: Ledger, whole: WholeCatalog) -> tuple[tuple[str, ...], list[RowResult]]:
    """The header, which has the columns of every file that a row comes from; and the rows as they are now."""
    found: dict[Place, RowResult] = {}
    layouts = {run_id: _Layout.of(input_file(ledger, whole.records[run_id])) for run_id in _by_run(whole)}
    columns = {column: name for layout in layouts.values() for column, name in layout.names.items()}
    for run_id, positions in _by_run(whole).items():
        of_run = _results(ledger, whole.records[run_id], layouts[run_id].file, positions)
        for row in with_corrections(of_run, ledger.merged_into(run_id)):
            found[run_id, row.position] = layouts[run_id].arranged(row, columns)
    rows = [
        replace(found[place], position=number, line=number + 2) for number, place in enumerate(whole.places)
    ]
    return tuple(columns.values()), rows


@dataclass(frozen=True)
class _Layout:
    """Where a file has which column; of several with one name, the first, the second, ..."""

    file: CatalogFile
    indexes: Mapping[_Column, int]

    @classmethod
    def of(cls, file: CatalogFile) -> _Layout:
        seen, indexes = Counter[str](), {}
        header = file.mapping.applied(file.header)
        for index in file.columns.kept:
            key = header_key(header[index])
            seen[key] += 1
            indexes[key, seen[key]] = index
        return cls(file, indexes)

    @property
    def names(self) -> dict[_Column, str]:
        return {column: self.file.header[index] for column, index in self.indexes.items()}

    def arranged(self, row: RowResult, columns: Iterable[_Column]) -> RowResult:
        """With a cell for each of these columns; cells without a column come last, as in the row itself."""
        cells, indexes = row.cells, (self.indexes.get(column) for column in columns)
        fitted = (cells[i] if i is not None and i < len(cells) else "" for i in indexes)
        return replace(row, cells=(*fitted, *cells[len(self.file.header) :]))


class _PlacedRows:
    """Rows in the order in which they came first; a later one with the same sku takes its place."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        #: The slots of refused rows that share a sku.
        self._twins: dict[str, list[int]] = defaultdict(list)
        self._by_sku: dict[str, int] = {}
        self._by_place: dict[Place, int] = {}
        #: The slots of rows that were not refused.
        self._accepted: set[int] = set()

    def add(self, run: RunRecord, rows: Sequence[_PlacedRow]) -> None:
        """A row without a sku of its own does not take the place of one that was accepted since."""
        replaces = run.options.get(REPLACES, {})
        count = Counter(sku_key(sku) for _, sku, _ in rows)
        for position, sku, is_accepted in rows:
            key = sku_key(sku) if count[sku_key(sku)] == 1 else ""
            earlier = replaces.get(str(position))
            slot = self._by_place.get((RunId(earlier[0]), earlier[1])) if earlier else None
            # What it replaces may be of a run before the newest source, which has the row under its sku.
            slot = self._by_sku.get(key) if slot is None else slot
            if key or slot not in self._accepted:
                slot = self._put((run.run_id, position), key, slot, is_accepted=is_accepted)
                if sku and not key:
                    self._twins[sku_key(sku)].append(slot)

    def _put(self, place: Place, key: str, slot: int | None, *, is_accepted: bool) -> int:
        if slot is None:
            slot = len(self.places)
            self.places.append(place)
        self.places[slot] = place
        self._by_place[place] = slot
        (self._accepted.add if is_accepted else self._accepted.discard)(slot)
        if key:
            self._by_sku[key] = slot
        return slot

    def lacks(self, sku: str) -> bool:
        return sku_key(sku) not in self._by_sku

    def twins(self, sku: str) -> list[Place]:
        """The refused rows that share this sku."""
        return [self.places[slot] for slot in self._twins.get(sku_key(sku), ()) if slot not in self._accepted]

    def replace_twin(self, twin: Place, place: Place, sku: str) -> None:
        """By the row as it was accepted before."""
        self._put(place, sku_key(sku), self._by_place[twin], is_accepted=True)


def _since_source(ledger: Ledger, runs: Sequence[RunRecord], first: CatalogFile | None) -> list[RunRecord]:
    """The newest run whose input was no results file, and those after it; without retries, which add no row."""
    found = []
    for run in runs:
        if RETRY_OF not in run.options:
            found.append(run)
            file = first if run is runs[0] and first is not None else input_file(ledger, run)
            if not file.columns.is_results_file:
                break
    return found


def _rows(ledger: Ledger, run: RunRecord) -> list[_PlacedRow]:
    """Without rows that say only that a later run has changed them."""
    return [
        (position, sku, code is None)
        for position, sku, code in ledger.skus_of(run.run_id)
        if code != RowCode.SUPERSEDED.value
    ]


def _add_earlier(
    ledger: Ledger, record: RunRecord, rows: _PlacedRows, by_id: Mapping[RunId, RunRecord]
) -> None:
    """What the catalog has of runs before its newest source: rows of another file, or withheld ones.

    Of rows that are refused because they share a sku, the one with the text of the catalog's row is that row.
    """
    earlier: dict[RunId, set[str]] = defaultdict(set)
    cells = lru_cache(_FEW_RUNS)(lambda run_id: cells_of_rows(input_file(ledger, by_id[run_id])))
    for sku, run_id in ledger.current_skus(record.environment, record.catalog):
        if not rows.lacks(sku):
            continue
        if not (twins := rows.twins(sku)):
            earlier[run_id].add(sku)
            continue
        place = next((run_id, one[0]) for one in _rows(ledger, by_id[run_id]) if one[1] == sku)
        own = cells(run_id)[place[1]].cells
        if twin := next((one for one in twins if cells(one[0])[one[1]].cells == own), None):
            rows.replace_twin(twin, place, sku)
    for run_id in sorted(earlier):
        run = ledger.run(run_id)
        if run is not None:
            rows.add(run, [row for row in _rows(ledger, run) if row[1] in earlier[run_id]])


def _of_retry(
    record: RunRecord, places: Sequence[Place], by_id: Mapping[RunId, RunRecord]
) -> Sequence[Place]:
    """A retry repeats the rows of its run, so that they are in its own files too."""
    origin = without_retries(record, by_id)
    if origin is not record and all(run_id == origin.run_id for run_id, _ in places):
        return [(record.run_id, position) for _, position in places]
    return places


def _by_run(whole: WholeCatalog) -> dict[RunId, list[int]]:
    """The positions in each run, in order."""
    found: dict[RunId, list[int]] = defaultdict(list)
    for run_id, position in sorted(whole.places):
        found[run_id].append(position)
    order = dict.fromkeys(run_id for run_id, _ in whole.places)
    return {run_id: found[run_id] for run_id in order}


def _results(
    ledger: Ledger, record: RunRecord, file: CatalogFile, positions: Sequence[int]
) -> Iterator[RowResult]:
    wanted = frozenset(positions)
    for first in sorted({position // _CHUNK * _CHUNK for position in positions}):
        attempts = ledger.attempts_of_rows(record.run_id, first, first + _CHUNK - 1)
        for row in ledger.rows_of(record.run_id, first, first + _CHUNK - 1):
            if row.position in wanted:
                cells = file.records[row.position].cells
                yield row_result(replace(row, outcome=None), cells, attempts, record.outcome)
