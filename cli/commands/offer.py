"""The verb `offer`: what an environment offers, as a check compares with it."""

from __future__ import annotations

import click

from cli.terminal import echo_lines
from patternmill.states import EXIT_CODES, Outcome


@click.command("offer")
@click.argument("categories", nargs=-1, metavar="[CATEGORY]...")
@click.option("--environment", help="staging, production, ...; category IDs differ between them.")
def command(categories: tuple[str, ...], environment: str | None) -> int:
    """Show the categories that can be made, with their options and values. Spends nothing.

    CATEGORY is a name or an ID; without one, all are shown. They are those of the service at PATTERNMILL_STUDIO_URL, or
    else of the embedded studio, and what `patternmill check` compares a file with.

    \b
    Examples:
      patternmill offer
      patternmill offer Cushion "tote bag" --environment production

    Exit codes: 0 shown; 2 the service could not be asked, or has no such category.
    """
    from cli.offered import offer_of
    from patternmill.catalog.offer_text import chosen_categories, offer_lines
    from patternmill.settings import load_settings

    settings = load_settings(environment=environment)
    offer = offer_of(settings)
    found = chosen_categories(offer, categories, settings.environment)
    echo_lines(offer_lines(offer, found, settings.environment))
    return EXIT_CODES[Outcome.COMPLETED]
