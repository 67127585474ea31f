"""An edit: what new words name is added or changed in a recipe, and everything else stays as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from studio.art import colour as colours
from studio.art import fields, motifs
from studio.art.colour import Colour
from studio.art.inks import Inks
from studio.art.layout import Placement
from studio.art.reading import Mention, Reading, read_prompt
from studio.art.recipe import Palette, Recipe, Subject, line_colour, subject
from studio.art.sheet import FILLER, Sheet, upright

#: `replace A with B`, `change A to B`: A goes where B comes.
_REPLACED = re.compile(
    r"\b(?:replace|change|swap|turn|make)\b(.+?)\b(?:with|to|into|by|for)\b(.+)", re.DOTALL
)
_INSTEAD = re.compile(r"(.+)\b(?:instead of|rather than)\b(.+)", re.DOTALL)
_GROUND = re.compile(r"\b(?:back)?ground\b")
_WITHOUT = re.compile(r"\b(?:without|remove|no|drop|delete)\b(.+)", re.DOTALL)


#: For what has a right way up: the arrangement of the same kind that does not turn it over.
UPRIGHT_LIKE = {
    "p2": "half_drop", "pgg": "pg", "pmm": "pm", "pmg": "pg", "cmm": "cm", "p4": "grid", "p4m": "pm", "p4g": "cm",
    "p3": "half_drop", "p3m1": "cm", "p31m": "cm", "p6": "half_drop", "p6m": "cm",
}  # fmt: skip


@dataclass(frozen=True)
class Edited:
    """A recipe after an edit, and what became of the roles: the new role of each old one."""

    recipe: Recipe
    roles: Mapping[int, int]
    added: tuple[int, ...]
    #: The arrangement, size or ground was named, so that everything is placed anew.
    anew: bool


def edited(recipe: Recipe, prompt: str) -> Edited:
    """The recipe with what these words name."""
    old, new = _sides(prompt)
    reading, gone = read_prompt(new), read_prompt(old)
    if _GROUND.search(old) and reading.ground is None and reading.colours:
        reading.ground = reading.colours.pop(0)
    changed = _coloured(recipe, reading, gone)
    changed, roles, added = _with_subjects(changed, reading, gone)
    ground = next((one.subject for one in reading.mentions if one.subject in fields.NAMES), recipe.field)
    if ground in {one.subject for one in gone.mentions}:
        ground = None if changed.subjects else recipe.field
    stands = bool(changed.subjects) and changed.subjects[0].name in motifs.UPRIGHT
    wanted = UPRIGHT_LIKE.get(reading.layout or "", reading.layout) if stands else reading.layout
    style = reading.style or recipe.style
    again = replace(
        changed,
        field=ground,
        layout=wanted or recipe.layout,
        scale=min(2.0, max(0.45, recipe.scale * reading.scale)),
        style=style,
        texture=reading.texture or recipe.texture,
        subjects=tuple(replace(one, inks=replace(one.inks, style=style)) for one in changed.subjects),
    )
    anew = (again.field, again.layout, again.scale) != (recipe.field, recipe.layout, recipe.scale)
    return Edited(again, roles, added, anew or bool(recipe.subjects) != bool(again.subjects))


def _sides(prompt: str) -> tuple[str, str]:
    """What goes and what comes."""
    text = prompt.casefold()
    replaced, instead, without = _REPLACED.search(text), _INSTEAD.search(text), _WITHOUT.search(text)
    if instead:
        return instead[2], instead[1]
    if without:
        return without[1], text[: without.start()]
    if replaced and read_prompt(replaced[2]) != Reading():
        return replaced[1], replaced[2]
    return "", text


def _coloured(recipe: Recipe, reading: Reading, gone: Reading) -> Recipe:
    """Named colours: the ground's, or in place of one that goes, or else the leading inks'.

    A colour before a subject of its own is that subject's, and no ink's.
    """
    palette = recipe.palette
    ground, inks = reading.ground or palette.ground, list(palette.inks)
    claimed = {colour for mention in reading.mentions for colour in mention.colours}
    free = [colour for colour in reading.colours if colour not in claimed]
    for place, colour in enumerate(free):
        lost = gone.colours[place] if place < len(gone.colours) else None
        inks[_place(inks, place, lost)] = colours.apart(colour, ground, 0.14)
    if (ground, inks) == (palette.ground, list(palette.inks)):
        return recipe
    if ground != palette.ground:
        inks = [colours.apart(ink, ground, 0.16) for ink in inks]
    painted = Palette(ground, tuple(inks))
    subjects = tuple(_repainted(one, palette, painted) for one in recipe.subjects)
    return replace(recipe, palette=painted, subjects=subjects)


def _repainted(one: Subject, before: Palette, after: Palette) -> Subject:
    """Inks of the palette change with it; a colour of its own (leaves, a lemon) stays, as plain to see as it was."""
    changes = {before.ground: after.ground, **dict(zip(before.inks, after.inks, strict=True))}

    def now(ink: Colour) -> Colour:
        return changes.get(ink) or colours.apart(ink, after.ground, 0.14)

    old = one.inks
    main, second, accent, leaf = (now(ink) for ink in (old.main, old.second, old.accent, old.leaf))
    return Subject(
        one.name, Inks(after.ground, main, second, accent, leaf, line_colour(after, main), old.style)
    )


def _place(inks: list[Colour], place: int, lost: Colour | None) -> int:
    if lost is None:
        return place % len(inks)
    return min(range(len(inks)), key=lambda index: colours.distance(inks[index], lost))


def _with_subjects(
    recipe: Recipe, reading: Reading, gone: Reading
) -> tuple[Recipe, dict[int, int], tuple[int, ...]]:
    """Subjects that are there get their named colours; new ones replace those that go, or are added."""
    subjects = list(recipe.subjects)
    leaving = [role for role, one in enumerate(subjects) if one.name in _names(gone.mentions)]
    added: list[int] = []
    for mention in reading.mentions:
        if mention.subject not in motifs.NAMES:
            continue
        there = next((role for role, one in enumerate(subjects) if one.name == mention.subject), None)
        role = there if there is not None else leaving.pop(0) if leaving else len(subjects)
        if role < len(subjects):
            drawn = _subject(mention, recipe, role, subjects[role])
            subjects[role] = drawn
        else:
            subjects.append(_subject(mention, recipe, role, None))
            added.append(role)
    stay = [role for role in range(len(subjects)) if role not in leaving] or [0]
    roles = {
        role: stay.index(role) if role in stay else place % len(stay)
        for place, role in enumerate(range(len(subjects)))
    }
    kept = tuple(subjects[role] for role in stay) if subjects else ()
    return replace(recipe, subjects=kept), roles, tuple(roles[role] for role in added)


def _names(mentions: Iterable[Mention]) -> set[str]:
    return {one.subject for one in mentions}


def _subject(mention: Mention, recipe: Recipe, role: int, before: Subject | None) -> Subject:
    if before is not None and not mention.colours:
        return Subject(mention.subject, before.inks)
    return subject(mention, recipe.palette, recipe.style, role, plain=False)


def rearranged(sheet: Sheet, change: Edited) -> Sheet:
    """The sheet with the changed recipe; everything stays in its place, new drawings take over some of the smaller."""
    subjects = change.recipe.subjects
    placements = [replace(one, role=change.roles.get(one.role, one.role)) for one in sheet.placements]
    for role in change.added:
        placements = _taken_over(placements, role)
    turned = [
        upright(one) if one.role != FILLER and _turned_over(one, subjects[one.role]) else one
        for one in placements
    ]
    return replace(sheet, recipe=change.recipe, placements=tuple(turned))


def _turned_over(one: Placement, subject: Subject) -> bool:
    """Whether something with a right way up does not stand so."""
    a, b, _, d, _, _ = one.motion
    return subject.name in motifs.UPRIGHT and (d <= 0 or abs(b) > 0.3 * abs(a))


def _taken_over(placements: list[Placement], role: int) -> list[Placement]:
    """One size of one drawing becomes the new one's: all its images, so that the symmetry stays."""
    sizes = sorted({(one.radius, one.role) for one in placements if one.role != FILLER}, reverse=True)
    if len(sizes) < 2:
        return [_grown(one, role) if one.role == FILLER else one for one in placements]
    most = max(
        sizes[1:], key=lambda size: size[0] ** 2 * sum((one.radius, one.role) == size for one in placements)
    )
    return [replace(one, role=role) if (one.radius, one.role) == most else one for one in placements]


def _grown(one: Placement, role: int) -> Placement:
    return replace(one, role=role, radius=one.radius * 1.8)
