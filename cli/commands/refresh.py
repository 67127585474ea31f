"""The verb `refresh`: a catalog follows its source, and makes only what has changed in it."""

from __future__ import annotations

import click

from cli.run_options import approve_option, run_options
from patternmill.runs.request import RefreshRequest


@click.command("refresh")
@click.argument("source")
@run_options(RefreshRequest, by_hand=("source",))
@approve_option
@click.option(
    "--plan-only", is_flag=True, help="Show what has changed and would be made; nothing is written or spent."
)
def command(request: RefreshRequest, approve: str | None, plan_only: bool) -> int:
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
    from cli.launcher import run_request, show_plan
    from patternmill.runs.spec import refresh_spec

    spec = refresh_spec(request)
    return show_plan(spec) if plan_only else run_request(request, spec, approve)
