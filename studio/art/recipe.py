"""Recipes: everything that a tile is drawn from, derived from a design, with nothing left to chance."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from studio.art.colour import Colour, apart, hue, lightness, mix, shift, strength
from studio.art.reading import Reading, read_prompt, seed_of
from studio.design import DEFAULT_MODEL, Design, Edit, Recolor

#: Palettes for prompts that name no colour: a ground, then the inks.
USUAL = (
    "#f6eee0 #c8694a #2f4f5c #d8a94a #8fa58a", "#f4f0e8 #1f4f6b #e08a6a #e3b95a #7aa39a",
    "#20303f #e9c98a #d9826a #7fa8a0 #f1e6d2", "#f7e9e3 #a63d57 #3f6b5a #e0a24a #d98b94",
    "#edf1e8 #35604b #c9684a #e0b04a #8fae8b", "#f5efe4 #4b3f72 #d88a6a #8a9cc4 #d9b45a",
)  # fmt: skip
#: The natural colours of motifs.
NATURAL = {
    "lemon": "#efc740", "orange": "#e8873a", "strawberry": "#cf3b34", "cherry": "#b3243c", "clover": "#5d9160",
    "bee": "#e8b23f", "lavender": "#8b74b8", "leaf": "#5a8a5c", "fern": "#5a8a5c",
}  # fmt: skip


@dataclass(frozen=True)
class Palette:
    """A ground and at least four inks, strongest first. `named` are the prompt's; `exact` as in a reading."""

    ground: Colour
    inks: tuple[Colour, ...]
    named: tuple[Colour, ...]
    exact: bool

    def of(self, thing: str, otherwise: int = 0) -> Colour:
        """Return the colour of a thing: the named ink that is near its own, its own, or the ink `otherwise`."""
        own = NATURAL.get(thing)
        near = [ink for ink in self.named if own and _alike(ink, own)]
        vivid = [ink for ink in self.named if strength(ink) > 0.15 and not _alike(ink, NATURAL["leaf"])]
        if near or own is None or self.exact or (vivid and not otherwise):
            return apart(near[0], self.ground) if near else self.inks[otherwise]
        return apart(own, self.ground)

    def tint(self, ink: Colour, share: float) -> Colour:
        """Return the ink with a share of the ground in it."""
        return mix(ink, self.ground, share)

    def parts(self, thing: str, main: Colour | None = None) -> dict[str, Colour]:
        """Return the colours of a motif by the classes of `motifs.svg`; `main` in place of the thing's own."""
        first, second, accent, deep = self.inks[:4]
        main, leaf, dark = main or self.of(thing), self.of("leaf", 1), mix(first, "#241a16", 0.7)
        white = max((self.ground, *self.inks), key=lightness) if self.exact else "#fffdf7"
        petal = main if thing == "flower" else white
        return {
            "ground": self.ground, "main": main, "light": shift(main, 0.1), "deep": shift(main, -0.1),
            "pale": self.tint(main, 0.55), "shaded": self.tint(main, 0.2), "second": second, "accent": accent,
            "legs": self.tint(deep, 0.1), "leaf": leaf, "leaf-light": shift(leaf, 0.09),
            "leaf-line": self.tint(shift(leaf, 0.1), 0.45), "wood": apart(mix(leaf, "#6b4a2e", 0.55), self.ground),
            "clover": self.of("clover", 1), "bee": self.of("bee", 2), "dark": dark, "white": white,
            "white-edge": self.tint(dark, 0.5), "petal": petal, "petal-edge": mix(petal, second, 0.35),
            "seed": mix(main, "#fff2c4", 0.75), "centre": second if thing == "flower" else self.of("lemon", 2),
        }  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The recipe of one tile. `motifs` are of one family, the leading one first; a plain tile has none."""

    seed: int
    family: str
    motifs: tuple[str, ...]
    palette: Palette
    style: str
    layout: str | None
    size: float


def recipe_of(design: Design) -> Recipe:
    """Return the recipe of a design with its edits and its other colours."""
    reading, seed = read_prompt(design.prompt), seed_of(design.prompt, design.seed)
    if design.references and not reading.colours and reading.ground is None:
        reading = reading.coloured(
            tuple(dict.fromkeys(one for each in design.references for one in each))[:6]
        )
    if design.palette:
        reading = reading.coloured(design.palette)
    for change in design.changes:
        if isinstance(change, Recolor):
            reading = reading.coloured(change.palette)
        elif isinstance(change, Edit):
            was, reading = reading, reading.edited(change.prompt)
            # Words that change nothing we know of get another drawing.
            seed = seed_of(change.prompt, seed) if was == reading else seed
    style = reading.style or "flat" if design.model == DEFAULT_MODEL else design.model
    family = reading.motifs[0].split()[0] if reading.motifs else "plain"
    motifs = tuple(name.split()[1] for name in reading.motifs if name.startswith(f"{family} "))
    return Recipe(seed, family, motifs, _palette(reading, seed), style, reading.layout, reading.size)


def _palette(reading: Reading, seed: int) -> Palette:
    dice = Random(seed)  # noqa: S311  nothing is secret here
    usual_ground, *usual = dice.choice(USUAL).split()
    ground = reading.ground or (_ground_for(reading, dice) if reading.colours else usual_ground)
    named = tuple(ink for ink in reading.colours if ink != ground)
    inks = [apart(ink, ground) for ink in named or usual]
    while len(inks) < 4:
        first = inks[1 if len(inks) == 3 else 0]
        deeper = shift(first, -0.14 if lightness(first) > 0.3 else 0.16, 0.9)
        inks.append(mix(first, ground, 0.42) if len(inks) % 2 else apart(deeper, ground))
    return Palette(ground, tuple(inks[:6]), named, reading.exact)


def _ground_for(reading: Reading, dice: Random) -> Colour:
    """Return a ground that nobody named: the palest of the colours, a pale one, or a dark one for one pale ink."""
    first, *more = reading.colours
    pale = [ink for ink in reading.colours if lightness(ink) > 0.9]
    if pale and (more or any(name.split()[1] in NATURAL for name in reading.motifs[:1])):
        return pale[0]
    if lightness(first) > 0.8:
        return mix(first, "#232a30", 0.85)
    return dice.choice(("#f6efe1", mix(first, "#fbf8f1", 0.9), "#faf6ee"))


def _alike(one: Colour, other: Colour) -> bool:
    return strength(one) > 0.12 and abs((hue(one) - hue(other) + 180) % 360 - 180) < 42
