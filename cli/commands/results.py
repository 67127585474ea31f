"""The verbs `results` and `catalog`: write what the ledger has of a run or a catalog; `--forget` deletes old runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from cli.json_output import Part, fields_of, show, utc
from cli.run_options import verb
from cli.terminal import confirmed, echo, write_table
from patternmill.errors import ConfigurationError, Overlap
from patternmill.files import LATEST, latest_in
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import find_run, had_lease, runs_with_lease
from patternmill.looking.page import gallery
from patternmill.looking.pictures import Pictures
from patternmill.parameters import checked_path
from patternmill.planning.changes import CurrentRow
from patternmill.runs.results_files import exact_rows, read_manifest, rebuild, results_table, write_catalog
from patternmill.runs.safeguards import require_writable
from patternmill.settings import Settings, load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.tables.row_filter import RowFilter, catalog_rows_meant
from patternmill.tables.written import catalog_csv
from patternmill.text import counted, more, plural
from patternmill.upkeep import retention
from patternmill.upkeep.retention import ResultFiles, Retention

_MOST_SHOWN = 20


def _no_address(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    try:
        return path and checked_path(path)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_out = partial(click.option, "--out", type=click.Path(path_type=Path), callback=_no_address)


@verb("catalog", RowFilter)
@click.argument("name")
@_out(help="A file to write to (default: the terminal).")
@click.option("--environment", help="staging, production, ... Default: PATTERNMILL_ENVIRONMENT, or staging.")
@click.option("--current", is_flag=True, help="Leave out what is retired.")
def catalog(request: RowFilter, name: str, out: Path | None, environment: str | None, current: bool) -> int:
    """Write what the catalog NAME has now: each sku with its latest product, and what that was made from.

    A changed row that failed keeps its old product. Rows no longer in the source are `retired`.

    \b
    Examples:
      patternmill catalog spring
      patternmill catalog spring --out spring.csv
      patternmill catalog spring --current --category Mug

    Exit codes: 0 written; 2 there is no such catalog here, or a setting is wrong; 1 failed.
    """
    settings = load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        every = list(ledger.catalogs.rows(settings.environment, name))
        if not every:
            known = ", ".join(
                f"{catalog} ({environment})" for catalog, environment in list(ledger.catalogs.sizes())[:5]
            )
            raise ConfigurationError(
                f"The catalog {name!r} ({settings.environment}) has no products in this ledger.",
                remedy=f"Known: {known}." if known else "Import something first.",
            )
    rows = [row for row in catalog_rows_meant(every, request) if row.retired_at is None or not current]
    report: dict[str, object] = {"catalog": name, "environment": settings.environment}
    if out is not None:
        write_table(catalog_csv(rows), out)
        sentence = f"{plural(len(rows), 'row')} of catalog {name} ({settings.environment})"
        show(lambda: {**report, "file": out}, [sentence])
    elif not show(lambda: {**report, "rows": list(map(_row_fields, rows))}):
        write_table(catalog_csv(rows), None)
    return EXIT_CODES[Outcome.COMPLETED]


def _row_fields(row: CurrentRow) -> dict[str, object]:
    content = fields_of(row.content, "prompt", "category", "selections")
    times = {"since": utc(row.since), "retired_at": utc(row.retired_at)}
    return fields_of(row, "sku", "product_id", "pattern_id", "run_id") | content | times


@verb("results", RowFilter)
@click.argument("run", metavar="RUN", required=False)
@_out(help="Where the files go. Default: results/CATALOG/RUN.")
@click.option("--catalog", help="The run's catalog; needed for `latest` if there are several.")
@click.option("--environment", help="The run's environment: staging, production, ... (default: any).")
@click.option("--forget", is_flag=True, help="Delete for good what the rows of RUN contain, and its files.")
@click.option(
    "--before",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="With --forget: of all runs that ended before this day (UTC).",
)
@click.option("--yes", is_flag=True, help="Do not ask before deleting; needed without a terminal.")
def results(
    request: RowFilter,
    run: str | None,
    out: Path | None,
    catalog: str | None,
    environment: str | None,
    forget: bool,
    before: datetime | None,
    yes: bool,
) -> int:
    """Write the results files of RUN again: its rows as it left them, with what was settled and ordered since.

    RUN is a run's ID, its beginning, or `latest`. Everything comes from the ledger. Of a run that crashed or has not
    ended, the rows are as they are now. With a filter only the rows that fit are written, as one table, to the terminal
    or to --out.

    --forget deletes the prompts, inputs, files and notes of ended runs, once you have seen what goes; never of a
    catalog's latest run, or of rows that the catalog has. Purchases and counts stay, so that nothing is bought again.

    \b
    Examples:
      patternmill results latest --catalog spring
      patternmill results latest --status failed --category Mug --out mugs.csv
      patternmill results --forget --before 2026-01-01

    Exit codes: 0 the files are written, or deleted; 2 there is no such run, a setting is wrong, or it was not
    confirmed; 3 a changed or linked file stays; 4 a run has the catalog's lease; 1 failed.
    """
    settings = load_settings(environment, unknown_too=True)
    scope = {"catalog": catalog, "environment": environment}
    if not forget and (run is None or before is not None):
        raise click.UsageError("Name a run; --before is for --forget.")
    if forget and (run is None) == (before is None):
        raise click.UsageError("Name what to forget: a run, or --before DATE.")
    with open_ledger(settings, must_exist=True) as ledger:
        if before is not None:
            runs = retention.runs_before(ledger, before.replace(tzinfo=UTC), **scope)
            return _forget(ledger, settings, runs, None, yes=yes)
        assert run is not None, "refused before"
        record = find_run(ledger, run, **scope)
        if forget:
            retention.require_forgettable(ledger, record)
            return _forget(ledger, settings, [record], out, yes=yes)
        if not had_lease(record):
            raise ConfigurationError(
                f"Run {record.run_id} made nothing: {record.reason or 'another run had the lease'}",
                remedy="Name the run that had the catalog's lease.",
            )
        if request.is_empty:
            _rebuild(ledger, settings, record, out)
        else:
            fields = fields_of(record, "run_id", "catalog", "environment")
            if out is not None or not show(lambda: {**fields, "rows": exact_rows(ledger, record, request)}):
                write_table(results_table(ledger, record, request), out)
    return EXIT_CODES[Outcome.COMPLETED]


def _rebuild(ledger: Ledger, settings: Settings, record: RunRecord, out: Path | None) -> None:
    """Write the files of a run, and say what was written."""
    place = out or Path("results") / record.catalog / record.run_id
    require_writable(place)
    page = partial(gallery, share=partial(Pictures(settings.home).share, beside=place))
    links = _links_to(ledger, record) if out is None else []
    written = rebuild(ledger, record, place, page, links=links)
    if out is None:
        write_catalog(ledger, record.environment, record.catalog, place.parent)
    if record.outcome is None:
        echo(f"Run {record.run_id} has not ended (or crashed): its rows are as the ledger knows them now.")
    counts = counted({status.value: count for status, count in written.counts.by_status.items()})
    paths = [place / name for name in written.files]
    sizes = [f"  {path}  {plural(path.stat().st_size, 'byte')}" for path in paths]
    report = {"folder": place.resolve(), "manifest": read_manifest(place)}
    show(lambda: report, [f"{record.outcome or 'open'}: {counts}", *sizes])


def _links_to(ledger: Ledger, record: RunRecord) -> list[str]:
    """Return the links that lead to a run: `latest` to the catalog's latest one, and that of its environment."""
    runs = list(runs_with_lease(ledger, record.catalog))
    here = [run for run in runs if run.environment == record.environment]
    linked = {LATEST: runs[0], latest_in(record.environment): here[0]}
    return [name for name, run in linked.items() if run.run_id == record.run_id]


