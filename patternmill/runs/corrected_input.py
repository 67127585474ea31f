"""Corrections in a run: merged into what its source has, found in a results file that comes back, and put on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.row_corrections import (
    NO_OVERLAY,
    Correction,
    CorrectionEnd,
    Overlay,
    cells_of_rows,
    composed,
    differences,
)
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.ledger.records import RunRecord
from patternmill.runs.results_input import rows_of_run
from patternmill.runs.spec import RunSpec
from patternmill.sheets.merged_rows import merge
from patternmill.text import plural

_MOST_NAMED = 3
#: The name in a run's options under which they are counted.
CORRECTIONS = "corrections"


def read_corrections(spec: RunSpec, file: CatalogFile) -> tuple[CatalogFile, Overlay]:
    """The input with the corrections of its catalog, and what became of them.

    A results file has them already: what differs in it from its run is a new correction.
    """
    if spec.selection is not None:
        return file, NO_OVERLAY
    with ledger_if_any(spec.settings) as ledger:
        if ledger is None:
            return file, NO_OVERLAY
        if spec.origin is not None:
            return file, _corrected_in(ledger, spec.origin, file)
        return merge(file, ledger.corrections(spec.scope.environment, spec.scope.catalog))


def notes_of(overlay: Overlay) -> Iterator[str]:
    """What is merged, what no longer is, and what is new, in sentences for the plan."""
    in_source, changed = (
        [one for one, its_end in overlay.ended if its_end is end]
        for end in (CorrectionEnd.IN_SOURCE, CorrectionEnd.SOURCE_CHANGED)
    )
    for found, what in (
        (overlay.merged, "applied to the source's rows"),
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
    """The record of a run with how many corrections there were."""
    counts = {"merged": len(overlay.merged), "ended": len(overlay.ended), "found": len(overlay.found)}
    return record.with_options({CORRECTIONS: counts}) if any(counts.values()) else record


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


def _corrected_in(ledger: Ledger, record: RunRecord, file: CatalogFile) -> Overlay:
    """What differs in a run's own file from the rows that the run had."""
    before = rows_of_run(ledger, record)
    pairs = ((before[row.key], row) for row in cells_of_rows(file) if row.key in before)
    return Overlay(found=tuple(one for old, new in pairs for one in differences(old, new)))
