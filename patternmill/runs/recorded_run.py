"""A run as the ledger has it: its input, its rows with what became of each, and the files that name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patternmill.errors import InputRefused
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.checkouts import checkouts_of_run
from patternmill.settings import Settings
from patternmill.tables.mapping import MAPPING, READING, SheetMapping
from patternmill.text import moment

if TYPE_CHECKING:
    from patternmill.tables.catalog import Catalog
    from patternmill.tables.results import RunResults


def run_results(
    ledger: Ledger, record: RunRecord, file: Catalog | None = None, *, now: bool = False
) -> RunResults:
    """Return the rows of a run for its results, which are read as they are asked for.

    `file`: the run's input, where it is parsed already. `now`: as the rows are now, whatever came after the run.
    """
    # What reads and writes frames is loaded for this alone.
    from patternmill.tables.results import RunResults

    # Of several orders of a product the last one counts.
    ordered = {
        line.product_key: f"{moment(checkout.order.since)} UTC, {checkout.order.order_id or checkout.checkout_id}"
        for checkout in checkouts_of_run(ledger, record.run_id)
        if checkout.is_ordered and checkout.order is not None
        for line in checkout.lines
    }
    records = ledger.runs.row_records(record, now=now)
    return RunResults(record.run_id, file or input_file(ledger, record), records, ordered)


def input_file(ledger: Ledger, record: RunRecord) -> Catalog:
    """Return the input of a run, from the bytes that the ledger kept, read as the run read them."""
    from patternmill.tables.catalog import read_catalog

    name, raw = record.source.rpartition("/")[2], ledger.runs.input_of(record)
    mapping = SheetMapping.model_validate(record.options.get(MAPPING, {}))
    read = record.options.get(READING, {"encoding": record.input_encoding})
    as_read = {name: read.get(name) for name in ("encoding", "delimiter", "worksheet")}
    reading = mapping.reading.model_copy(update={**as_read, "header": read.get("header_row")})
    return read_catalog(raw, name, mapping.model_copy(update={"reading": reading}), empty=True)


def require_environment(name: str, record: RunRecord, named: str | None, settings: Settings) -> None:
    """Raise InputRefused where a file's run was in another environment than the one that is named, or else configured.

    The file may be anybody's: what is bought where is not for its column `run` to say.
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
