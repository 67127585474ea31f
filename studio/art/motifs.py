"""All drawings by name, and what is known about them: which have a right way up, and what goes well with them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from studio.art import (
    birds,
    blooms,
    botanical,
    creatures,
    critters,
    menagerie,
    orchard,
    produce,
    skies,
    swimmers,
    things,
    wares,
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
        **menagerie.DRAWINGS,
        **critters.DRAWINGS,
        **wares.DRAWINGS,
        **produce.DRAWINGS,
    }
)
NAMES = frozenset(DRAWINGS)
BLOOMS = frozenset(blooms.DRAWINGS)
#: Upright by themselves, but an arrangement that is named may turn them: a mandala of lotus flowers.
TURNABLE = frozenset(
    {"lotus", "tulip", "wildflower", "dandelion", "lavender", "wheat", "thistle", "shell", "heart"}
)

#: These are never turned far from upright.
UPRIGHT = frozenset(
    {
        "acorn", "anchor", "balloon", "bear", "bird", "boat", "cactus", "cat", "cloud", "coral_reef", "crab",
        "cup", "dandelion", "dog", "drop", "flamingo", "fox", "heron", "house", "jellyfish", "lotus", "moon",
        "mountain", "mushroom", "owl", "palm", "pine", "pineapple", "planet", "pumpkin", "rabbit", "rainbow",
        "rocket", "seaweed", "swan", "tulip", "watermelon", "whale", "wildflower", "lavender", "wheat", "heart",
        "fish", "shell", "strawberry", "monstera",
    }
).union(menagerie.UPRIGHT, critters.UPRIGHT, wares.UPRIGHT, produce.UPRIGHT)  # fmt: skip

#: What goes with a drawing when the prompt names nothing else.
COMPANIONS = MappingProxyType(
    {
        **dict.fromkeys(("peony", "rose_flower", "poppy", "daisy", "blossom", "sunflower"), ("sprig", "leaf")),
        **dict.fromkeys(("tulip", "wildflower", "lavender", "dandelion"), ("daisy", "butterfly", "sprig")),
        **dict.fromkeys(("bird", "owl"), ("sprig", "blossom", "berries")),
        **dict.fromkeys(("heron", "flamingo", "swan"), ("lotus", "willow", "palm")),
        **dict.fromkeys(("star", "moon"), ("sparkle",)),
        **dict.fromkeys(("fish", "whale", "jellyfish", "turtle", "crab"), ("seaweed", "coral_reef", "shell")),
        **dict.fromkeys(("mushroom", "fox", "acorn"), ("fern", "oak", "berries")),
        **dict.fromkeys(("lemon", "citrus", "pear", "apple", "cherries", "fig"), ("leaf", "blossom", "sprig")),
        **dict.fromkeys(("bee", "butterfly", "dragonfly", "ladybird"), ("daisy", "clover", "lavender")),
        **dict.fromkeys(("mountain", "bear"), ("pine", "sparkle", "cloud")),
        **dict.fromkeys(("planet", "rocket"), ("star", "sparkle", "moon")),
        **dict.fromkeys(("palm", "monstera"), ("leaf", "fern", "blossom")),
        **dict.fromkeys(("boat", "anchor"), ("starfish", "shell")),
        **dict.fromkeys(("cactus",), ("sun", "sparkle")),
        **dict.fromkeys(("strawberry", "berries"), ("blossom", "leaf", "daisy")),
        **dict.fromkeys(("cat", "dog", "rabbit"), ("heart", "daisy", "star")),
        **dict.fromkeys(("house", "balloon"), ("cloud", "pine", "heart")),
        **dict.fromkeys(("pine", "snowflake"), ("snowflake", "star", "berries")),
        **dict.fromkeys(("fern", "leaf", "sprig", "eucalyptus", "willow", "oak"), ("berries", "sprig", "blossom")),
        **dict.fromkeys(("pumpkin", "wheat"), ("oak", "acorn", "leaf")),
        **dict.fromkeys(("swallow", "feather"), ("sprig", "blossom", "cloud")),
        **dict.fromkeys(("elephant", "lion", "tiger", "zebra", "giraffe", "parrot"), ("palm", "monstera", "leaf")),
        **dict.fromkeys(("deer", "hedgehog", "squirrel"), ("oak", "mushroom", "fern")),
        **dict.fromkeys(("snail", "frog"), ("clover", "mushroom", "leaf")),
        **dict.fromkeys(("octopus", "seahorse"), ("shell", "seaweed", "starfish")),
        **dict.fromkeys(("bat", "ghost", "skull"), ("star", "moon", "sparkle")),
        **dict.fromkeys(("bicycle", "bow", "key", "note", "crown"), ("daisy", "blossom", "heart")),
        **dict.fromkeys(("lighthouse",), ("boat", "anchor", "swallow")),
        **dict.fromkeys(("car", "camper"), ("palm", "sun", "cloud")),
        **dict.fromkeys(("chili", "carrot", "grapes", "pomegranate"), ("leaf", "sprig")),
        **dict.fromkeys(("ice_cream", "cupcake"), ("cherries", "star", "heart")),
        **dict.fromkeys(("penguin",), ("snowflake", "fish")),
        **dict.fromkeys(("dinosaur",), ("fern", "palm", "star")),
        **dict.fromkeys(("hydrangea", "thistle", "peacock"), ("leaf", "sprig", "blossom")),
        **dict.fromkeys(("umbrella",), ("drop", "cloud")),
        **dict.fromkeys(("eye", "bolt"), ("star", "sparkle", "moon")),
    }
)  # fmt: skip

#: White or nearly so by nature; on a dark ground they are.
PALE = frozenset({"daisy", "swan", "cloud", "snowflake", "dandelion", "sparkle", "blossom", "ghost", "skull"})

#: The colour a thing has in nature: it takes the palette's colour nearest to it, when there is one.
NATURAL = MappingProxyType(
    {
        **dict.fromkeys(
            [
                "leaf",
                "sprig",
                "fern",
                "palm",
                "monstera",
                "willow",
                "eucalyptus",
                "clover",
                "seaweed",
                "pine",
                "cactus",
                "olive_branch",
            ],
            "#4f8a55",
        ),
        **dict.fromkeys(
            ("lemon", "bee", "sun", "sunflower", "star", "wheat", "pineapple", "moon"), "#e8c23f"
        ),
        **dict.fromkeys(
            ("strawberry", "cherries", "apple", "poppy", "watermelon", "ladybird", "heart", "crab"), "#c8362f"
        ),
        **dict.fromkeys(("citrus", "pumpkin", "fox", "oak", "acorn"), "#e0802f"),
        **dict.fromkeys(("whale", "drop", "snowflake", "dragonfly"), "#3c6ea8"),
        **dict.fromkeys(("peony", "rose_flower", "blossom", "flamingo", "tulip", "lotus"), "#e08a9c"),
        **dict.fromkeys(("lavender", "fig"), "#8a70b5"),
        "mushroom": "#c04a35",
        **dict.fromkeys(("bamboo", "frog", "dinosaur"), "#4f8a55"),
        **dict.fromkeys(("lion", "giraffe", "ginkgo", "crown"), "#e8b03f"),
        **dict.fromkeys(("tiger", "carrot", "squirrel"), "#e0802f"),
        **dict.fromkeys(("chili", "pomegranate"), "#c8362f"),
        **dict.fromkeys(("deer", "hedgehog", "horse"), "#8a5a3a"),
        **dict.fromkeys(("elephant",), "#8b96a3"),
        **dict.fromkeys(("grapes", "thistle"), "#7a4f95"),
        **dict.fromkeys(("hydrangea",), "#7f97d0"),
        **dict.fromkeys(("penguin", "zebra", "bat"), "#2c333d"),
        **dict.fromkeys(("peacock",), "#1f6f7a"),
    }
)
