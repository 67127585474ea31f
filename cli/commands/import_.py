"""The verb `import`: a sheet becomes products, as a Prefect flow."""

from __future__ import annotations

from pathlib import Path

import click

from cli.run_options import approve_option, request_command, run_options
from cli.terminal import echo, steps
from patternmill.runs.request import ImportRequest
from patternmill.settings import load_settings


@click.command("import", cls=request_command(ImportRequest))
@click.argument("file", type=click.Path(path_type=Path))
@run_options(ImportRequest, declared=("file",))
@approve_option
@click.option(
    "--plan-only", is_flag=True, help="Show what would be made, and why; nothing is written or spent."
)
@click.option(
    "--yes", "-y", is_flag=True, help="Do not ask on a terminal; a large purchase then needs --confirm."
)
def command(request: ImportRequest, approve: str | None, plan_only: bool, yes: bool) -> int:
    """Turn the rows of FILE into patterns and products, and write results with their product IDs.

    On a terminal it shows what it would make and cost, and asks first, unless the embedded studio makes it, which
    costs nothing. Run it again and it resumes: nothing is bought twice. Rows with mistakes are left out and listed in
    failures.csv, to be corrected and imported. If FILE is a decisions.csv, it only records what was decided.

    \b
    Examples:
      patternmill import inputs/spring_catalog.csv
      patternmill import spring.csv --plan-only
      patternmill import results/spring/latest/failures.csv

    Exit codes: 0 every row has its product; 3 completed with failures; 2 refused before anything was
    spent, or the plan was not approved; 1 failed; 4 another run of this catalog goes on; 130 interrupted.
    """
    steps.show(f"Reading {request.file} …")
    from cli.launcher import run_request, show_plan
    from patternmill.looking.decision_files import record_file
    from patternmill.runs.spec import run_spec

    recorded = record_file(load_settings(request.environment, unknown_too=True), request.file)
    if recorded is not None:
        echo(recorded)
        return 0

    spec = run_spec(request)
    if plan_only:
        return show_plan(spec)
    return run_request(request, spec, approve, asks=not yes)
