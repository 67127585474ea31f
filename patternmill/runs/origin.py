"""Results files that are imported again: the runs that their column `run` names, and where these may go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from patternmill.addresses import source_name
from patternmill.errors import InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import ledger_to_read
from patternmill.ledger.records import RunRecord
from patternmill.reading import stable_bytes
from patternmill.runs.request import ImportRequest
from patternmill.settings import Settings
from patternmill.tables.columns import RUN_COLUMN, header_key, read_run_cell
from patternmill.tables.mapping import MAPPING, NO_MAPPING, ReadingChoices, SheetMapping
from patternmill.text import plain

#: The number of bytes at the beginning of a text that are searched for a column `run`.
_BEGINNING = 1 << 16
#: The first bytes of archives and compressed files, which have to be read to find such a column.
_NO_TEXT = (b"PK", b"\x1f\x8b")


def runs_of_file(source: Path, choices: ReadingChoices, settings: Settings) -> list[RunRecord]:
    """Return the runs whose results a file has, the newest first; none for any other file.

    Raises InputRefused where the ledger lacks one of them, or they are of several catalogs.
    """
    named = _run_ids(source, choices)
    if named is None:
        return []
    name = plain(source.name)
    if not named:
        raise _unknown(name, "no run in its column `run`")
    with ledger_to_read(settings) as ledger:
        runs = map(ledger.runs.get, map(RunId, sorted(named, reverse=True)))
        records = [record for record in runs if record is not None]
    if lacking := named - {record.run_id for record in records}:
        what = f"results of run {plain(min(lacking))}, which this ledger lacks: what was bought for them is not known"
        raise _unknown(name, what)
    if len({(record.environment, record.catalog) for record in records}) > 1:
        raise _unknown(name, "results of several catalogs", "several_catalogs")
    return records


def _unknown(name: str, what: str, code: str = "unknown_run") -> InputRefused:
    return InputRefused(
        f"{name} has {what}.",
        code=code,
        remedy="Import it where the ledger of that run is (PATTERNMILL_HOME, PATTERNMILL_LEDGER_URL), and the results "
        "of one catalog at a time. If the sheet is not from a run, rename its column `run` (`note:run`, for "
        "instance). Nothing was bought.",
    )


def _run_ids(source: Path, choices: ReadingChoices) -> set[str] | None:
    """Return what is in the column `run`; None without one, or if the file cannot be read, which is reported later."""
    if not source.is_file():  # opening a pipe waits for whoever writes into it
        return None
    try:
        with source.open("rb") as file:
            beginning = file.read(_BEGINNING)
        if not beginning.startswith(_NO_TEXT) and b"run" not in beginning.replace(b"\0", b"").lower():
            return None
        # Imported here because it loads pandas, which only a file with results needs.
        from patternmill.tables.sheet import parse_sheet

        sheet = parse_sheet(stable_bytes(source), source.name, NO_MAPPING.score, choices)
    except (OSError, InputRefused):
        return None
    position = next((at for at, cell in enumerate(sheet.header) if header_key(cell) == RUN_COLUMN), None)
    if position is None:
        return None
    return set(filter(None, (read_run_cell(cell)[0] for cell in sheet.column(position).unique())))


def mapping_of_runs(records: Sequence[RunRecord], settings: Settings) -> SheetMapping:
    """Return the mapping by which a results file is read: that of its newest run with one, or else of its catalog.

    A sheet whose rows were all remade names only runs of `remake`, which have no mapping.
    """
    mapped = [record for record in records if MAPPING in record.options]
    if not mapped:
        with ledger_to_read(settings) as ledger:
            scope = records[0].environment, records[0].catalog
            runs = map(ledger.runs.get, ledger.catalogs.sheet_runs(*scope))
            mapped = [record for record in runs if record is not None and MAPPING in record.options]
    return SheetMapping.model_validate(mapped[0].options[MAPPING]) if mapped else NO_MAPPING


def catalog_of_origin(request: ImportRequest, origin: RunRecord, settings: Settings) -> str:
    """Return the catalog that a results file goes on with. Raises InputRefused for a request that wants another."""
    name = source_name(request.file)
    require_environment(name, origin, request.environment, settings)
    if request.catalog is not None and request.catalog != origin.catalog:
        raise InputRefused(
            f"{origin_note(name, origin)} The catalog {request.catalog!r} is named.",
            code="other_catalog",
            remedy="Leave --catalog out to go on there; for another catalog, import the catalog's own file.",
        )
    if request.whole:
        raise InputRefused(
            f"{origin_note(name, origin)} --whole is named.",
            code="not_whole",
            remedy="Leave --whole out: a results file is never the whole catalog.",
        )
    return origin.catalog


def require_environment(name: str, record: RunRecord, named: str | None, settings: Settings) -> None:
    """Raise InputRefused where a file's run was in another environment than the one that is named, or else configured.

    Anybody may have written the file, so its column `run` does not decide where something is bought.
    """
    here = named or settings.environment
    if record.environment != here:
        raise InputRefused(
            f"{origin_note(name, record)} The environment {here!r} is {'named' if named else 'configured'}.",
            code="other_environment",
            remedy=f"To go on in {record.environment}, name it: --environment {record.environment}; for another "
            "environment, import the catalog's own file. Nothing was bought.",
        )


def origin_note(name: str, record: RunRecord) -> str:
    """Return `failures.csv has rows of run 2026…: catalog spring, environment staging`."""
    return (
        f"{name} has rows of run {record.run_id}: catalog {record.catalog}, environment {record.environment}."
    )
