"""The verbs that look things up in the ledger, and write a catalog's files as it is now."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.server import look_at_server
from patternmill.ledger.reports import history_lines, open_ledger, status_lines, status_record
from patternmill.settings import STUDIO, Settings
from patternmill.text import plain, printable

_ENVIRONMENT = click.option("--environment", help="The environment. Default: that of the settings.")


def _seconds(_: click.Context, __: click.Parameter, age: str | None) -> float | None:
    if age is None:
        return None
    if not re.fullmatch(r"\d{1,6}[mhd]", age):
        raise click.BadParameter("write 90m, 12h or 3d")
    return int(age[:-1]) * {"m": 60.0, "h": 3600.0, "d": 86400.0}[age[-1]]


@click.command()
@click.option("--catalog", help="This catalog only.")
@click.option(
    "--older-than", callback=_seconds, help="Only what has been open or held for longer: 90m, 12h, 3d."
)
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
@_ENVIRONMENT
def status(catalog: str | None, older_than: float | None, as_json: bool, environment: str | None) -> int:
    """Show what is paused, open, held and spent, the catalogs, and the last runs.

    With --older-than it exits with 3 where anything has been open or held for longer.
    """
    with open_ledger() as (database, settings):
        before = 1e12 if older_than is None else time.time() - older_than
        record = status_record(database, environment or settings.service, catalog, before)
        record["service"] = _service_of(settings)
        record["prefect"] = asyncio.run(look_at_server(settings.folder))
    lines = [record["service"], *_server_lines(record["prefect"]), *status_lines(record)]
    click.echo(json.dumps(_with_texts(record), indent=2) if as_json else "\n".join(lines))
    return 3 if older_than is not None and record["open"] else 0


def _with_texts(record: dict[str, Any]) -> dict[str, Any]:
    """Return a status whose amounts are texts such as `40.00`."""
    for row in [*record["open"], *record["runs"], *record["spent_today"]]:
        row |= {name: plain(row[name]) for name in ("amount", "spent") if name in row}
    return record


def _server_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"Prefect server: {found['address']} {found['says']}".replace("  ", " ")
    for one in found["schedules"]:
        due = f"next on {one['next']} (UTC)" if one["next"] else "not due" if one["on"] else "off"
        yield f"schedule {one['deployment']}: {one['rule']}, {due}"


def _service_of(settings: Settings) -> str:
    key = "a key is set" if settings.api_key.get_secret_value() else "no key is set"
    place = "in PostgreSQL" if settings.ledger_url else settings.ledger_address
    if settings.service == STUDIO and not settings.studio_url:
        return f"{STUDIO}: the embedded studio; ledger {place}"
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
