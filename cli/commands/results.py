"""The verb `results`: writes the files of a run again, from the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.run_options import PlaceType, filter_options, row_filter
from cli.terminal import echo, write_table
from patternmill.errors import ConfigurationError
from patternmill.files import LATEST, latest_in
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.run_lookup import find_run, had_lease, runs_with_lease
from patternmill.looking.kept_pictures import KEPT_PICTURES, NOT_SHARED, share_pictures
from patternmill.looking.page import gallery
from patternmill.results.results_files import rebuild, results_table, write_catalog
from patternmill.settings import load_settings
from patternmill.text import counted, plural

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.records import RunRecord


@click.command("results")
@click.argument("run", metavar="RUN")
@click.option("--out", type=PlaceType(), help="Where the files go. Default: results/CATALOG/RUN.")
@click.option("--catalog", help="The run's catalog; needed for `latest` if there are several.")
@click.option("--environment", help="The run's environment: staging, production, ... (default: any).")
@filter_options
def command(run: str, out: Path | None, catalog: str | None, environment: str | None, **chosen: Any) -> int:
    """Write the results files of RUN again, as the run left its rows, with what was settled and ordered since.

    RUN is a run's ID, its beginning, or `latest`. Everything comes from the ledger: the input and the service are
    not needed. For a run that crashed, or has not ended, the rows are as they are now. With a filter of rows only those
    are written, as one table: to the terminal, or to the file --out.

    \b
    Examples:
      patternmill results latest --catalog spring
      patternmill results 20260301-0930 --out /tmp/again
      patternmill results latest --status failed --category Mug --out mugs.csv

    Exit codes: 0 the files are written; 2 there is no such run, or a setting is wrong; 1 failed.
    """
    wanted, settings = row_filter(chosen), load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        record = find_run(ledger, run, catalog=catalog, environment=environment)
        _refuse_skipped(record)
        if not wanted.is_empty:
            write_table(results_table(ledger, record, wanted), out)
            return 0
        place = out or Path("results") / record.catalog / record.run_id
        links = _links_to(ledger, record) if out is None else []
        results = rebuild(ledger, record.run_id, place, gallery, links=links)
        if out is None:
            write_catalog(ledger, record.environment, record.catalog, place.parent)
    if record.options.get(KEPT_PICTURES) and not share_pictures(place, settings.home):
        echo(NOT_SHARED.format(place))
    if record.outcome is None:
        echo(f"Run {record.run_id} has not ended (or crashed): its rows are as the ledger knows them now.")
    echo(f"{record.outcome or 'open'}: {counted({s.value: n for s, n in results.counts.by_status.items()})}")
    for path in map(place.joinpath, results.files):
        echo(f"  {path}  {plural(path.stat().st_size, 'byte')}")
    return 0


def _refuse_skipped(record: RunRecord) -> None:
    if not had_lease(record):
        raise ConfigurationError(
            f"Run {record.run_id} made nothing: {record.reason or 'another run had the lease'}",
            remedy="Name the run that had the catalog's lease.",
        )


def _links_to(ledger: Ledger, record: RunRecord) -> list[str]:
    """`latest` if it is the catalog's latest run, and the like for its environment."""
    runs = list(runs_with_lease(ledger, record.catalog))
    here = [run for run in runs if run.environment == record.environment]
    named = {LATEST: runs, latest_in(record.environment): here}
    return [name for name, those in named.items() if those[0].run_id == record.run_id]
