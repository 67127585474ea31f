"""The verb `template`: a workbook to fill in, for some of the categories that an environment offers."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from cli.terminal import echo, write_output
from patternmill.errors import ConfigurationError
from patternmill.states import EXIT_CODES, Outcome


@click.command("template")
@click.argument("categories", nargs=-1, metavar="[CATEGORY]...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("catalog.xlsx"),
    show_default=True,
    help="Where to: a workbook (.xlsx), or its header alone as CSV (.csv).",
)
@click.option(
    "--rows",
    type=click.IntRange(1, 100_000),
    default=500,
    show_default=True,
    metavar="N",
    help="How many rows have drop-downs.",
)
@click.option("--environment", help="staging, production, ...; what is offered differs between them.")
def command(categories: tuple[str, ...], out: Path, rows: int, environment: str | None) -> int:
    """Write a workbook to fill in: the columns that CATEGORY needs, with drop-downs of what is offered.

    Without a CATEGORY it is for all that the environment offers. Its cells are formatted as Text, and its drop-downs
    are those of each row's own category. An existing file is never replaced.

    \b
    Examples:
      patternmill template Cushion Mug
      patternmill template "tote bag" --out bags.xlsx --rows 2000

    Exit codes: 0 written; 2 there is a file of that name, the service could not be asked, or has no such category.
    """
    from cli.offered import offer_of
    from patternmill.catalog.offer_text import chosen_categories
    from patternmill.settings import load_settings
    from patternmill.sheets.template_workbook import template_csv, template_workbook

    _refuse_place(out)
    settings = load_settings(environment=environment)
    found = chosen_categories(offer_of(settings), categories, settings.environment)
    is_csv = out.suffix.lower() == ".csv"
    content = template_csv(found) if is_csv else template_workbook(found, settings.environment, rows)
    write_output(out, [content])
    echo(f"{out}: {', '.join(one.name for one in found)}, as {settings.environment} offers them.")
    echo(f"Fill it in, then: patternmill check {shlex.quote(str(out))}")
    return EXIT_CODES[Outcome.COMPLETED]


def _refuse_place(out: Path) -> None:
    if out.suffix.lower() not in (".xlsx", ".csv"):
        raise ConfigurationError(f"{out} is neither .xlsx nor .csv.", remedy="Name a file of one of the two.")
    if out.exists():
        raise ConfigurationError(
            f"There is a file {out} already, which may be filled in.", remedy="Name another one with --out."
        )
