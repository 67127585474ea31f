"""The results files of a run: a pure function of the ledger, so that they are the same whenever they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.errors import ConfigurationError
from patternmill.files import FileMark, link_latest, sweep, write_whole
from patternmill.identifiers import RunId
from patternmill.ledger.catalog_rows import RecordedChange, counts_of
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.order_report import CheckoutRecord, checkouts_of_run
from patternmill.results import gallery, row_files
from patternmill.results.changes_csv import CHANGES_FILE, changes_file
from patternmill.results.gallery import pictures_of
from patternmill.results.row_files import RowResult, input_file, row_results, table, with_corrections
from patternmill.results.summary import (
    FAILURES,
    MANIFEST,
    Cause,
    Counts,
    build_manifest,
    failures_by_cause,
    manifest_bytes,
)
from patternmill.results.whole_catalog import (
    WHOLE_CATALOG,
    WHOLE_FOLDER,
    is_whole_source,
    whole_catalog,
    whole_results,
)
from patternmill.text import moment

RESULTS = "results.csv"
FAILURES_FILE = "failures.csv"
EXACT = "results.jsonl"
GALLERY = "gallery.html"


@dataclass(frozen=True, slots=True)
class Results:
    """Where the files of a run are, what they come to, and what went wrong by cause."""

    out: Path
    files: tuple[FileMark, ...]
    counts: Counts
    causes: tuple[Cause, ...]
    #: Where the files of the whole catalog are; None where these are of all of it, or `latest` does not lead here.
    whole: Path | None = None

    def path(self, name: str) -> Path:
        return self.out / name


def rebuild(
    ledger: Ledger, run_id: RunId, out: Path, *, links: Iterable[str] = (), file: CatalogFile | None = None
) -> Results:
    """Write the results files of a run into `out`. Raises ConfigurationError for an unknown run.

    `links`: the names of links next to `out` that are to lead to it. `file`: the run's input, where it is parsed
    already; else it is parsed from the ledger's bytes.
    """
    record = ledger.run(run_id)
    if record is None:
        raise ConfigurationError(
            f"There is no run {run_id} in this ledger.", remedy="See `patternmill status`."
        )
    file = file or input_file(ledger, record)
    header, kept = file.mapping.repeated(file.header), file.columns.kept
    found = with_corrections(row_results(ledger, record, file), ledger.merged_into(run_id))
    results = _write(ledger, record, header, kept, found, [run_id], out)
    if names := tuple(links):
        results = replace(results, whole=_write_whole_catalog(ledger, record, file, out))
        for name in names:
            link_latest(out, name, WHOLE_FOLDER if results.whole else "")
    return results


def _write_whole_catalog(ledger: Ledger, record: RunRecord, file: CatalogFile, out: Path) -> Path | None:
    """Write the files of the whole catalog, where the run's own have a part of it; returns their folder."""
    if is_whole_source(ledger, record, file):
        return None
    whole = whole_catalog(ledger, record, file)
    if whole.is_of(record.run_id):
        return None
    header, rows = whole_results(ledger, whole)
    shown = record.with_options({WHOLE_CATALOG: True})
    runs = dict.fromkeys(run_id for run_id, _ in whole.places)
    return _write(ledger, shown, header, range(len(header)), rows, runs, out / WHOLE_FOLDER).out


def _write(
    ledger: Ledger,
    record: RunRecord,
    header: Sequence[str],
    carried: Sequence[int],
    found: Iterable[RowResult],
    runs: Iterable[RunId],
    out: Path,
) -> Results:
    """With what the ledger has besides the rows: the orders of the products of `runs`, and a refresh's changes."""
    checkouts = {one.key: one for run_id in runs for one in checkouts_of_run(ledger, run_id)}
    orders = [checkout for checkout in checkouts.values() if checkout.order is not None]
    rows = list(with_orders(found, orders))
    pictures = pictures_of(record, rows)
    changes = ledger.changes_of(record.run_id) if counts_of(record) is not None else None
    return write_results(
        record, header, carried, rows, out, pictures=pictures, changes=changes, orders=orders
    )


def write_results(
    run: RunRecord,
    header: Sequence[str],
    carried: Sequence[int],
    rows: Sequence[RowResult],
    out: Path,
    *,
    pictures: Mapping[str, str] | None = None,
    changes: Sequence[RecordedChange] | None = None,
    orders: Sequence[CheckoutRecord] = (),
) -> Results:
    """Write the results files of `run` into `out`, each whole, the manifest last.

    `header` is the input's, as read; `carried` the indexes of its columns to write back. `pictures` leads
    from a picture's URL to a file next to the gallery, as a path relative to `out`. Rows come out in the order
    that they are passed in. `changes` is what a refresh found, `orders` the paid checkouts of products of these rows.
    """
    failures = [row for row in rows if row.status in FAILURES]
    contents: dict[str, Iterable[bytes]] = {
        RESULTS: table(header, carried, rows),
        FAILURES_FILE: table(header, carried, failures),
        EXACT: row_files.lines(header, carried, rows),
        GALLERY: gallery.page(run, header, rows, pictures or {}),
    }
    if changes is not None:
        contents[CHANGES_FILE] = changes_file(changes, rows)
    sweep(out, [*contents, MANIFEST])
    files = [write_whole(out / name, chunks) for name, chunks in contents.items()]
    manifest = build_manifest(run, rows, files, orders)
    files.append(write_whole(out / MANIFEST, [manifest_bytes(manifest)]))
    return Results(out, tuple(files), manifest.counts, tuple(failures_by_cause(rows)))


def with_orders(rows: Iterable[RowResult], orders: Sequence[CheckoutRecord]) -> Iterator[RowResult]:
    """Rows whose products were ordered say so; of several orders the last."""
    ordered = {
        line.product_key: f"{moment(record.order.since)} UTC, {record.order.order_id or record.checkout_id}"
        for record in orders
        if record.order is not None
        for line in record.lines
    }
    for row in rows:
        product = row.product.key if row.product is not None else None
        yield replace(row, ordered=ordered[product]) if product in ordered else row
