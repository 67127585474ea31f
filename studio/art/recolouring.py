"""Other colours for the same drawing: each colour of a recipe gets its place in another palette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from studio.art import colour as colours
from studio.art.colour import Colour
from studio.art.inks import Inks
from studio.art.recipe import Palette, Recipe, Subject, is_green, line_colour

#: How many inks a drawing uses: main, second, accent, leaf, and the quiet ones of fillers.
LEAST_INKS = 4


def recolored(recipe: Recipe, palette: Sequence[Colour]) -> Recipe:
    """The recipe in these colours: the ground, then the inks. A ground alone keeps the inks, made plain to see on it.

    An ink of few is used for several, lighter or darker, so that no part of the drawing is lost.
    """
    ground, inks = palette[0].lower(), [one.lower() for one in palette[1:]]
    if not inks:
        inks = [colours.apart(ink, ground, 0.16) for ink in recipe.palette.inks]
    spread = _spread(inks, ground, max(LEAST_INKS, len(recipe.palette.inks)))
    new = Palette(ground, tuple(spread))
    places = {old: spread[place] for place, old in enumerate(recipe.palette.inks)}
    subjects = tuple(_subject(one, place, places, new) for place, one in enumerate(recipe.subjects))
    return replace(recipe, palette=new, subjects=subjects)


def in_two_inks(recipe: Recipe) -> Recipe:
    """The recipe as two blocks print it: in an ink that is plain to see, and the one most different from it."""
    ground, *inks = recipe.palette.ground, *recipe.palette.inks[:4]
    plain = [ink for ink in inks if colours.distance(ink, ground) > 0.25]
    key = plain[0] if plain else max(inks, key=lambda ink: colours.distance(ink, ground))
    second = max(
        (ink for ink in inks if ink != key),
        key=lambda ink: min(colours.distance(ink, key), colours.distance(ink, ground)),
    )
    return recolored(recipe, (ground, key, second, key, second))


def _spread(inks: list[Colour], ground: Colour, count: int) -> list[Colour]:
    spread = list(inks)
    while len(spread) < count:
        spread.append(colours.mix(inks[len(spread) % len(inks)], ground, 0.4))
    return spread


def _subject(subject: Subject, place: int, places: dict[Colour, Colour], palette: Palette) -> Subject:
    """A colour that was no ink of the palette (a lemon's own yellow) becomes the ink of the subject's place."""
    old = subject.inks
    main = places.get(old.main, palette.inks[place % len(palette.inks)])
    second = _other(places.get(old.second, palette.inks[1]), palette, (main,))
    accent = _other(places.get(old.accent, palette.inks[2]), palette, (main, second))
    greens = [ink for ink in palette.inks if is_green(ink) and ink != main]
    leaf = greens[0] if greens else _other(places.get(old.leaf, palette.inks[-1]), palette, (main,))
    return Subject(
        subject.name, Inks(palette.ground, main, second, accent, leaf, line_colour(palette, main), old.style)
    )


def _other(wanted: Colour, palette: Palette, taken: tuple[Colour, ...]) -> Colour:
    if wanted not in taken:
        return wanted
    return next((ink for ink in palette.inks if ink not in taken), wanted)
