"""The results files of a run: a pure function of the ledger, so that they are the same whenever they are written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from patternmill.files import json_bytes, link_latest, sweep, write_whole
from patternmill.ledger.catalogs import RecordedChange, counts_of
from patternmill.ledger.events import last_sequence
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import COST, RunRecord
from patternmill.ledger.row_outcomes import RowOutcome, is_retriable
from patternmill.parameters import STAGING
from patternmill.runs.catalog_takes import takes_without_product, verdicts_on_products
from patternmill.runs.recorded_rows import run_results
from patternmill.states import FAILURES, AttemptState, RowStatus
from patternmill.tables.columns import run_cell
from patternmill.tables.mapping import READING, WORKBOOK_FORMATS
from patternmill.tables.row_filter import RowFilter
from patternmill.tables.totals import Cause, RunCounts
from patternmill.tables.written import catalog_csv, csv_bytes, table_csv, table_workbook
from patternmill.text import iso_time

if TYPE_CHECKING:
    from patternmill.tables.catalog import Catalog
    from patternmill.tables.results import RunResults

RESULTS = "results.csv"
FAILURES_FILE = "failures.csv"
#: The same rows, where the input was a workbook.
FAILURES_BOOK = "failures.xlsx"
EXACT = "results.jsonl"
GALLERY = "gallery.html"
CHANGES_FILE = "changes.csv"
MANIFEST = "manifest.json"
#: The columns of changes.csv.
CHANGE_COLUMNS = (
    *("sku", "change", "fields", "old_product_id", "new_product_id"),
    *("old_pattern_id", "new_pattern_id", "status", "old_and_new"),
)
#: A function that makes the page of a run's rows.
GalleryMaker = Callable[[Ledger, RunRecord, "RunResults"], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class RunMoney:
    """The money of a run, in minor units by currency; docs/manifest.schema.json says what each amount is."""

    expected: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    in_doubt: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, run: RunRecord) -> RunMoney:
        """Return what a run was planned to cost, and what was spent or is reserved for its requests."""
        planned, by_state = run.options.get(COST, {}), ledger.purchases.amounts_by_state(run.run_id)
        return cls(
            planned.get("expected", {}),
            planned.get("at_most", {}),
            spent=dict(by_state[AttemptState.SUCCEEDED] + by_state[AttemptState.FAILED]),
            reserved=dict(by_state[AttemptState.ACCEPTED]),
            in_doubt=dict(by_state[AttemptState.INTENDED] + by_state[AttemptState.HELD]),
        )


@dataclass(frozen=True, slots=True)
class Results:
    """The files of a run, its counts, and what went wrong by cause."""

    out: Path
    files: tuple[str, ...]
    counts: RunCounts
    causes: tuple[Cause, ...]
    #: The number of rows that another run would do something for as they are, by status.
    to_retry: Mapping[RowStatus, int] = field(default_factory=dict)
    #: The file with all that the catalog has now, for feeds; None where it was not written.
    catalog: Path | None = None
    money: RunMoney = field(default_factory=RunMoney)
    #: The address in a store that they were copied to.
    copied_to: str | None = None
    #: The rows as they were written; None once nobody needs them.
    rows: RunResults | None = field(default=None, repr=False)

    @property
    def failures(self) -> Path:
        """Return the file of the rows to correct: a workbook where the input was one."""
        return self.out / (FAILURES_BOOK if FAILURES_BOOK in self.files else FAILURES_FILE)


def rebuild(
    ledger: Ledger,
    record: RunRecord,
    out: Path,
    gallery: GalleryMaker | None = None,
    *,
    links: Iterable[str] = (),
    file: Catalog | None = None,
) -> Results:
    """Write the results files of a run into `out`.

    `gallery` makes its page, if it is to have one. `links`: the names of links next to `out` that are to lead to it.
    `file`: the run's input, where it is parsed already; else it is parsed from the ledger's bytes.
    """
    rows = run_results(ledger, record, file)
    changes = ledger.catalogs.changes_of(record.run_id) if counts_of(record) is not None else None
    decided = last_sequence(ledger, record.environment, record.catalog)
    money = RunMoney.of(ledger, record)
    page = partial(gallery, ledger, record, rows) if gallery is not None else None
    results = write_files(record, rows, out, page, money, changes=changes, decided=decided)
    for name in links:
        link_latest(out, name)
    without_product = takes_without_product(ledger, record.environment, record.catalog)
    outcomes = map(RowOutcome.parse, rows.retriable.values())
    to_retry = Counter(outcome.status for outcome in outcomes if is_retriable(outcome, without_product))
    return replace(results, to_retry=to_retry)


def write_files(
    run: RunRecord,
    rows: RunResults,
    out: Path,
    gallery: Callable[[], Iterable[bytes]] | None,
    money: RunMoney,
    *,
    changes: Sequence[RecordedChange] | None = None,
    decided: int = 0,
) -> Results:
    """Write the results files of `run` into `out`, each whole, the manifest last.

    `gallery` makes its page once the rows were read; `money` is the run's. `changes` is what a refresh found; `decided`
    the place in the ledger of the last decision so far.
    """
    sweep(out, {RESULTS, FAILURES_FILE, FAILURES_BOOK, EXACT, GALLERY, CHANGES_FILE, MANIFEST})
    # First: making the exact lines reads the rows, which all other files need.
    exact = write_whole(out / EXACT, rows.exact_lines())
    cell, delimiter = run_cell(run.run_id, decided), _delimiter(run)
    failures = rows.table(cell, rows.rows["status"].isin(FAILURES))
    contents: dict[str, Callable[[], Iterable[bytes]]] = {
        RESULTS: lambda: table_csv(rows.table(cell), delimiter),
        FAILURES_FILE: lambda: table_csv(failures, delimiter),
    }
    if gallery is not None:
        contents[GALLERY] = gallery
    if run.options.get(READING, {}).get("format") in WORKBOOK_FORMATS:
        contents[FAILURES_BOOK] = lambda: [table_workbook(failures)]
    if changes is not None:
        contents[CHANGES_FILE] = lambda: _changes_csv(changes, rows)
    files = {name: write_whole(out / name, make()) for name, make in contents.items()} | {EXACT: exact}
    counts, causes = rows.counts, rows.causes
    write_whole(out / MANIFEST, [_manifest(run, counts, money, causes, files)])
    return Results(out, (*files, MANIFEST), counts, causes, money=money, rows=rows.only_for_sheet())


def results_table(ledger: Ledger, record: RunRecord, wanted: RowFilter) -> Iterator[bytes]:
    """Yield the rows of a run that fit, as its results.csv has them. Raises as `RowFilter.fitting` does."""
    rows = run_results(ledger, record).read()
    decided = last_sequence(ledger, record.environment, record.catalog)
    table = rows.table(run_cell(record.run_id, decided), wanted.fitting(rows.rows))
    return table_csv(table, _delimiter(record))


def exact_rows(ledger: Ledger, record: RunRecord, wanted: RowFilter) -> list[Any]:
    """Return the rows of a run that fit as its results.jsonl has them. Raises as `RowFilter.fitting` does."""
    rows = run_results(ledger, record)
    exact = list(rows.exact_lines())
    return [json.loads(exact[at]) for at in rows.rows.index[wanted.fitting(rows.rows)]]


def _delimiter(run: RunRecord) -> str:
    """Return the delimiter of a run's input, which the program that wrote it can read."""
    delimiter: str = run.options.get(READING, {}).get("delimiter") or ","
    return delimiter


