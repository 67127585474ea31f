"""The verb `catalog`: writes each sku of a catalog with its product ID, for spreadsheets and programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.json_output import fields_of, show, utc
from cli.run_options import PlaceType, checked_request, filter_options, verb
from cli.terminal import write_table
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import open_ledger
from patternmill.settings import load_settings
from patternmill.tables.row_filter import RowFilter, catalog_rows_meant
from patternmill.tables.written import catalog_csv
from patternmill.text import plural

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.planning.changes import CurrentRow


@verb("catalog")
@click.argument("name")
@click.option("--out", type=PlaceType(), help="A file to write to (default: the terminal).")
@click.option(
    "--environment", help="staging, production, ... (default: PATTERNMILL_ENVIRONMENT, or staging)."
)
@click.option("--current", is_flag=True, help="Leave out what is retired.")
@filter_options
def command(name: str, out: Path | None, environment: str | None, current: bool, **chosen: Any) -> int:
    """Write what the catalog NAME has now: each sku with its latest product, and what that was made from.

    A changed row that failed keeps its old product. Rows no longer in the source are `retired`.

    \b
    Examples:
      patternmill catalog spring
      patternmill catalog spring --out spring.csv
      patternmill catalog spring --current --category Mug

    Exit codes: 0 written; 2 there is no such catalog here, or a setting is wrong; 1 failed.
    """
    wanted, settings = checked_request(RowFilter, chosen), load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        if not any(True for _ in ledger.catalogs.rows(settings.environment, name)):
            raise _unknown(ledger, name, settings.environment)
        rows = catalog_rows_meant(ledger.catalogs.rows(settings.environment, name), wanted)
    rows = [row for row in rows if row.retired_at is None or not current]
    report: dict[str, object] = {"catalog": name, "environment": settings.environment}
    if out is not None or not show(lambda: {**report, "rows": list(map(_row_object, rows))}):
        write_table(catalog_csv(rows), out)
    if out is not None:
        sentence = f"{plural(len(rows), 'row')} of catalog {name} ({settings.environment})"
        show(lambda: {**report, "file": out}, [sentence])
    return 0


def _row_object(row: CurrentRow) -> dict[str, object]:
    content = fields_of(row.content, "prompt", "category", "selections")
    times = {"since": utc(row.since), "retired_at": utc(row.retired_at)}
    return fields_of(row, "sku", "product_id", "pattern_id", "run_id") | content | times


def _unknown(ledger: Ledger, name: str, environment: str) -> Exception:
    catalogs = ", ".join(f"{catalog} ({its})" for catalog, its in list(ledger.catalogs.sizes())[:5])
    return ConfigurationError(
        f"The catalog {name!r} ({environment}) has no products in this ledger.",
        remedy=f"Known: {catalogs}." if catalogs else "Import something first.",
    )
