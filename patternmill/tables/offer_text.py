"""The offer of an environment as people read it, category by category."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from patternmill.errors import InputRefused
from patternmill.planning.offer import Category, Nearest, Offer
from patternmill.tables.cells import unknown_name
from patternmill.text import plain

_WIDTH = 79
#: A narrow column for the names of options; longer ones push their line to the right.
_LONGEST_NAME = 20


def chosen_categories(offer: Offer, names: Sequence[str], environment: str) -> tuple[Category, ...]:
    """Return the categories of these names or IDs, in their order, or all without names. Raises InputRefused."""
    if offer.categories is None:
        raise InputRefused(
            f"The categories of {environment} cannot be read.",
            code="unreadable_offer",
            remedy=offer.note or "",
        )
    if not names:
        return offer.categories
    return tuple(dict.fromkeys(_category(offer, name, environment) for name in names))


def _category(offer: Offer, name: str, environment: str) -> Category:
    matches = offer.find(name)
    if len(matches) == 1:
        return matches[0]
    fault = unknown_name(offer, "", name, "category", Nearest())
    remedy = fault.remedy if fault.remedy.endswith("?") else f"{fault.remedy}."
    raise InputRefused(
        f"{environment}: {fault.message}.", code="unknown_category", remedy=remedy[:1].upper() + remedy[1:]
    )


def offer_lines(offer: Offer, categories: Sequence[Category], environment: str) -> Iterator[str]:
    """Yield each category with its options, at most 79 columns wide."""
    count = len(offer.categories or ())
    yield f"{environment} offers {count:,} {'category' if count == 1 else 'categories'}."
    if offer.note:
        yield f"Note: {plain(offer.note, 400)}"
    for category in categories:
        yield ""
        yield f"{plain(category.name)}  ({plain(category.id)})"
        yield from _option_lines(category)


def _option_lines(category: Category) -> Iterator[str]:
    if category.options is None:
        yield "  Its options cannot be read: what is written is not checked."
        return
    if not category.options:
        yield "  It has no options."
    width = max((min(len(plain(option.name)), _LONGEST_NAME) for option in category.options), default=0)
    for option in category.options:
        begin = f"  {plain(option.name).ljust(width)}  {'required' if option.required else 'optional'}  "
        values = "any text" if option.values is None else ", ".join(map(plain, option.values))
        yield from textwrap.wrap(
            values or "(no values)",
            _WIDTH,
            initial_indent=begin,
            subsequent_indent=" " * len(begin),
            break_on_hyphens=False,
        )
