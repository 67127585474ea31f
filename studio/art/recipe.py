"""From a prompt to a recipe: everything that is needed to draw, and nothing left to chance."""

from __future__ import annotations

import hashlib
import random
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from studio.art import colour as colours
from studio.art import fields, layout, motifs, words
from studio.art.colour import Colour
from studio.art.inks import Inks
from studio.art.reading import Mention, Reading, read_prompt
from studio.art.references import Traits, guided

Anything = TypeVar("Anything")
#: Colours that go well with warm and with cool ones.
WARM_FRIENDS = ("#2f6b6e", "#d8a94a", "#7f9a6f", "#2f4f78", "#e9b7a6", "#7a4a3a")
#: What these fields are in when nobody says.
USUAL_COLOURS = {
    "leopard": "#e6c594 #2a1c14 #b5742f #5a3a22",
    "houndstooth": "#f4f1ea #26262a #8f8a84 #5a5650",
    "herringbone": "#efe9de #6f6a63 #8a7f72 #a89b8a",
    "tile": "#fbf9f2 #1f4fa8 #3c6ea8 #e0a32e",
}
COOL_FRIENDS = ("#e3a256", "#e88f7e", "#d9b75f", "#8fb09a", "#f0cdb8", "#c9655a")


class Dice:
    """Choices that look free and are settled by the seed; the same on every machine and Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  nothing is secret here

    def pick(self, options: Sequence[Anything]) -> Anything:
        return options[int(self._random.random() * len(options))]

    def between(self, least: float, most: float) -> float:
        return least + (most - least) * self._random.random()

    def chance(self, share: float) -> bool:
        return self._random.random() < share


@dataclass(frozen=True)
class Palette:
    """A ground and what goes on it, strongest first."""

    ground: Colour
    inks: tuple[Colour, ...]

    def turned(self, first: Colour) -> tuple[Colour, ...]:
        """The inks with `first` in front."""
        return (first, *(ink for ink in self.inks if ink != first))


@dataclass(frozen=True)
class Subject:
    """One drawing of the pattern, with its own colours."""

    name: str
    inks: Inks


@dataclass(frozen=True)
class Recipe:
    """How one tile is drawn. `field` covers the ground; `subjects` stand on it, the leading one first."""

    seed: int
    palette: Palette
    field: str | None
    subjects: tuple[Subject, ...]
    layout: str
    scale: float
    style: str
    texture: str


def seed_of(prompt: str, seed: int | None = None) -> int:
    """The same for prompts that differ only in case, outer spaces or the spelling of their characters.

    Another `seed` is another drawing of the same prompt; None is the prompt's own.
    """
    plain = " ".join(unicodedata.normalize("NFKC", prompt).casefold().split())
    text = plain if seed is None else f"{plain}\n{seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def recipe_for(
    prompt: str, seed: int | None = None, *, style: str | None = None, traits: Sequence[Traits] = ()
) -> Recipe:
    """The recipe of a prompt: what its words say, and for the rest the dice that its seed throws.

    `style` is the model's own, where it has one; `traits` are those of the reference pictures.
    """
    reading = guided(read_prompt(prompt), traits)
    dice = Dice(seed_of(prompt, seed))
    mentions = _mentions(reading, dice)
    covering = [one for one in mentions if one.subject in fields.NAMES]
    covering.sort(key=lambda one: one.subject in words.COMMON_FIELDS)
    ground_field = covering[0] if covering else None
    drawn = [one for one in mentions if one.subject in motifs.NAMES][:3]
    palette = _palette(reading, dice, ground_field if not drawn else None)
    plain = not reading.colours and not reading.moods
    chosen = style or reading.style or dice.pick(("flat", "flat", "flat", "print"))
    return Recipe(
        seed=seed_of(prompt, seed),
        palette=palette,
        field=None if ground_field is None else ground_field.subject,
        subjects=tuple(subject(one, palette, chosen, place, plain) for place, one in enumerate(drawn)),
        layout=_layout(reading, dice, drawn),
        scale=min(2.0, max(0.45, reading.scale)),
        style=chosen,
        texture=reading.texture or _texture(chosen, dice),
    )


def _mentions(reading: Reading, dice: Dice) -> list[Mention]:
    mentions = list(reading.mentions)
    if not mentions:
        moods = [mood for mood in reading.moods if mood in words.MOOD_SUBJECTS]
        names = words.MOOD_SUBJECTS[moods[0]] if moods else (dice.pick(words.DEFAULT_SUBJECTS),)
        mentions = [Mention(name) for name in names]
    leads = [one.subject for one in mentions if one.subject in motifs.NAMES]
    if len(leads) == 1 and len(mentions) == 1:
        companion = motifs.COMPANIONS.get(leads[0])
        if companion and dice.chance(0.8):
            mentions.append(Mention(dice.pick(companion)))
    return mentions


def _palette(reading: Reading, dice: Dice, covering: Mention | None) -> Palette:
    """Ground and inks. `covering` is the field, when nothing else is on it: then its own colours are the ground's."""
    mood = _mood(reading, dice)
    named = list(dict.fromkeys(reading.colours))
    if not named and reading.ground is None:
        usual = USUAL_COLOURS.get(covering.subject) if covering is not None and not reading.moods else None
        ground, *inks = usual.split() if usual else mood
        return Palette(ground, _apart(inks, ground))
    own = None if covering is None else _own_ground(covering.subject, named)
    if own is not None and reading.ground is None:
        named.remove(own)
    ground = reading.ground or own or _ground_for(named, mood if reading.moods else None, dice)
    others = mood[1:] if reading.moods else _companions(named or list(mood[1:3]), ground, dice)
    if (
        covering is not None
        and not reading.moods
        and len(set(named)) + (reading.ground is not None or own is not None) > 1
    ):
        others = _shades(named, ground)
    return Palette(ground, _apart(_distinct([*named, *others], ground), ground))


