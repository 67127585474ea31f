"""The verb `offer`: what an environment offers, as a check compares with it; and a workbook to fill in with it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.terminal import echo, echo_lines, write_output
from patternmill.errors import ConfigurationError
from patternmill.states import EXIT_CODES, Outcome

if TYPE_CHECKING:
    from patternmill.catalog.offer import Category


@click.command("offer")
@click.argument("categories", nargs=-1, metavar="[CATEGORY]...")
@click.option("--environment", help="staging, production, ...; category IDs differ between them.")
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a workbook to fill in (.xlsx).",
)
def command(categories: tuple[str, ...], environment: str | None, template: Path | None) -> int:
    """Show the categories that can be made, with their options and values. Spends nothing.

    CATEGORY is a name or an ID; without one, all are shown. They are those of the service at PATTERNMILL_STUDIO_URL, or
    else of the embedded studio, and what `patternmill check` compares a file with.

    \b
    Examples:
      patternmill offer
      patternmill offer Cushion "tote bag" --environment production
      patternmill offer Cushion Mug --template summer.xlsx

    A template has the columns that CATEGORY needs (default: all), 500 rows with drop-downs of what each row's own
    category offers, and cells formatted as Text. An existing file is never replaced.

    Exit codes: 0 shown or written; 2 the service could not be asked, has no such category, or there is such a file.
    """
    from cli.offered import offer_of
    from patternmill.catalog.offer_text import chosen_categories, offer_lines
    from patternmill.settings import load_settings

    if template is not None:
        _refuse_place(template)
    settings = load_settings(environment=environment)
    offer = offer_of(settings)
    found = chosen_categories(offer, categories, settings.environment)
    if template is not None:
        _write_template(template, found, settings.environment)
    else:
        echo_lines(offer_lines(offer, found, settings.environment))
    return EXIT_CODES[Outcome.COMPLETED]


def _refuse_place(out: Path) -> None:
    if out.suffix.lower() != ".xlsx":
        raise ConfigurationError(
            f"{out} is no .xlsx.", remedy="Name a workbook, which CSV can be exported from."
        )
    if out.exists():
        raise ConfigurationError(
            f"There is a file {out} already, which may be filled in.", remedy="Name another one."
        )


def _write_template(out: Path, categories: Sequence[Category], environment: str) -> None:
    from patternmill.sheets.template_workbook import template_workbook

    write_output(out, [template_workbook(categories)])
    echo(f"{out}: {', '.join(one.name for one in categories)}, as {environment} offers them.")
    echo(f"Fill it in, then: patternmill check {shlex.quote(str(out))}")
