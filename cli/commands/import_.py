"""The verb `import`: a CSV becomes products, as a Prefect flow that can be watched while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from patternmill.settings import Confirmation

APPROVE_HELP = "Approves the plan with this digest (or its first 12 characters), as --plan-only shows it."
ENVIRONMENT_HELP = "staging, production, ...; scopes the ledger, all request IDs and the category IDs."
_CONFIRM_HELP = (
    "A large purchase in production, or another catalog's products once more, is meant; repeatable."
)


def _joined(_context: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> str | None:
    if not words:
        return None
    from patternmill.settings import confirmation

    return confirmation(words)


confirm_option = click.option(
    "--confirm",
    type=click.Choice(["production", "duplicates"]),
    metavar="production|duplicates",
    multiple=True,
    callback=_joined,
    help=_CONFIRM_HELP,
)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--catalog", help="Name of the catalog (default: the file's name).")
@click.option("--environment", help=ENVIRONMENT_HELP)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where the results go (default: results/CATALOG/RUN)."
)
@click.option(
    "--encoding", help="Of the file, when it is neither UTF-8 nor UTF-16 with a mark; cp1252, for one."
)
@click.option(
    "--max-in-flight", type=click.IntRange(1, 5000), help="The most jobs in flight at once (default 200)."
)
@click.option("--attempts", type=click.IntRange(1, 10), help="Tries an item, when its job fails (default 2).")
@click.option("--edition", help="Buys everything in the file again, under this name.")
@click.option(
    "--max-failures", metavar="N|N%", help="Stops new items when more have failed; a share counts from 20 on."
)
@click.option("--max-patterns", type=click.IntRange(0), help="The most patterns that this run may buy.")
@click.option("--max-products", type=click.IntRange(0), help="The most products that this run may buy.")
@click.option(
    "--budget",
    type=click.IntRange(0),
    help="The most that this run may spend, in minor units (50000: €500.00).",
)
@confirm_option
@click.option("--approve", metavar="DIGEST", help=APPROVE_HELP)
@click.option(
    "--spread", type=click.IntRange(1, 64), help="Drives the rows in so many parts on Prefect's workers."
)
@click.option(
    "--plan-only", is_flag=True, help="Show what would be made, and why; nothing is written or spent."
)
def command(
    file: Path,
    catalog: str | None,
    environment: str | None,
    out: Path | None,
    encoding: str | None,
    max_in_flight: int | None,
    attempts: int | None,
    edition: str | None,
    max_failures: str | None,
    max_patterns: int | None,
    max_products: int | None,
    budget: int | None,
    confirm: Confirmation | None,
    approve: str | None,
    spread: int | None,
    plan_only: bool,
) -> int:
    """Turn the rows of FILE into patterns and products, and give the rows back with their product IDs.

    Run it again and it goes on where it stood: what is there costs nothing, what was asked for is asked for
    again under the same request ID. Rows with mistakes are left out and come back in failures.csv.

    \b
    Examples:
      patternmill import inputs/spring_catalog.csv
      patternmill import spring.csv --plan-only
      patternmill import results/spring/latest/failures.csv --catalog spring

    \b
    Exit codes: 0 every row has its product; 3 completed with failures; 2 refused before anything was
    spent, or the plan was not approved; 1 failed; 4 another run holds the catalog; 130 interrupted.
    """
    from cli.launcher import Request, run_import, show_plan

    request = Request(
        file=file,
        catalog=catalog,
        environment=environment,
        out=out,
        encoding=encoding,
        max_in_flight=max_in_flight,
        attempts=attempts,
        edition=edition,
        max_failures=max_failures,
        max_patterns=max_patterns,
        max_products=max_products,
        budget=budget,
        confirm=confirm,
        spread=spread,
    )
    return show_plan(request) if plan_only else run_import(request, approve)
