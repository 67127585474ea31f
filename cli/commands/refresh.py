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
@click.option(
    "--cron", metavar="CRON", help='Do it by a schedule, from now on: "0 5 * * *" is each day at 5:00.'
)
@click.option("--timezone", help="Of --cron: Europe/Berlin, … Default: UTC.")
def command(
    request: RefreshRequest, approve: str | None, plan_only: bool, cron: str | None, timezone: str | None
) -> int:
    """Update a catalog from SOURCE: make what was added or changed there, retire what is gone.

    SOURCE is the whole catalog: a path, an http(s) address, or one like s3://bucket/spring.csv (its package must be
    installed). For an address with a secret, use its name in PATTERNMILL_SOURCES.

    Unchanged rows cost nothing, in whatever order; a changed selection reuses the pattern; a changed prompt makes a
    new pattern and product. A changed row that fails keeps its product. Rows that are gone are retired; if they are
    more than --retire-at-most, or all, none is retired until you say how many with --retire N.

    With --cron nothing is made now: workers do it by a schedule, which is kept at the Prefect server of
    PREFECT_API_URL, or of `patternmill up`. The same command again replaces it.

    \b
    Examples:
      patternmill refresh spring.csv --catalog spring --plan-only
      patternmill refresh https://example.com/spring.csv --catalog spring
      patternmill refresh s3://sheets/spring.csv --catalog spring --out s3://results/spring
      patternmill refresh spring.csv --catalog spring --cron "0 5 * * *" --timezone Europe/Berlin

    Exit codes: 0 every row has its product; 3 completed with failures, or rows wait to be retired; 2 refused
    before anything was spent, or not approved; 1 failed; 4 another run of this catalog goes on; 130 interrupted.
    """
    if timezone is not None and cron is None:
        raise click.UsageError("--timezone is of --cron.")
    if cron is not None:
        if approve or plan_only or request.retire is not None or request.catalog is None:
            raise click.UsageError("--cron needs --catalog, and no --approve, --plan-only or --retire.")
        from cli.refresh_schedule import make_schedule

        return make_schedule(request, cron, timezone or "UTC")
    steps.show("Reading the source …")
    from cli.launcher import run_request, show_plan
    from patternmill.runs.spec import run_spec

    spec = run_spec(request)
    return show_plan(spec) if plan_only else run_request(request, spec, approve)
