"""The verb `catalog`: writes each sku of a catalog with its product ID, for spreadsheets and programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.run_options import PlaceType, filter_options, row_filter
from cli.terminal import echo, write_table
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import open_ledger
from patternmill.results.catalog_files import state_bytes
from patternmill.results.row_filter import catalog_rows_meant
from patternmill.settings import load_settings
from patternmill.text import plural

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger


@click.command("catalog")
@click.argument("name")
@click.option("--out", type=PlaceType(), help="A file to write to (default: the terminal).")
@click.option(
    "--environment", help="staging, production, ... (default: PATTERNMILL_ENVIRONMENT, or staging)."
)
@click.option("--current", is_flag=True, help="Leave out what is retired.")
@filter_options
def command(name: str, out: Path | None, environment: str | None, current: bool, **chosen: Any) -> int:
    """Write what the catalog NAME has now: each sku with its latest product, and what that was made from.

    A changed row that failed keeps its old product. Rows that the source no longer has are `retired`.

    \b
    Examples:
      patternmill catalog spring
      patternmill catalog spring --out spring.csv
      patternmill catalog spring --current --category Mug

    Exit codes: 0 written; 2 there is no such catalog here, or a setting is wrong; 1 failed.
    """
    wanted, settings = row_filter(chosen), load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        if not any(True for _ in ledger.catalogs.rows(settings.environment, name)):
            raise _unknown(ledger, name, settings.environment)
        rows = catalog_rows_meant(ledger, settings.environment, name, wanted)
    shown = [row for row in rows if row.retired_at is None or not current]
    write_table(state_bytes(shown), out)
    if out is not None:
        echo(f"{plural(len(shown), 'row')} of catalog {name} ({settings.environment})", err=True)
    return 0


def _unknown(ledger: Ledger, name: str, environment: str) -> Exception:
    known = ", ".join(f"{catalog} ({its})" for catalog, its in ledger.catalogs.names()[:5])
    return ConfigurationError(
        f"The catalog {name!r} ({environment}) has no products in this ledger.",
        remedy=f"Known: {known}." if known else "Import something first.",
    )
