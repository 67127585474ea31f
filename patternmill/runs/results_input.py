"""Results files as input: known by their column `run` alone, and held to what the ledger has of that run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from patternmill.catalog.catalog_file import SheetChoices
from patternmill.catalog.problems import Problem, RowCode
from patternmill.catalog.remote import stable_bytes
from patternmill.catalog.row_checks import CheckedCatalog, Entry
from patternmill.catalog.rows import RUN_COLUMN, header_key, read_run_cell, sku_key
from patternmill.errors import InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, every_ledger
from patternmill.ledger.records import RunRecord
from patternmill.results.summary import FAILURES
from patternmill.settings import Settings
from patternmill.sheets.sheet_reader import read_table
from patternmill.text import plain

_BEGINNING = 1 << 16
#: Archives and compressed files have to be read to know.
_NO_TEXT = (b"PK", b"\x1f\x8b")


def run_of_file(source: Path, choices: SheetChoices, settings: Settings) -> RunRecord | None:
    """The run whose results file this is, wherever it lies; None for any other file.

    Raises InputRefused when it names no run, several, or one that no ledger of this home has.
    """
    named = runs_named(source, choices)
    if named is None:
        return None
    name = plain(source.name)
    if len(named) != 1:
        which = f"the runs {' and '.join(map(plain, sorted(named)[:2]))}" if named else "no run"
        raise InputRefused(
            f"{name} names {which} in its column `run`: whose results it has is not known.",
            code="several_runs" if named else "unknown_run",
            remedy="Import the results of one run at a time. If the sheet is not from a run, rename the column "
            "(`note:run`, for instance).",
        )
    (run_id,) = named
    for ledger in every_ledger(settings):
        record = ledger.runs.get(RunId(run_id))
        if record is not None:
            return record
    raise unknown_run(name, run_id)


def unknown_run(name: str, run_id: str) -> InputRefused:
    return InputRefused(
        f"{name} has results of run {plain(run_id)}, which this ledger lacks: what was bought for them is not known.",
        code="unknown_run",
        remedy="Import it where the ledger of that run is (PATTERNMILL_HOME, PATTERNMILL_LEDGER_URL). If the sheet is "
        "not from a run, rename its column `run` (`note:run`, for instance). Nothing was bought.",
    )


def runs_named(source: Path, choices: SheetChoices) -> set[str] | None:
    """What is in the column `run`; None without one, and for what cannot be read: that is said when it is read."""
    if not source.is_file():  # opening a pipe waits for whoever writes into it
        return None
    try:
        with source.open("rb") as file:
            beginning = file.read(_BEGINNING)
        if not beginning.startswith(_NO_TEXT) and b"run" not in beginning.replace(b"\0", b"").lower():
            return None
        table = read_table(stable_bytes(source), source.name, choices)
    except (OSError, InputRefused):
        return None
    header = table.header
    index = next((i for i, cell in enumerate(header) if header_key(cell) == RUN_COLUMN), None)
    if index is None:
        return None
    cells = (cells[index] for _, cells in table.records if index < len(cells))
    return set(filter(None, (read_run_cell(cell)[0] for cell in cells)))


def held_to_run(ledger: Ledger, record: RunRecord, checked: CheckedCatalog) -> CheckedCatalog:
    """The rows of a run's results file without those that the run did not have, or that are gone from the source."""
    known = set(map(sku_key, ledger.runs.skus_of(record.run_id)))
    kept = ledger.catalogs.source_rows(record.environment, record.catalog)
    gone = {key for key, row in kept.items() if row.is_gone}

    def held(entry: Entry) -> Entry:
        key = sku_key(entry.row.sku) if entry.row is not None else ""
        if entry.row is None or key in known - gone:
            return entry
        message = f"run {record.run_id}, whose results this file has, had no such sku"
        if key in gone:
            message = "the source of the catalog has no such sku any more"
        remedy = "put new rows and new skus into the catalog's own file, and import that"
        problem = Problem(None, RowCode.NOT_IN_RUN, message, remedy)
        return Entry(entry.record, None, (problem.at(entry.record.line, entry.row.sku),))

    return replace(checked, entries=tuple(map(held, checked.entries)))


def has_failures_alone(ledger: Ledger, record: RunRecord, checked: CheckedCatalog) -> bool:
    """Whether none of these rows is one that the run made, or left open: as in its failures.csv."""
    skus = {sku_key(entry.row.sku) for entry in checked.entries if entry.row is not None}
    outcomes = ledger.runs.rows_with_outcomes(record)
    return not any(sku_key(row.sku) in skus and outcome.status not in FAILURES for row, outcome in outcomes)
