"""What a prompt becomes: the same recipe always, and the one that its words ask for."""

from __future__ import annotations

import pytest

from studio.art import words
from studio.art.colour import hue
from studio.art.reading import read_prompt, seed_of
from studio.art.recipe import NATURAL, Recipe, recipe_of
from studio.design import Design, Edit, Recolor


def recipe(prompt: str, *edits: str) -> Recipe:
    return recipe_of(Design(prompt=prompt, changes=tuple(Edit(prompt=edit) for edit in edits)))


def test_seed_of_a_prompt_is_pinned() -> None:
    """Pictures stay what they are across versions and machines: the seed comes from SHA-256 of the plain prompt."""
    assert seed_of("blue herons on cream") == 8857121382499548185


def test_case_and_spaces_do_not_change_the_recipe() -> None:
    """Prompts that read the same are the same pattern."""
    assert recipe("  Blue  HERONS on cream ") == recipe("blue herons on cream")


@pytest.mark.parametrize(
    ("prompt", "ground"),
    [
        ("blue herons on cream", "cream"),
        ("daisies on a navy background", "navy"),
        ("white dots against terracotta", "terracotta"),
        ("oranges on sky blue", "sky"),
        ("arches in navy and white", "white"),
        ("Zitronen auf salbeigrünem Grund", "sage"),
    ],
)
def test_ground_has_the_colour_of_the_prompt(prompt: str, ground: str) -> None:
    """`on cream` is a cream ground."""
    assert recipe(prompt).palette.ground == words.HEX[ground]


@pytest.mark.parametrize(
    ("prompt", "thing", "colour"),
    [
        ("lemon branches with glossy green leaves on cream", "lemon", NATURAL["lemon"]),
        ("lemons and teal leaves", "lemon", words.HEX["teal"]),
        ("red strawberries", "strawberry", words.HEX["red"]),
        ("herons in coral", "heron", words.HEX["coral"]),
    ],
)
def test_thing_has_its_colour(prompt: str, thing: str, colour: str) -> None:
    """The one that is named, or its own where the named ones are those of leaves."""
    assert abs(hue(recipe(prompt).palette.of(thing)) - hue(colour)) < 6


@pytest.mark.parametrize(
    ("prompt", "motifs"),
    [
        ("herons", ["heron"]),
        ("leaves and ferns", ["fern"]),
        ("cherry blossom", ["cherry", "flower"]),
        ("rose peonies", ["flower"]),
        ("lemon stripes", ["lemon"]),
        ("lemon dots", ["dot"]),
        ("bees on honeycomb", ["bee"]),
        ("lavender sprigs", ["lavender"]),
        ("Blaue Reiher im Schilf", ["heron", "reeds"]),
        ("Erdbeeren und Kleeblätter", ["strawberry", "clover"]),
        ("foxes", []),
        ("", []),
    ],
)
def test_motifs_are_recognised(prompt: str, motifs: list[str]) -> None:
    """Plurals, compounds, and words that are colours elsewhere."""
    assert [name.split()[1] for name in read_prompt(prompt).motifs] == motifs


@pytest.mark.parametrize(
    ("edit", "motifs"),
    [
        ("add small bees", ("strawberry", "clover", "bee")),
        ("replace the clover with flowers", ("strawberry", "flower")),
        ("lemons instead of strawberries", ("clover", "lemon")),
        ("without clover", ("strawberry",)),
        ("on navy", ("strawberry", "clover")),
    ],
)
def test_edit_adds_replaces_and_removes(edit: str, motifs: tuple[str, ...]) -> None:
    before, after = (
        recipe("strawberries and clover on cream"),
        recipe("strawberries and clover on cream", edit),
    )

    assert after.motifs == motifs
    assert after.seed == before.seed


def test_edit_that_names_nothing_known_is_another_drawing() -> None:
    """Whoever pays for a change sees one."""
    assert recipe("strawberries", "more of a jazz feeling").seed != recipe("strawberries").seed


def test_recolored_design_is_in_these_colours_alone() -> None:
    """The ground, then the inks and what is mixed of them; leaves too."""
    change = Recolor(palette=("#102030", "#ffd84d"))
    palette = recipe_of(Design(prompt="lemons on cream", changes=(change,))).palette

    assert (palette.ground, palette.inks[0], palette.exact) == ("#102030", "#ffd84d", True)
    assert {palette.of(thing, 1) for thing in NATURAL} <= {palette.ground, *palette.inks}