def _changes_csv(changes: Iterable[RecordedChange], results: RunResults) -> Iterator[bytes]:
    """Yield the changes of a refresh. While the new IDs are empty, the old product is what the catalog has."""
    rows = results.rows.set_index("sku")[["product_id", "pattern_id", "status"]].fillna("")
    made = dict(zip(rows.index, rows.itertuples(index=False, name=None), strict=True))
    lines = []
    for change in changes:
        product, pattern, status = (
            made.get(change.sku, ("", "", "")) if change.verdict is None else ("", "", "")
        )
        lines.append(
            (
                *(change.sku, change.kind.value, "; ".join(change.fields)),
                *(change.product_id or "", product, change.pattern_id or "", pattern),
                change.verdict or status,
                "; ".join(f"{field}: {text}" for field, text in change.fields.items() if text),
            )
        )
    return csv_bytes(CHANGE_COLUMNS, lines)


def _manifest(
    run: RunRecord, counts: RunCounts, money: RunMoney, causes: Iterable[Cause], files: Mapping[str, str]
) -> bytes:
    """Return the manifest: the run's record, under the same names, with what it came to.

    docs/manifest.schema.json documents it: within a schema version fields are only added. The folder of its source is
    left out. Names are sorted, as a database keeps those of the options in any order.
    """
    manifest = {
        **asdict(run),
        "schema_version": 1,
        "source": PureWindowsPath(run.source).name,
        "started_at": iso_time(run.started_at),
        "ended_at": iso_time(run.ended_at),
        "counts": asdict(counts) | {"by_status": {s.value: n for s, n in counts.by_status.items()}},
        "money": asdict(money),
        "causes": list(map(asdict, causes)),
        "files": files,
    }
    return json_bytes(manifest, is_pretty=True) + b"\n"


def read_manifest(folder: Path) -> Mapping[str, Any] | None:
    """Return what a folder's manifest says of its run; None where there is none that can be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    of_a_run = {"run_id", "ledger", "catalog", "environment", "studio_url", "ended_at"}
    return manifest if isinstance(manifest, dict) and manifest.keys() >= of_a_run else None


def write_catalog(
    ledger: Ledger, environment: str, catalog: str, folder: Path, results: Results | None = None
) -> Path:
    """Write what a catalog has now, for feeds, as `patternmill catalog` prints it; and beside it the person's sheet.

    `results`: those of a run of the catalog that were just written.
    """
    # Imported here because it loads pandas.
    from patternmill.tables.results import catalog_sheet, products_frame

    suffix = "" if environment == STAGING else f"-{environment}"
    path, stem = folder / f"catalog{suffix}.csv", f"sheet{suffix}"
    sweep(folder, [path.name, f"{stem}.csv", f"{stem}.xlsx"])
    rows = list(ledger.catalogs.rows(environment, catalog))
    write_whole(path, catalog_csv(rows))
    products = products_frame(rows)
    del rows
    read = {results.rows.run_id: results.rows} if results is not None and results.rows is not None else {}
    runs = map(ledger.runs.get, ledger.catalogs.sheet_runs(environment, catalog))
    parts = [read.get(run.run_id) or run_results(ledger, run).read() for run in runs if run is not None]
    if not parts:
        return path
    decided = last_sequence(ledger, environment, catalog)
    table = catalog_sheet(parts, products, verdicts_on_products(ledger, environment, catalog), decided)
    layout = parts[0].catalog.sheet.layout
    is_workbook = layout.format in WORKBOOK_FORMATS
    sheet, other = (
        folder / f"{stem}{kind}" for kind in ((".xlsx", ".csv") if is_workbook else (".csv", ".xlsx"))
    )
    write_whole(sheet, [table_workbook(table)] if is_workbook else table_csv(table, layout.delimiter or ","))
    # This is the sheet of a source that had another format.
    other.unlink(missing_ok=True)
    return path
