"""The verb `catalog`: writes each sku of a catalog with its product ID, for spreadsheets and programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.terminal import echo, write_output
from patternmill.catalog.remote import is_remote, write_bytes
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.overview import catalogs
from patternmill.results.catalog_files import state_bytes
from patternmill.settings import load_settings
from patternmill.text import plural

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger


@click.command("catalog")
@click.argument("name")
@click.option("--out", help="A file or an address to write to (default: the terminal).")
@click.option(
    "--environment", help="staging, production, ... (default: PATTERNMILL_ENVIRONMENT, or staging)."
)
@click.option("--current", is_flag=True, help="Leave out what is retired.")
def command(name: str, out: str | None, environment: str | None, current: bool) -> int:
    """Write what the catalog NAME has now: each sku with its latest product, and what that was made from.

    A changed row that failed keeps its old product. Rows that the source no longer has are `retired`.

    \b
    Examples:
      patternmill catalog spring
      patternmill catalog spring --out spring.csv
      patternmill catalog spring --current

    Exit codes: 0 written; 2 there is no such catalog here, or a setting is wrong; 1 failed.
    """
    settings = load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        rows = list(ledger.catalog_rows(settings.environment, name))
        if not rows:
            raise _unknown(ledger, name, settings.environment)
    shown = [row for row in rows if row.retired_at is None or not current]
    _write(state_bytes(shown), out)
    if out is not None:
        echo(f"{plural(len(shown), 'row')} of catalog {name} ({settings.environment})", err=True)
    return 0


def _write(chunks: Iterable[bytes], out: str | None) -> None:
    if out is None:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
    elif is_remote(out):
        write_bytes(out, b"".join(chunks))
    else:
        write_output(Path(out), chunks)


def _unknown(ledger: Ledger, name: str, environment: str) -> Exception:
    known = ", ".join(f"{catalog} ({its})" for catalog, its in catalogs(ledger)[:5])
    return ConfigurationError(
        f"The catalog {name!r} ({environment}) has no products in this ledger.",
        remedy=f"Known: {known}." if known else "Import something first.",
    )
