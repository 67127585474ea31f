"""The verb `refresh`: updates a catalog from its source; makes only what has changed."""

from __future__ import annotations

import click

from cli.run_options import approve_option, request_command, run_options
from cli.terminal import steps
from patternmill.runs.request import RefreshRequest


@click.command("refresh", cls=request_command(RefreshRequest))
@click.argument("source")
@run_options(RefreshRequest, declared=("source",))
@approve_option
@click.option(
    "--plan-only", is_flag=True, help="Show what has changed and would be made; nothing is written or spent."
)
def command(request: RefreshRequest, approve: str | None, plan_only: bool) -> int:
    """Update a catalog from SOURCE: make what was added or changed there, retire what is gone.

    SOURCE is the whole catalog: a path, an http(s) address, or one like s3://bucket/spring.csv (its package must be
    installed). For an address with a secret, use its name in PATTERNMILL_SOURCES.

    Unchanged rows cost nothing, in whatever order; a changed selection reuses the pattern; a changed prompt makes a
    new pattern and product. A changed row that fails keeps its product. Rows that are gone are retired; if they are
    more than --retire-at-most, or all, none is retired until you say how many with --retire N.

    \b
    Examples:
      patternmill refresh spring.csv --catalog spring --plan-only
      patternmill refresh https://example.com/spring.csv --catalog spring
      patternmill refresh s3://sheets/spring.csv --catalog spring --out s3://results/spring

    Exit codes: 0 every row has its product; 3 completed with failures, or rows wait to be retired; 2 refused
    before anything was spent, or not approved; 1 failed; 4 another run of this catalog goes on; 130 interrupted.
    """
    steps.show("Reading the source …")
    from cli.launcher import run_request, show_plan
    from patternmill.runs.spec import run_spec

    spec = run_spec(request)
    return show_plan(spec) if plan_only else run_request(request, spec, approve)
