"""The verb `results`: writes the files of a run again, from the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.forgetting import forget_runs
from cli.json_output import fields_of, show
from cli.run_options import PlaceType, checked_request, filter_options, verb
from cli.terminal import echo, write_table
from patternmill.errors import ConfigurationError
from patternmill.files import LATEST, latest_in
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.run_lookup import find_run, had_lease, runs_with_lease
from patternmill.looking.page import gallery
from patternmill.looking.pictures import Pictures
from patternmill.runs.results_files import exact_rows, read_manifest, rebuild, results_table, write_catalog
from patternmill.settings import load_settings
from patternmill.tables.row_filter import RowFilter
from patternmill.text import counted, plural

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.records import RunRecord


@verb("results")
@click.argument("run", metavar="RUN", required=False)
@click.option("--out", type=PlaceType(), help="Where the files go. Default: results/CATALOG/RUN.")
@click.option("--catalog", help="The run's catalog; needed for `latest` if there are several.")
@click.option("--environment", help="The run's environment: staging, production, ... (default: any).")
@click.option("--forget", is_flag=True, help="Delete what the rows of RUN say, and its files, for good.")
@click.option(
    "--before",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="With --forget: of all runs that ended before this day (UTC).",
)
@click.option("--yes", is_flag=True, help="Do not ask before deleting; needed without a terminal.")
@filter_options
def command(
    run: str | None,
    out: Path | None,
    catalog: str | None,
    environment: str | None,
    forget: bool,
    before: datetime | None,
    yes: bool,
    **chosen: Any,
) -> int:
    """Write the results files of RUN again, as the run left its rows, with what was settled and ordered since.

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
    wanted, settings = checked_request(RowFilter, chosen), load_settings(environment, unknown_too=True)
    _refuse_contradictions(run, before, forget=forget)
    with open_ledger(settings, must_exist=True) as ledger:
        if forget:
            runs = _runs_to_forget(ledger, run, before, catalog=catalog, environment=environment)
            return forget_runs(ledger, settings, runs, out if run else None, yes=yes)
        assert run is not None, "refused before"
        record = find_run(ledger, run, catalog=catalog, environment=environment)
        _refuse_skipped(record)
        if not wanted.is_empty:
            scope = fields_of(record, "run_id", "catalog", "environment")
            if out is not None or not show(lambda: {**scope, "rows": exact_rows(ledger, record, wanted)}):
                write_table(results_table(ledger, record, wanted), out)
            return 0
        place = out or Path("results") / record.catalog / record.run_id
        links = _links_to(ledger, record) if out is None else []
        page = partial(gallery, share=partial(Pictures(settings.home).share, beside=place))
        results = rebuild(ledger, record.run_id, place, page, links=links)
        if out is None:
            write_catalog(ledger, record.environment, record.catalog, place.parent)
    if record.outcome is None:
        echo(f"Run {record.run_id} has not ended (or crashed): its rows are as the ledger knows them now.")
    counts = counted({status.value: count for status, count in results.counts.by_status.items()})
    paths = [place / name for name in results.files]
    sizes = [f"  {path}  {plural(path.stat().st_size, 'byte')}" for path in paths]
    report = {"folder": place.resolve(), "manifest": read_manifest(place)}
    show(lambda: report, [f"{record.outcome or 'open'}: {counts}", *sizes])
    return 0


def _refuse_contradictions(run: str | None, before: datetime | None, *, forget: bool) -> None:
    if not forget and (run is None or before is not None):
        raise click.UsageError("Name a run; --before is for --forget.")
    if forget and (run is None) == (before is None):
        raise click.UsageError("Name what to forget: a run, or --before DATE.")


def _runs_to_forget(
    ledger: Ledger, run: str | None, before: datetime | None, **scope: str | None
) -> list[RunRecord]:
    from patternmill.upkeep.retention import require_forgettable, runs_before

    if run is None:
        assert before is not None, "one of them is named"
        return runs_before(ledger, before.replace(tzinfo=UTC), **scope)
    record = find_run(ledger, run, **scope)
    require_forgettable(ledger, record)
    return [record]


def _refuse_skipped(record: RunRecord) -> None:
    if not had_lease(record):
        raise ConfigurationError(
            f"Run {record.run_id} made nothing: {record.reason or 'another run had the lease'}",
            remedy="Name the run that had the catalog's lease.",
        )


def _links_to(ledger: Ledger, record: RunRecord) -> list[str]:
    """Return the links that lead to a run: `latest` to the catalog's latest one, and that of its environment."""
    runs = list(runs_with_lease(ledger, record.catalog))
    here = [run for run in runs if run.environment == record.environment]
    named = {LATEST: runs, latest_in(record.environment): here}
    return [name for name, of_link in named.items() if of_link[0].run_id == record.run_id]
