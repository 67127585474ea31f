"""The verb `refresh`: updates a catalog from its source; makes only what has changed."""

from __future__ import annotations

import click

from cli.run_options import verb
from cli.terminal import steps
from patternmill.runs.request import RefreshRequest


@verb("refresh", RefreshRequest, declared=("source", "check"), approves=True)
@click.argument("source")
@click.option(
    "--cron", metavar="CRON", help='Do it on a schedule from now on; "0 5 * * *" is each day at 5:00.'
)
@click.option("--timezone", help="The time zone of --cron, as Europe/Berlin. Default: UTC.")
def command(request: RefreshRequest, approve: str | None, cron: str | None, timezone: str | None) -> int:
    """Update a catalog from SOURCE: make what was added or changed there, retire what is gone.

    SOURCE is the whole catalog: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES, for an
    address with a secret.

    Unchanged rows cost nothing, in whatever order. A changed selection keeps the pattern; a changed prompt makes a new
    pattern and product. A changed row that fails keeps its product. Where more rows are gone than --retire-at-most
    allows, or all of them, none is retired until you say how many with --retire N.

    With --cron nothing is made now: workers do it on a schedule, which the Prefect server of PREFECT_API_URL keeps, or
    that of `patternmill up`. The same command again replaces it.

    \b
    Examples:
      patternmill refresh spring.csv --catalog spring --plan-only
      patternmill refresh https://example.com/spring.csv --catalog spring
      patternmill refresh spring.csv --catalog spring --cron "0 5 * * *"
    """
    if timezone is not None and cron is None:
        raise click.UsageError("--timezone needs --cron.")
    if cron is not None:
        if approve or request.plan_only or request.retire is not None or request.catalog is None:
            raise click.UsageError("--cron needs --catalog, and no --approve, --plan-only or --retire.")
        from cli.refresh_schedule import make_schedule

        return make_schedule(request, cron, timezone or "UTC")
    steps.show("Reading the source …")
    from cli.launcher import run_request, show_plan
    from patternmill.runs.spec import run_spec

    spec = run_spec(request)
    return show_plan(spec) if request.plan_only else run_request(request, spec, approve)