def _shades(named: list[Colour], ground: Colour) -> list[Colour]:
    """Tones of the named colours, and no others: what was ordered in navy and white has nothing pink in it."""
    return [colours.mix(one, ground, share) for share in (0.35, 0.6) for one in named]


def _mood(reading: Reading, dice: Dice) -> tuple[Colour, ...]:
    """The first that is a mood and nothing else: in `rainbows, pastel` it is pastel."""
    moods = [one for one in reading.moods if one not in words.SUBJECTS] or reading.moods
    name = moods[0] if moods else dice.pick(words.DEFAULT_MOODS)
    return tuple(dice.pick(words.MOODS[name]).split())


def _own_ground(field: str, named: list[Colour]) -> Colour | None:
    """The ground of a field in two or more colours is one of them: the palest, else the darkest."""
    if len(named) < 2:
        return None
    if field == "plaid":
        return named[0]
    palest, darkest = max(named, key=colours.lightness), min(named, key=colours.lightness)
    if colours.lightness(palest) > 0.78:
        return palest
    return darkest if colours.lightness(darkest) < 0.45 else None


def _ground_for(named: list[Colour], mood: tuple[Colour, ...] | None, dice: Dice) -> Colour:
    """A ground that nobody named: the mood's, a named neutral, or a pale or a dark cousin of the first colour."""
    if mood is not None:
        return mood[0]
    neutral = [one for one in named if colours.to_oklch(one)[1] < 0.035 and colours.lightness(one) > 0.8]
    if neutral and len(named) > 1:
        named.remove(neutral[0])
        return neutral[0]
    first_lightness, _, hue = colours.to_oklch(named[0])
    if first_lightness > 0.72 and dice.chance(0.55):
        return colours.from_oklch(0.3, 0.045, hue + dice.between(-40, 40))
    return dice.pick(
        (
            words.COLOURS["cream"],
            words.COLOURS["ivory"],
            colours.from_oklch(0.955, 0.018, hue),
            colours.from_oklch(0.94, 0.022, hue + 150),
        )
    )


def _companions(named: list[Colour], ground: Colour, dice: Dice) -> list[Colour]:
    """Colours that go with the named ones: a lighter or darker cousin, and friends; none loud next to quiet ones."""
    first = named[0]
    level, chroma, hue = colours.to_oklch(first)
    cousin = colours.from_oklch(level + (0.2 if level < 0.6 else -0.22), chroma * 0.8, hue)
    second = colours.mix(first, ground, 0.45)
    loudness = max(colours.to_oklch(one)[1] for one in named)
    if loudness < 0.035:
        return [cousin, second]
    friends = WARM_FRIENDS if _turn(hue, 50) < 90 else COOL_FRIENDS
    start = int(dice.between(0, len(friends)))
    chosen = [friends[(start + step) % len(friends)] for step in range(len(friends))]
    apart = [one for one in chosen if all(colours.distance(one, other) > 0.12 for other in [*named, ground])]
    quiet = min(1.0, (loudness + 0.05) / 0.12)
    return [cousin, *(colours.shift(one, chroma=quiet) for one in apart[:2]), second]


def _distinct(inks: Sequence[Colour], ground: Colour) -> list[Colour]:
    """The inks without those that look like the ground or like one before them."""
    kept: list[Colour] = []
    for ink in inks:
        if all(colours.distance(ink, other) > 0.045 for other in [*kept, ground]):
            kept.append(ink)
    return kept or [colours.apart(ground, ground, 0.4)]


