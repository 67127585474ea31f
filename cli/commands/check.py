"""The verb `check`: asks what the columns and words of a sheet mean, and reports every fault of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.json_output import show
from cli.run_options import checked_request, named_options, verb
from cli.terminal import can_ask
from patternmill.runs.request import ImportRequest
from patternmill.states import EXIT_CODES, Outcome

if TYPE_CHECKING:
    from patternmill.runs.spec import RunSpec


@verb("check")
@click.argument("file")
@click.option("--environment", help="staging, production, ...; their category IDs differ.")
@click.option("--catalog", help="The catalog whose mapping is read. Default: named after the file.")
@named_options(ImportRequest, "mapping")
@click.option("--all", "everything", is_flag=True, help="List every problem of every row, before the causes.")
@click.option("--yes", is_flag=True, help="Ask nothing: take what is certain about columns and words.")
def command(file: str, everything: bool, yes: bool, **asked: Any) -> int:
    """Check FILE against what the service offers and inputs/README.md. Buys nothing.

    On a terminal it asks once what unknown columns and words mean. The answers are written beside FILE, as
    spring.mapping.toml, where `import` and `refresh` read them. For an address, or a name of PATTERNMILL_SOURCES, they
    are in PATTERNMILL_HOME.

    \b
    Examples:
      patternmill check spring.csv
      patternmill check spring.xlsx --yes

    Exit codes: 0 every row is valid; 3 some rows are refused; 2 the whole file is refused, or a setting is wrong.
    """
    from cli.mapping_questions import MappingQuestions
    from cli.services import offer_and_extras
    from patternmill.runs.spec import run_spec
    from patternmill.tables.checks import check_rows
    from patternmill.tables.report import report_json, report_lines

    questions = MappingQuestions(on_terminal=can_ask(), takes_certain=yes)
    request = checked_request(ImportRequest, {"file": file, **asked})
    answered: RunSpec | None = questions.read(run_spec(request))
    while answered is not None:
        spec = answered
        assert spec.file is not None, "it was read"
        offer, extras = offer_and_extras(spec.settings, spec.file, spec.source)
        checked = check_rows(spec.file, offer, extras=extras)
        answered = questions.ask_about(spec, checked)
    show(lambda: report_json(checked), report_lines(checked, everything=everything))
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if checked.refused_count else Outcome.COMPLETED]
