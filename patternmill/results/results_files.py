"""The results files of a run: a pure function of the ledger, so that they are the same whenever they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.errors import ConfigurationError
from patternmill.files import link_latest, sweep, write_whole
from patternmill.identifiers import RunId
from patternmill.ledger.catalogs import RecordedChange, counts_of
from patternmill.ledger.decisions import last_sequence, unwanted_patterns
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.order_report import CheckoutRecord, checkouts_of_run
from patternmill.ledger.row_outcomes import is_retriable
from patternmill.parameters import STAGING
from patternmill.results import row_files
from patternmill.results.catalog_files import CHANGES_FILE, changes_file, state_bytes
from patternmill.results.row_filter import RowFilter, rows_meant
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.results.summary import (
    FAILURES,
    MANIFEST,
    Cause,
    Counts,
    count_everything,
    failures_by_cause,
    manifest_bytes,
)
from patternmill.states import RowStatus
from patternmill.text import moment

RESULTS = "results.csv"
FAILURES_FILE = "failures.csv"
#: The same rows, where the input was a workbook.
FAILURES_BOOK = "failures.xlsx"
EXACT = "results.jsonl"
GALLERY = "gallery.html"
CATALOG_FILE = "catalog.csv"
#: Makes the page of a run's rows.
GalleryMaker = Callable[[Ledger, RunRecord, Sequence[RowResult]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Results:
    """Where the files of a run are, what they come to, and what went wrong by cause."""

    out: Path
    files: tuple[str, ...]
    counts: Counts
    causes: tuple[Cause, ...]
    #: How many rows another run changes as they are, by status.
    to_retry: Mapping[RowStatus, int] = field(default_factory=dict)
    #: The file with all that the catalog has now, for feeds; None where it was not written.
    catalog: Path | None = None

    @property
    def failures(self) -> Path:
        """The file of the rows to correct: a workbook where the input was one."""
        return self.out / (FAILURES_BOOK if FAILURES_BOOK in self.files else FAILURES_FILE)


def rebuild(
    ledger: Ledger,
    run_id: RunId,
    out: Path,
    gallery: GalleryMaker,
    *,
    links: Iterable[str] = (),
    file: CatalogFile | None = None,
) -> Results:
    """Write the results files of a run into `out`. Raises ConfigurationError for an unknown run.

    `gallery` makes its page. `links`: the names of links next to `out` that are to lead to it. `file`: the run's
    input, where it is parsed already; else it is parsed from the ledger's bytes.
    """
    record = ledger.runs.get(run_id)
    if record is None:
        raise ConfigurationError(
            f"There is no run {run_id} in this ledger.", remedy="See `patternmill status`."
        )
    file = file or input_file(ledger, record)
    header, kept = file.mapping.repeated(file.header), file.columns.kept
    orders = [one for one in checkouts_of_run(ledger, run_id) if one.is_ordered]
    rows = list(with_orders(row_results(ledger, record, file), orders))
    changes = ledger.catalogs.changes_of(run_id) if counts_of(record) is not None else None
    decided = last_sequence(ledger, record.environment, record.catalog)
    page = gallery(ledger, record, rows)
    results = write_results(record, header, kept, rows, out, page, changes=changes, decided=decided)
    for name in links:
        link_latest(out, name)
    unwanted = unwanted_patterns(ledger, record.environment, record.catalog)
    to_retry = Counter(row.status for row in rows if is_retriable(row.outcome, unwanted))
    return replace(results, to_retry=to_retry)


def results_table(ledger: Ledger, record: RunRecord, wanted: RowFilter) -> Iterator[bytes]:
    """The rows of a run that fit, as its results.csv has them. Raises as `rows_meant` does."""
    file = input_file(ledger, record)
    rows = rows_meant(row_results(ledger, record, file), wanted)
    decided = last_sequence(ledger, record.environment, record.catalog)
    return row_files.table(record, file.mapping.repeated(file.header), file.columns.kept, rows, decided)


def write_catalog(ledger: Ledger, environment: str, catalog: str, folder: Path) -> Path:
    """Write what a catalog has now, for feeds, as `patternmill catalog` prints it."""
    name = CATALOG_FILE if environment == STAGING else f"catalog-{environment}.csv"
    sweep(folder, [name])
    write_whole(folder / name, state_bytes(ledger.catalogs.rows(environment, catalog)))
    return folder / name


def write_results(
    run: RunRecord,
    header: Sequence[str],
    carried: Sequence[int],
    rows: Sequence[RowResult],
    out: Path,
    gallery: Iterable[bytes],
    *,
    changes: Sequence[RecordedChange] | None = None,
    decided: int = 0,
) -> Results:
    """Write the results files of `run` into `out`, each whole, the manifest last.

    `header` is the input's, as read; `carried` the indexes of its columns to write back. `gallery` is the bytes
    of its page. Rows come out in the order that they are passed in. `changes` is what a refresh found;
    `decided` the place in the ledger of the last decision so far.
    """
    failures = [row for row in rows if row.status in FAILURES]
    contents: dict[str, Iterable[bytes]] = {
        RESULTS: row_files.table(run, header, carried, rows, decided),
        FAILURES_FILE: row_files.table(run, header, carried, failures, decided),
        EXACT: row_files.lines(run.run_id, header, carried, rows),
        GALLERY: gallery,
    }
    if row_files.is_workbook(run):
        contents[FAILURES_BOOK] = row_files.workbook(run, header, carried, failures, decided)
    if changes is not None:
        contents[CHANGES_FILE] = changes_file(changes, rows)
    sweep(out, [*contents, MANIFEST])
    files = {name: write_whole(out / name, chunks) for name, chunks in contents.items()}
    counts = count_everything(rows)
    write_whole(out / MANIFEST, [manifest_bytes(run, counts, files)])
    return Results(out, (*files, MANIFEST), counts, tuple(failures_by_cause(rows)))


def with_orders(rows: Iterable[RowResult], orders: Sequence[CheckoutRecord]) -> Iterator[RowResult]:
    """Rows whose products were ordered say so; of several orders the last."""
    ordered = {
        line.product_key: f"{moment(record.order.since)} UTC, {record.order.order_id or record.checkout_id}"
        for record in orders
        if record.order is not None
        for line in record.lines
    }
    for row in rows:
        yield replace(row, ordered=ordered[row.product_key]) if row.product_key in ordered else row