def _apart(inks: Sequence[Colour], ground: Colour) -> tuple[Colour, ...]:
    """At least four inks, the leading ones plain to see on the ground."""
    seen = [colours.apart(ink, ground, 0.2 if place < 2 else 0.12) for place, ink in enumerate(inks)]
    while len(seen) < 4:
        step = 0.16 if colours.lightness(seen[-1]) < 0.6 else -0.16
        seen.append(colours.apart(colours.shift(seen[-1], lighter=step), ground, 0.1))
    return tuple(seen[:6])


def subject(mention: Mention, palette: Palette, style: str, place: int, plain: bool) -> Subject:
    """`plain`: nobody named a colour or a mood, so that a lemon is yellow whatever the palette."""
    own = [colours.apart(one, palette.ground, 0.14) for one in mention.colours]
    natural = _natural(mention.subject, palette, plain)
    main = own[0] if own else natural or palette.inks[place % len(palette.inks)]
    if not own and natural is None and mention.subject in motifs.BLOOMS and is_green(main):
        main = next((ink for ink in palette.turned(main) if not is_green(ink)), main)
    rest = [*own[1:], *palette.turned(main)[1:]]
    leaf = _leaf(palette, main)
    line = line_colour(palette, main)
    accents = [ink for ink in rest if colours.distance(ink, main) > 0.08] or rest
    if mention.subject in motifs.PALE and main == natural:
        accents = [words.COLOURS["honey"], *accents]
    second = accents[0]
    accent = next((ink for ink in accents if colours.distance(ink, second) > 0.08), accents[-1])
    return Subject(mention.subject, Inks(palette.ground, main, second, accent, leaf, line, style))


def _natural(name: str, palette: Palette, plain: bool) -> Colour | None:
    """What this thing is in nature, or the palette's colour nearest to it, when one is near enough."""
    if name in motifs.PALE and colours.lightness(palette.ground) < 0.7:
        return colours.mix("#fffdf6", palette.ground, 0.07)
    wanted = motifs.NATURAL.get(name)
    if wanted is None:
        return None
    if plain:
        return colours.apart(wanted, palette.ground, 0.13)
    hue = colours.to_oklch(wanted)[2]
    near = [
        ink
        for ink in palette.inks
        if _turn(colours.to_oklch(ink)[2], hue) < 35 and colours.to_oklch(ink)[1] > 0.04
    ]
    return near[0] if near else None


def _leaf(palette: Palette, main: Colour) -> Colour:
    """A green of the palette, else a green that is as quiet or loud as the palette is."""
    greens = [ink for ink in palette.inks if is_green(ink) and ink != main]
    if greens:
        return greens[0]
    chroma = sum(colours.to_oklch(ink)[1] for ink in palette.inks) / len(palette.inks)
    if chroma < 0.025:
        return palette.inks[-1]
    dark = colours.lightness(palette.ground) < 0.5
    green = colours.from_oklch(0.66 if dark else 0.52, min(0.08, chroma * 0.8), 140)
    return colours.apart(green, palette.ground, 0.15)


def is_green(ink: Colour) -> bool:
    _, chroma, hue = colours.to_oklch(ink)
    return _turn(hue, 135) < 32 and chroma > 0.02


def line_colour(palette: Palette, main: Colour) -> Colour:
    """What details are drawn in on the main colour."""
    level, chroma, hue = colours.to_oklch(main)
    if colours.distance(palette.ground, main) > 0.28 and level < 0.8:
        return palette.ground
    return colours.from_oklch(level - 0.25 if level > 0.5 else level + 0.3, chroma * 0.9, hue)


def _layout(reading: Reading, dice: Dice, drawn: list[Mention]) -> str:
    upright = bool(drawn) and drawn[0].subject in motifs.UPRIGHT
    if upright and reading.layout is not None:
        upright = drawn[0].subject not in motifs.TURNABLE
    allowed = layout.UPRIGHT if upright else layout.NAMES
    if reading.layout in allowed:
        return str(reading.layout)
    return dice.pick(layout.USUAL_UPRIGHT if upright else layout.USUAL)


def _texture(style: str, dice: Dice) -> str:
    if style == "watercolour":
        return "wash"
    if style == "embroidery":
        return "linen"
    return "paper" if style in ("ink", "print", "linocut") else dice.pick(("paper", "none", "linen", "paper"))


def _turn(one: float, other: float) -> float:
    """The angle between two hues."""
    return abs((one - other + 180) % 360 - 180)
