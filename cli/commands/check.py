"""The verbs `offer` and `check`: what can be made, and whether a sheet asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli.json_output import show
from cli.run_options import checked_request, verb
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, Outcome


@verb("offer")
@click.argument("categories", nargs=-1, metavar="[CATEGORY]...")
@click.option("--environment", help="staging, production, ...; their category IDs differ.")
def offer(categories: tuple[str, ...], environment: str | None) -> int:
    """Show the categories that can be made (or these, by name or ID), with their options and values. Buys nothing.

    They are those of the service at PATTERNMILL_STUDIO_URL, or else of the embedded studio.

    \b
    Examples:
      patternmill offer
      patternmill offer Cushion "tote bag" --environment production

    Exit codes: 0 shown; 2 the service could not be asked, or has no such category.
    """
    from cli.services import offer_of
    from patternmill.tables.offer_text import chosen_categories, offer_lines

    settings = load_settings(environment=environment)
    offer = offer_of(settings)
    chosen = chosen_categories(offer, categories, settings.environment)
    report = {"environment": settings.environment, "note": offer.note, "categories": chosen}
    show(lambda: report, offer_lines(offer, chosen, settings.environment))
    return EXIT_CODES[Outcome.COMPLETED]


@verb("check")
@click.argument("file")
@click.option("--environment", help="staging, production, ...; their category IDs differ.")
@click.option("--catalog", help="The catalog whose mapping is read. Default: named after the file.")
@click.option(
    "--mapping",
    type=click.Path(path_type=Path),
    help=ImportRequest.model_fields["mapping"].description,
)
@click.option("--all", "everything", is_flag=True, help="List every problem of every row, before the causes.")
@click.option("--yes", is_flag=True, help="Ask nothing: take what is certain about columns and words.")
def check(file: str, everything: bool, yes: bool, **options: Any) -> int:
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
    from patternmill.tables.checks import check_catalog
    from patternmill.tables.report import report_json, report_lines

    questions = MappingQuestions(takes_certain=yes)
    request = checked_request(ImportRequest, {"file": file, **options})
    answered: RunSpec | None = questions.read(run_spec(request))
    while answered is not None:
        spec = answered
        assert spec.file is not None, "it was read"
        offer, extras = offer_and_extras(spec, spec.file)
        checked = check_catalog(spec.file, offer, extras=extras)
        answered = questions.ask_about(spec, checked)
    show(lambda: report_json(checked), report_lines(checked, everything=everything))
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if checked.refused_count else Outcome.COMPLETED]
