"""The verb `import`: a sheet becomes products, as a Prefect flow."""

from __future__ import annotations

import click

from cli.run_options import verb
from cli.terminal import can_ask, echo, steps
from patternmill.addresses import file_path, is_remote, shown_address
from patternmill.runs.request import ImportRequest
from patternmill.settings import load_settings


@verb("import", ImportRequest, declared=("file", "check"), approves=True)
@click.argument("file")
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="Ask nothing: take what is certain about columns and words. A large purchase then needs --confirm.",
)
def command(request: ImportRequest, approve: str | None, yes: bool) -> int:
    """Turn the rows of FILE into patterns and products, and write results with their product IDs.

    FILE is a sheet: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES, for an address with a
    secret. A decisions.csv only records what was decided.

    On a terminal it asks what unknown columns and words mean, and again before it spends money or leaves out rows with
    mistakes. Those are in failures.csv, to be corrected and imported. Run it again to resume: nothing is bought twice.

    \b
    Examples:
      patternmill import inputs/spring_catalog.csv
      patternmill import spring.csv --plan-only
      patternmill import results/spring/latest/failures.csv
    """
    steps.show(f"Reading {shown_address(request.file)} …")
    from cli.launcher import run_request, show_plan
    from cli.mapping_questions import MappingQuestions
    from patternmill.runs.decision_files import record_file
    from patternmill.runs.spec import run_spec

    if not is_remote(request.file):
        settings = load_settings(request.environment, unknown_too=True)
        recorded = record_file(settings, file_path(request.file))
        if recorded is not None:
            echo(recorded)
            return 0

    spec = run_spec(request)
    if request.plan_only:
        return show_plan(spec)
    questions = MappingQuestions(on_terminal=can_ask(), takes_certain=yes)
    return run_request(request, spec, approve, asks=not yes, questions=questions)
