"""The verb `refresh`: a catalog follows its source, and makes only what has changed in it."""

from __future__ import annotations

from typing import Any

import click

from cli.commands.import_ import APPROVE_HELP, ENVIRONMENT_HELP, confirm_option


@click.command("refresh")
@click.argument("source")
@click.option("--catalog", required=True, help="The catalog that follows the source.")
@click.option("--environment", help=ENVIRONMENT_HELP)
@click.option(
    "--retire", type=click.IntRange(0), help="Lets at most so many missing rows be retired, past the limit."
)
@click.option(
    "--retire-at-most",
    metavar="N,N%",
    help="More than this is withheld until somebody agrees: a count, a share, or both (default 20,10%).",
)
@click.option("--out", help="Where the results go: a folder or an address (default: results/CATALOG/RUN).")
@click.option("--encoding", help="Of the source, when it is neither UTF-8 nor UTF-16 with a mark.")
@click.option(
    "--max-in-flight", type=click.IntRange(1, 5000), help="The most jobs in flight at once (default 200)."
)
@click.option("--attempts", type=click.IntRange(1, 10), help="Tries an item, when its job fails (default 2).")
@click.option("--edition", help="Buys everything in the source again, under this name.")
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
    "--plan-only", is_flag=True, help="Show what has changed and would be made; nothing is written or spent."
)
def command(source: str, approve: str | None, plan_only: bool, **asked: Any) -> int:
    """Let a catalog follow SOURCE: make what was added or changed there, mark what is gone as retired.

    SOURCE is the whole catalog: a path, an http(s) address, or one like s3://bucket/spring.csv (with what reads
    it installed); compressed by gzip or not. A name in PATTERNMILL_SOURCES stands for an address with a secret.

    Unchanged rows cost no call, whatever their order; another selection reuses the pattern; another prompt makes a
    new pattern and product. A changed row that fails keeps the product that it had. Rows that are gone are retired,
    but nothing of them when they are more than --retire-at-most, or all: they wait for --retire N.

    \b
    Examples:
      patternmill refresh spring.csv --catalog spring --plan-only
      patternmill refresh https://example.com/spring.csv --catalog spring
      patternmill refresh s3://sheets/spring.csv.gz --catalog spring --out s3://results/spring

    \b
    Exit codes: 0 every row has its product; 3 completed with failures, or rows wait to be retired; 2 refused
    before anything was spent, or not approved; 1 failed; 4 another run holds the catalog; 130 interrupted.
    """
    from cli.launcher import run_import
    from cli.refresh_preview import RefreshRequest, show_changes

    request = RefreshRequest(source, **asked)
    return show_changes(request) if plan_only else run_import(request, approve)
