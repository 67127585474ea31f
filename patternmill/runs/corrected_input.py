"""Corrections in a run: merged into what its source has, found in a results file that comes back, and put on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.row_corrections import (
    NO_OVERLAY,
    SHAPE,
    Correction,
    CorrectionEnd,
    Overlay,
    RowCells,
    cells_of_rows,
    composed,
    differences,
    paired,
)
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.results.row_files import input_file
from patternmill.results.whole_catalog import REPLACES, Place, whole_catalog, whole_rows
from patternmill.runs.retry import refuse_superseded
from patternmill.runs.spec import Origin, RunSpec
from patternmill.sheets.merged_rows import merge
from patternmill.text import plural

_MOST_NAMED = 3
_FEW_RUNS = 4
#: The name in a run's options under which they are counted.
CORRECTIONS = "corrections"


def read_corrections(spec: RunSpec, file: CatalogFile) -> tuple[CatalogFile, Overlay]:
    """The input with the corrections of its catalog, and what became of them.

    A results file has them already: what differs in it from its run is a new correction.
    """
    if spec.selection is not None or (file.columns.is_results_file and spec.origin is None):
        return file, NO_OVERLAY
    with ledger_if_any(spec.settings) as ledger:
        if ledger is None:
            return file, NO_OVERLAY
        if file.columns.is_results_file:
            assert spec.origin is not None, "looked at above"
            return file, _corrected_in(ledger, spec.origin, file)
        return merge(file, ledger.corrections(spec.scope.environment, spec.scope.catalog))


def without_superseded(spec: RunSpec, checked: CheckedCatalog) -> CheckedCatalog:
    """The rows of an earlier run's file, but for those that a later run has superseded."""
    if spec.origin is None or spec.edition != spec.origin.edition:
        return checked
    with ledger_if_any(spec.settings) as ledger:
        record = ledger.run(RunId(spec.origin.run_id)) if ledger is not None else None
        if ledger is None or record is None:
            return checked
        return refuse_superseded(ledger, record, checked, whole=spec.origin.whole)


def notes_of(overlay: Overlay) -> Iterator[str]:
    """What is merged, what no longer is, and what is new, in sentences for the plan."""
    in_source, changed = (
        [one for one, its_end in overlay.ended if its_end is end]
        for end in (CorrectionEnd.IN_SOURCE, CorrectionEnd.SOURCE_CHANGED)
    )
    for found, what in (
        (overlay.merged, "applied to the source's rows"),
        (overlay.unfound, "not applied, because the source has no row with these very cells now"),
        (in_source, "done, because the source has the corrected text itself"),
        (changed, "given up, because the source has another text now"),
        (overlay.found, "found in this file, kept for the next refresh of the source once it is imported"),
    ):
        if found:
            yield f"{plural(len(found), 'correction')} {what}: {_named(found)}."


def record_corrections(ledger: Ledger, record: RunRecord, overlay: Overlay) -> None:
    """Put on record what became of corrections, with a run that is on record."""
    if not (overlay.found or overlay.ended or overlay.merged):
        return
    environment, catalog = record.environment, record.catalog
    added, replaced = composed(ledger.corrections(environment, catalog, ended=True), overlay.found)
    ended = [*overlay.ended, *((one, CorrectionEnd.REPLACED) for one in replaced)]
    ledger.end_corrections(environment, catalog, ended)
    ledger.add_corrections(record, added)
    ledger.add_merged(record.run_id, overlay.merged)


def with_overlay(record: RunRecord, overlay: Overlay) -> RunRecord:
    """The record of a run with how many corrections there were, and the rows of earlier runs that its own replace."""
    counts = {"merged": len(overlay.merged), "ended": len(overlay.ended), "found": len(overlay.found)}
    known = {CORRECTIONS: counts if any(counts.values()) else None, REPLACES: dict(overlay.replaces)}
    return record.with_options({name: of for name, of in known.items() if of})


def corrections_line(record: RunRecord) -> str:
    """`7 applied to the source, 1 ended`; empty where there were none."""
    counts = record.options.get(CORRECTIONS, {})
    words = {
        "merged": "applied to the source",
        "ended": "ended",
        "found": "found in this file and kept for the source",
    }
    return ", ".join(f"{counts[name]:,} {text}" for name, text in words.items() if counts.get(name))


def _named(found: Sequence[Correction]) -> str:
    rest = len(found) - _MOST_NAMED
    return "; ".join([*map(str, found[:_MOST_NAMED]), *([f"and {rest:,} more"] if rest > 0 else [])])


