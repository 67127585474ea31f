"""An edit: what new words name is added or changed in a recipe, and everything else stays as it was."""

from __future__ import annotations

import re
from dataclasses import replace

from studio.art import colour as colours
from studio.art import fields, layout, motifs
from studio.art.reading import Reading, read_prompt
from studio.art.recipe import Palette, Recipe, Subject, subject
from studio.art.recolouring import recolored

#: `replace A with B`, `change A to B`: A goes where B comes.
_REPLACED = re.compile(r"\b(?:replace|change|swap|turn)\b(.+?)\b(?:with|to|into|by|for)\b(.+)", re.DOTALL)
_INSTEAD = re.compile(r"(.+)\b(?:instead of|rather than)\b(.+)", re.DOTALL)
_WITHOUT = re.compile(r"(.*)\b(?:without|remove|no|drop|delete)\b(.+)", re.DOTALL)
#: So many drawings stand on a tile.
MOST_SUBJECTS = 4


def edited(recipe: Recipe, prompt: str) -> Recipe:
    """The recipe with what these words name."""
    old, new = _sides(prompt.casefold())
    reading, gone = read_prompt(new), read_prompt(old)
    painted = _painted(recipe, reading)
    subjects = _subjects(painted, reading, gone)
    ground = next((one.subject for one in reading.mentions if one.subject in fields.NAMES), recipe.field)
    stands = bool(subjects) and subjects[0].name in motifs.UPRIGHT
    fits = reading.layout in (layout.UPRIGHT if stands else layout.NAMES)
    return replace(
        painted,
        field=ground,
        subjects=subjects,
        layout=str(reading.layout) if fits else recipe.layout,
        scale=min(2.0, max(0.45, recipe.scale * reading.scale)),
        texture=reading.texture or recipe.texture,
    )


def _sides(text: str) -> tuple[str, str]:
    """What goes and what comes."""
    if instead := _INSTEAD.search(text):
        return instead[2], instead[1]
    if without := _WITHOUT.search(text):
        return without[2], without[1]
    replaced = _REPLACED.search(text)
    return (replaced[1], replaced[2]) if replaced else ("", text)


def _painted(recipe: Recipe, reading: Reading) -> Recipe:
    """Named colours in place of the ground and the leading inks; a colour before a subject is that subject's."""
    palette = recipe.palette
    claimed = {colour for mention in reading.mentions for colour in mention.colours}
    named = [colour for colour in reading.colours if colour not in claimed]
    ground = reading.ground or palette.ground
    inks = [colours.apart(ink, ground, 0.14) for ink in (*named, *palette.inks[len(named) :])]
    changed = Palette(ground, tuple(inks))
    return recipe if changed == palette else recolored(recipe, (ground, *inks))


def _subjects(recipe: Recipe, reading: Reading, gone: Reading) -> tuple[Subject, ...]:
    """New ones take the places of those that go, or come next to the leading one; those that are there get colours."""
    subjects = list(recipe.subjects)
    leaving = {mention.subject for mention in gone.mentions}
    for mention in reading.mentions:
        if mention.subject not in motifs.NAMES:
            continue
        names = [one.name for one in subjects]
        places = [place for place, name in enumerate(names) if name == mention.subject or name in leaving]
        place = places[0] if places else min(1, len(subjects))
        if mention.colours or mention.subject not in names:
            drawn = subject(mention, recipe.palette, recipe.style, place, plain=False)
            subjects[place : place + bool(places)] = [drawn]
    kept = [one for one in subjects if one.name not in leaving] or subjects
    return tuple(kept[:MOST_SUBJECTS])
