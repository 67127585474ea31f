"""The end of a run: its results, and what a person and a program are told."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patternmill.errors import Refusal
from patternmill.files import code_version, point_at
from patternmill.ledger import catalogs
from patternmill.ledger.attempts import made_by, spent_by
from patternmill.ledger.database import Database
from patternmill.ledger.reports import last_run
from patternmill.mark import write_marks
from patternmill.plan import Plan
from patternmill.records import skus_of
from patternmill.request import Cause, End, Failure, Summary
from patternmill.run import Run
from patternmill.states import NEEDS_A_PERSON, CatalogRow, Outcome, Status
from patternmill.text import counted, money, parse_amount, plain

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked
    from patternmill.tables.results import Result

_MOST_FAILURES = 200


async def finish(run: Run, checked: "Checked", plan: Plan) -> End:
    """Write the catalog's files and the results, give the lease back, and return how the run ended."""
    assert run.lease and run.engine
    rows = catalogs.catalog_rows(run.database, run.settings.service, run.catalog)
    results = _results(run, checked, rows)
    statuses, counts = list(map(attrgetter("status"), results.values())), dict[str, int]()
    for status in Status:
        if number := statuses.count(status):
            counts[status] = number
    is_well = not run.left and set(counts) <= {Status.SUCCEEDED}
    outcome = Outcome.COMPLETED if is_well else Outcome.COMPLETED_WITH_FAILURES
    if reason := run.halt.first_reason:
        outcome = getattr(reason, "outcome", Outcome.FAILED)
    spent = spent_by(run.database, run.lease.driver)
    summary = Summary(
        run=run.lease.driver, catalog=run.catalog, environment=run.settings.service, outcome=outcome,
        counts=counts, folder=str(run.out),
        spent=plain(spent), currency=run.settings.currency, causes=_causes(results.values()),
    )  # fmt: skip
    problem = _write(run, checked, rows, results, summary)
    if problem:
        outcome = Outcome.FAILED
        summary = summary.model_copy(update={"outcome": outcome})
    places = [f"Results: {run.out / 'results.csv'}", f"Gallery: {run.out / 'gallery.html'}"]
    message = "\n".join([*_told(run, summary), *([problem] if problem else places)])
    await run.lease.give_back(outcome, message)
    return End(outcome, message, summary, tuple(islice(_failures(checked, results), _MOST_FAILURES)))


def _results(run: Run, checked: "Checked", rows: Sequence[CatalogRow]) -> "dict[int, Result]":
    """Return what became of each row by its number, from the ledger alone."""
    from patternmill.tables.results import Result

    found = dict(zip(map(attrgetter("key"), rows), rows, strict=True))
    results = {}
    for number, key in zip(checked.sheet.rows.index, run.keys, strict=True):
        row = found[key]
        status, code, message = row.status, row.code, row.message
        if status == Status.NOT_STARTED and run.halt.first_reason:
            code, message = run.halt.first_reason.code, run.halt.first_reason.message
        results[number] = Result(
            status, row.product_id, row.pattern_id, code, message, "" if row.refusal else str(row.take)
        )
    return results


def _causes(results: Any) -> list[Cause]:
    """Return the most frequent reasons why rows have no product, with the words of the first row of each."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.error:
            found.setdefault(result.error_code, []).append(result.error)
    if not found:
        return []
    ordered = sorted(found.items(), key=lambda cause: -len(cause[1]))
    return [Cause(code=code, rows=len(words), message=words[0]) for code, words in ordered[:8]]


def _write(
    run: Run,
    checked: "Checked",
    rows: Sequence[CatalogRow],
    results: "Mapping[int, Result]",
    summary: Summary,
) -> str:
    """Write the results and the catalog's files; return what prevents it, or nothing."""
    from patternmill.tables.results import results_frame, write_catalog, write_results

    manifest = {
        **summary.model_dump(mode="json"), "verb": run.request.verb, "ledger": run.database.identity,
        "source": checked.sheet.name, "source_sha256": checked.sheet.sha256,
        "ended_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "version": code_version(),
    }  # fmt: skip
    try:
        write_results(results_frame(checked, results, summary.run), checked, run.out, manifest)
        write_catalog(run.shelf, rows, is_workbook=checked.sheet.is_workbook)
        write_marks(run.shelves, run.database, run.settings.service)
        if run.out.parent == run.shelf:
            point_at(run.shelf / "latest", run.out.name)
    except (OSError, Refusal) as error:
        again = f"`patternmill results {run.catalog}` writes them again"
        return f"The results cannot be written to {run.out}: {error}. {again}, as they are in the ledger."
    return ""


def _told(run: Run, summary: Summary) -> Iterator[str]:
    """Yield what a person is told at the end of a run."""
    counts = map("{:,} {}".format, summary.counts.values(), summary.counts)
    yield f"{summary.outcome}: {', '.join(counts).replace('_', ' ')}"
    made = made_by(run.database, summary.run)
    if named := list(map(counted, made.values(), made)):
        spent = parse_amount(summary.spent)
        cost = f" for {money(spent, summary.currency)}" if spent else ""
        yield f"Made in this run: {', '.join(named)}{cost}"
    for cause in summary.causes[:5]:
        yield f"  {cause.rows:,} {cause.code}: {cause.message}"
    if reason := run.halt.first_reason:
        yield f"{reason.message} {reason.remedy}"
    yield from run.left


def _failures(checked: "Checked", results: "Mapping[int, Result]") -> Iterator[Failure]:
    skus = skus_of(checked)
    for number, result in results.items():
        if result.status in NEEDS_A_PERSON:
            yield Failure(number, skus[number], result.status, result.error_code, result.error)


def write_now(
    database: Database, environment: str, catalog: str, out: Path, rows: Sequence[CatalogRow]
) -> None:
    """Write the files of a catalog as its rows are now, retired ones aside."""
    from patternmill.tables.kept import kept_sheet
    from patternmill.tables.results import Result, results_frame, write_catalog, write_results

    checked = kept_sheet([row for row in rows if row.retired is None])
    living = zip(checked.sheet.rows.index, (row for row in rows if row.retired is None), strict=True)
    results = {
        number: Result(row.status, row.product_id, row.pattern_id, row.code, row.message, str(row.take))
        for number, row in living if not row.refusal
    }  # fmt: skip
    run = last_run(database, environment, catalog)
    manifest = {"run": run.id, "catalog": catalog, "environment": environment, "outcome": run.outcome}
    write_results(
        results_frame(checked, results, run.id), checked, out, {**manifest, "ledger": database.identity}
    )
    write_catalog(out, rows)