def _forget(
    ledger: Ledger, settings: Settings, runs: Sequence[RunRecord], out: Path | None, *, yes: bool
) -> int:
    """Show what the runs leave behind, and delete it once that is confirmed; return the exit code."""
    plan = retention.plan_retention(ledger, settings, runs, out)
    if plan.is_empty:
        echo("Nothing that fits is left to be forgotten.")
        return EXIT_CODES[Outcome.COMPLETED]
    parts = [
        _run_part(run, part.rows[run.run_id], plan.files[run.run_id])
        for part in plan.parts
        for run in part.runs
    ]
    texts = [text for _, text in parts[:_MOST_SHOWN]]
    show(
        lambda: {"runs": [fields for fields, _ in parts], "copies": plan.copies},
        [*texts, *more(len(parts), _MOST_SHOWN), _sum(plan)],
    )
    if not (yes or confirmed("Delete this for good?", "Nothing was deleted")):
        return EXIT_REFUSED
    try:
        left = asyncio.run(retention.carry_out(ledger, plan))
    except Overlap as overlap:
        overlap.remedy = "Run the same command again once that run has ended."
        raise
    echo("Forgotten.")
    for path, why in left.items():
        echo(f"Left: {path} {why}", err=True)
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if left else Outcome.COMPLETED]


def _run_part(run: RunRecord, rows: int, files: ResultFiles) -> Part:
    """Return what goes and what stays of a run."""
    size = f", {plural(len(files.deletable), 'file')} in {files.folder}" if files.deletable else ""
    lines = [f"{run.run_id}  {run.catalog} ({run.environment}): {plural(rows, 'row')}{size}"]
    lines += [f"  stays: {files.folder / name} {why}" for name, why in files.left.items()]
    fields = fields_of(run, "run_id", "catalog", "environment")
    names = {"folder": files.folder, "files": list(files.deletable), "left": files.left}
    return {**fields, "rows": rows, **names}, "\n".join(lines)


def _sum(plan: Retention) -> str:
    rows = sum(count for part in plan.parts for count in part.rows.values())
    items = sum(part.told_items for part in plan.parts)
    size = sum(size for files in plan.files.values() for size in files.deletable.values())
    copies = f"And copies of the ledger that upgrades made: {', '.join(map(str, plan.copies))}.\n"
    return (
        f"To be deleted: what {plural(rows, 'row')} and {plural(items, 'item')} say (prompts, inputs, pictures, notes, "
        f"messages), and {plural(size, 'byte')} of files.\n{copies if plan.copies else ''}"
        "What stays: request IDs, purchases, skus, statuses and counts; rows that the catalog still has."
    )
