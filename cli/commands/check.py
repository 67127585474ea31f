"""The verb `check`: reports every fault of every row; spends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli.run_options import checked_request
from cli.terminal import echo
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome


@click.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--environment", help="staging, production, ...; category IDs differ between them.")
@click.option("--encoding", help="The file's encoding, if neither UTF-8 nor UTF-16: cp1252, for instance.")
@click.option("--worksheet", help="Of a workbook: the worksheet's name, if several could be meant.")
@click.option("--catalog", help="Whose confirmed columns count. Default: named after the file.")
@click.option(
    "--mapping",
    type=click.Path(path_type=Path),
    help="A file from `patternmill map`: which column is which. Default: as confirmed before.",
)
@click.option("--all", "everything", is_flag=True, help="List every problem, not only the first 40.")
def command(everything: bool, **asked: Any) -> int:
    """Check FILE against the contract in inputs/README.md and what the service offers. Spends nothing.

    Categories and options are those of the service at PATTERNMILL_STUDIO_URL, or else of the embedded studio.

    \b
    Exit codes: 0 every row is valid; 3 some rows are refused (an import leaves them out); 2 the file is
    refused as a whole, nobody has confirmed which of its columns is which, or a setting is wrong.
    """
    from cli.mapping_prompt import check_input
    from cli.offered import offer_and_extras
    from patternmill.catalog.check_report import report_lines
    from patternmill.catalog.row_checks import check_rows
    from patternmill.runs.request import ImportRequest
    from patternmill.runs.spec import import_spec

    spec = import_spec(checked_request(ImportRequest, asked))
    settings, read = spec.settings, check_input(spec)
    offer, extras = offer_and_extras(settings, read.file, spec.source)
    checked = check_rows(read.file, offer, prompt_limit=settings.prompt_limit, extras=extras)
    limit = len(checked.problems) if everything else 40
    for line in report_lines(checked, limit=limit):
        echo(line)
    if read.unconfirmed is not None:
        echo(f"\n{read.unconfirmed}")
        return EXIT_REFUSED
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if checked.refused_count else Outcome.COMPLETED]
