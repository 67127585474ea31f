"""All drawings by name, and what is known about them: which have a right way up, and what goes well with them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from studio.art import (
    birds,
    blooms,
    botanical,
    creatures,
    orchard,
    skies,
    swimmers,
    things,
)
from studio.art.inks import Inks

DRAWINGS: MappingProxyType[str, Callable[[Inks], str]] = MappingProxyType(
    {
        **botanical.DRAWINGS,
        **blooms.DRAWINGS,
        **birds.DRAWINGS,
        **swimmers.DRAWINGS,
        **creatures.DRAWINGS,
        **orchard.DRAWINGS,
        **skies.DRAWINGS,
        **things.DRAWINGS,
    }
)
NAMES = frozenset(DRAWINGS)
BLOOMS = frozenset(blooms.DRAWINGS)
#: Upright by themselves, but an arrangement that is named may turn them: a mandala of lotus flowers.
TURNABLE = frozenset({"lotus", "tulip", "wildflower", "lavender", "wheat", "shell", "heart"})

#: These are never turned far from upright.
UPRIGHT = TURNABLE | {
    "acorn", "anchor", "bear", "bird", "cactus", "cat", "cloud", "coral_reef", "drop", "fish", "flamingo", "fox",
    "heron", "monstera", "moon", "mountain", "mushroom", "palm", "pine", "pumpkin", "rabbit", "rainbow", "seaweed",
    "strawberry", "whale",
}  # fmt: skip

#: What goes with a drawing when the prompt names nothing else.
COMPANIONS = MappingProxyType(
    {
        **dict.fromkeys(("peony", "rose_flower", "poppy", "daisy", "blossom", "sunflower"), ("sprig", "leaf")),
        **dict.fromkeys(("tulip", "wildflower", "lavender"), ("daisy", "butterfly", "sprig")),
        **dict.fromkeys(("heron", "flamingo"), ("lotus", "willow", "palm")),
        **dict.fromkeys(("star", "moon"), ("sparkle",)),
        **dict.fromkeys(("fish", "whale", "turtle"), ("seaweed", "coral_reef", "shell")),
        **dict.fromkeys(("mushroom", "fox", "acorn"), ("fern", "oak", "berries")),
        **dict.fromkeys(("lemon", "citrus", "apple", "cherries"), ("leaf", "blossom", "sprig")),
        **dict.fromkeys(("bee", "butterfly"), ("daisy", "clover", "lavender")),
        **dict.fromkeys(("mountain", "bear"), ("pine", "sparkle", "cloud")),
        **dict.fromkeys(("palm", "monstera"), ("leaf", "fern", "blossom")),
        **dict.fromkeys(("strawberry", "berries"), ("blossom", "leaf", "daisy")),
        **dict.fromkeys(("cat", "rabbit"), ("heart", "daisy", "star")),
        **dict.fromkeys(("pine", "snowflake"), ("snowflake", "star", "berries")),
        **dict.fromkeys(("fern", "leaf", "sprig", "eucalyptus", "willow", "oak"), ("berries", "sprig", "blossom")),
        **dict.fromkeys(("pumpkin", "wheat"), ("oak", "acorn", "leaf")),
        "bird": ("sprig", "blossom", "berries"),
        "swallow": ("sprig", "blossom", "cloud"),
        "anchor": ("starfish", "shell"),
        "cactus": ("sun", "sparkle"),
    }
)  # fmt: skip

#: White or nearly so by nature; on a dark ground they are.
PALE = frozenset({"daisy", "cloud", "snowflake", "sparkle", "blossom"})

_NATURAL = {
    "#4f8a55": "leaf sprig fern palm monstera willow eucalyptus clover seaweed pine cactus olive_branch",
    "#e8c23f": "lemon bee sun sunflower star wheat moon",
    "#c8362f": "strawberry cherries apple poppy heart",
    "#e0802f": "citrus pumpkin fox oak acorn",
    "#3c6ea8": "whale drop snowflake",
    "#e08a9c": "peony rose_flower blossom flamingo tulip lotus",
    "#8a70b5": "lavender",
    "#c04a35": "mushroom",
}
#: The colour a thing has in nature: it takes the palette's colour nearest to it, when there is one.
NATURAL = MappingProxyType({name: colour for colour, names in _NATURAL.items() for name in names.split()})
