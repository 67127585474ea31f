"""The verbs that look things up in the ledger, and write a catalog's files as it is now."""

import json
from pathlib import Path
from typing import Any

import click

from patternmill.ledger.reports import history_lines, open_ledger, status_lines, status_record
from patternmill.settings import Settings
from patternmill.text import printable

_ENVIRONMENT = click.option("--environment", help="The environment. Default: that of the settings.")


@click.command()
@click.option("--catalog", help="This catalog only.")
@click.option("--json", "as_json", is_flag=True)
@_ENVIRONMENT
def status(catalog: str | None, as_json: bool, environment: str | None) -> None:
    """Show what is paused, open, held and spent, the catalogs, and the last runs."""
    with open_ledger() as (database, settings):
        record = status_record(database, environment or settings.service, catalog)
        record["service"] = _service_of(settings)
    click.echo(
        json.dumps(record, indent=2) if as_json else "\n".join([record["service"], *status_lines(record)])
    )


def _service_of(settings: Settings) -> str:
    key = "a key is set" if settings.api_key.get_secret_value() else "no key is set"
    place = "in PostgreSQL" if settings.ledger_url else settings.ledger_address
    return f"{settings.service}: {settings.studio_url or 'no service is configured'}, {key}; ledger {place}"


@click.command()
@click.argument("name")
@click.option(
    "--report", metavar="TEXT", help="Tell the service's operators: what was expected, what happened."
)
@click.option("--yes", is_flag=True, help="Send the report without a question.")
@_ENVIRONMENT
def explain(name: str, report: str | None, yes: bool, environment: str | None) -> None:
    """Show the history of a sku, a request ID, a job ID, a pattern ID or a product ID."""
    with open_ledger() as (database, settings):
        click.echo(printable("\n".join(history_lines(database, environment or settings.service, name))))
    if report is not None:
        from cli.reporting import send_report

        send_report(name, report, environment, yes=yes)


@click.command()
@click.argument("name")
@_ENVIRONMENT
def catalog(name: str, environment: str | None) -> None:
    """Write which sku of a catalog has which product, as CSV."""
    from patternmill.tables.results import catalog_csv

    with open_ledger() as (database, settings):
        click.echo(catalog_csv(rows_of(database, environment or settings.service, name)), nl=False)


@click.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="The folder. Default: results/CATALOG/now.")
@_ENVIRONMENT
def results(name: str, out: Path | None, environment: str | None) -> None:
    """Write the files of a catalog as its rows are now."""
    from patternmill.ending import write_now

    with open_ledger() as (database, settings):
        service = environment or settings.service
        folder = out or Path("results") / name / "now"
        write_now(database, service, name, folder, rows_of(database, service, name))
    click.echo(f"Results: {folder / 'results.csv'}")


def rows_of(database: Any, environment: str, name: str) -> Any:
    """Return the rows of a catalog. Raises Refusal where there is none."""
    from patternmill.errors import Refusal
    from patternmill.ledger.catalogs import catalog_rows

    if not (rows := catalog_rows(database, environment, name)):
        message = f"There is no catalog {name} in {environment}."
        raise Refusal("no_catalog", message, "`patternmill status` lists the catalogs.")
    return rows