def _corrected_in(ledger: Ledger, origin: Origin, file: CatalogFile) -> Overlay:
    """What differs in a run's own file from the rows that the run, or the catalog as of then, had."""
    record = ledger.run(RunId(origin.run_id))
    if record is None:
        return NO_OVERLAY
    before = list(_rows_before(ledger, record, whole=origin.whole))
    places = {id(row): place for row, place in before}
    now = cells_of_rows(file)
    positions = {id(row): str(position) for position, row in enumerate(now)}
    found: list[Correction] = []
    replaced: dict[str, RowCells] = {}
    earlier = _EarlierRuns(ledger, record)
    for old, new in paired([row for row, _ in before], now):
        if SHAPE in new.cells and SHAPE not in old.cells:
            found += differences(earlier.with_shape(old, places[id(old)]), new)
        else:
            found += differences(old, new)
        if old.key != new.key or not old.has_own_sku:
            replaced[positions[id(new)]] = old
    newer = _newer_places(ledger, record) if replaced else {}
    replaces = {position: newer.get(old.key, places[id(old)]) for position, old in replaced.items()}
    return Overlay(found=tuple(found), replaces=replaces)


class _EarlierRuns:
    """The runs of the catalog of one of them, with the rows of their inputs."""

    def __init__(self, ledger: Ledger, record: RunRecord) -> None:
        self._ledger, self._record = ledger, record
        self._rows = lru_cache(_FEW_RUNS)(lambda run_id: _input_rows(ledger, self._runs[run_id]))
        self._positions = lru_cache(_FEW_RUNS)(
            lambda run_id: {row.key: position for position, row in enumerate(self._rows(run_id))}
        )

    @cached_property
    def _runs(self) -> dict[RunId, RunRecord]:
        """The newest first."""
        environment, catalog = self._record.environment, self._record.catalog
        return {run.run_id: run for run in runs_with_lease(self._ledger, catalog, environment)}

    def with_shape(self, row: RowCells, place: Place) -> RowCells:
        """A row whose cells were corrected before its surplus was, with what its source has there."""
        earlier = row
        while SHAPE not in earlier.cells:
            before = self._before(earlier, place)
            if before is None:
                return row
            place = before
            earlier = self._rows(place[0])[place[1]]
        return replace(row, cells={**row.cells, SHAPE: earlier.cells[SHAPE]})

    def _before(self, row: RowCells, place: Place) -> Place | None:
        """The row of an earlier run that this one was."""
        if place[0] not in self._runs:
            return None
        replaced = self._runs[place[0]].options.get(REPLACES, {}).get(str(place[1]))
        if replaced is not None:
            return (RunId(replaced[0]), replaced[1]) if replaced[0] in self._runs else None
        older = islice(self._runs, list(self._runs).index(place[0]) + 1, None)
        positions = ((run_id, self._positions(run_id).get(row.key)) for run_id in older)
        return next(((run_id, position) for run_id, position in positions if position is not None), None)


def _input_rows(ledger: Ledger, record: RunRecord) -> list[RowCells]:
    return cells_of_rows(input_file(ledger, record))


def _newer_places(ledger: Ledger, record: RunRecord) -> dict[str, Place]:
    """Where the catalog has which row now, or what was corrected of it; empty where the run is its newest."""
    newest = next(runs_with_lease(ledger, record.catalog, record.environment), record)
    if newest.run_id == record.run_id:
        return {}
    rows = list(_rows_before(ledger, newest, whole=True))
    found = {row.key: place for row, place in rows}
    held = ledger.corrections(record.environment, record.catalog)
    corrected = {one.source_row: found[one.row] for one in held if one.row in found}
    return {row.content_key: place for row, place in rows} | corrected | found


def _rows_before(ledger: Ledger, record: RunRecord, *, whole: bool) -> Iterator[tuple[RowCells, Place]]:
    """The rows of a run, or of the catalog as of then."""
    of_run: dict[RunId, list[tuple[int, bool]]] = {}
    if whole:
        for its_run, row in whole_rows(ledger, whole_catalog(ledger, record)):
            of_run.setdefault(its_run.run_id, []).append((row.position, row.product_key is None))
    else:
        of_run[record.run_id] = [
            (position, code is not None) for position, _, code in ledger.skus_of(record.run_id)
        ]
    for run_id, rows in of_run.items():
        its_record = ledger.run(run_id)
        assert its_record is not None, "its rows are on record"
        cells = _input_rows(ledger, its_record)
        for position, was_refused in rows:
            yield replace(cells[position], was_refused=was_refused), (run_id, position)
