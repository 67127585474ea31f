"""The verb `offer`: what an environment offers, as a check compares with it."""

from __future__ import annotations

import click

from cli.json_output import show
from cli.run_options import verb
from patternmill.states import EXIT_CODES, Outcome


@verb("offer")
@click.argument("categories", nargs=-1, metavar="[CATEGORY]...")
@click.option("--environment", help="staging, production, ...; their category IDs differ.")
def command(categories: tuple[str, ...], environment: str | None) -> int:
    """Show the categories that can be made (or these, by name or ID), with their options and values. Buys nothing.

    They are those of the service at PATTERNMILL_STUDIO_URL, or else of the embedded studio.

    \b
    Examples:
      patternmill offer
      patternmill offer Cushion "tote bag" --environment production

    Exit codes: 0 shown; 2 the service could not be asked, or has no such category.
    """
    from cli.services import offer_of
    from patternmill.settings import load_settings
    from patternmill.tables.offer_text import chosen_categories, offer_lines

    settings = load_settings(environment=environment)
    offer = offer_of(settings)
    chosen = chosen_categories(offer, categories, settings.environment)
    report = {"environment": settings.environment, "note": offer.note, "categories": chosen}
    show(lambda: report, offer_lines(offer, chosen, settings.environment))
    return EXIT_CODES[Outcome.COMPLETED]
