"""The verb `check`: reports every fault of every row; spends nothing."""

from __future__ import annotations

from pathlib import Path

import click

from cli.terminal import echo
from patternmill.states import EXIT_CODES, Outcome


@click.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--environment", help="staging, production, ...; category IDs differ between them.")
@click.option("--encoding", help="The file's encoding, if neither UTF-8 nor UTF-16: cp1252, for instance.")
@click.option("--all", "everything", is_flag=True, help="List every problem, not only the first 40.")
def command(file: Path, environment: str | None, encoding: str | None, everything: bool) -> int:
    """Check FILE against the contract in inputs/README.md and what the service offers. Spends nothing.

    Categories and options are those of the service at PATTERNMILL_STUDIO_URL, or else of the embedded studio.

    \b
    Exit codes: 0 every row is valid; 3 some rows are refused (an import leaves them out); 2 the file is
    refused as a whole, or a setting is wrong.
    """
    from cli.offered import offer_and_extras
    from patternmill.catalog.check_report import report_lines
    from patternmill.catalog.csv_reader import read_catalog
    from patternmill.catalog.lint import find_lint, lint_lines
    from patternmill.catalog.row_checks import check_rows
    from patternmill.engine.options import RunOptions
    from patternmill.runs.plan_lint import pattern_price
    from patternmill.runs.spec import environment_of, origin_of
    from patternmill.settings import load_settings

    settings = load_settings(environment=environment_of(origin_of(file), environment))
    catalog = read_catalog(file, encoding=encoding)
    offer, extras = offer_and_extras(settings, catalog, file)
    checked = check_rows(catalog, offer, prompt_limit=settings.prompt_limit, extras=extras)
    for line in report_lines(checked, limit=None if everything else 40):
        echo(line)
    lint = find_lint(checked, pattern_price(RunOptions.from_settings(settings)))
    for line in ("", *lint_lines(lint)) if lint else ():
        echo(line)
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if checked.refused_count else Outcome.COMPLETED]
