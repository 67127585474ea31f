"""What a prompt becomes: the same recipe always, and the one that its words ask for."""

from __future__ import annotations

import pytest

from studio.art import fields, layout, motifs, words
from studio.art.colour import to_oklch
from studio.art.reading import read_prompt
from studio.art.recipe import recipe_for, seed_of


def test_seed_of_a_prompt_is_pinned() -> None:
    """Pictures stay what they are across versions and machines: the seed comes from SHA-256 of the plain prompt."""
    assert seed_of("blue herons on cream") == 8857121382499548185


def test_case_and_spaces_do_not_change_the_recipe() -> None:
    """Prompts that read the same are the same pattern."""
    assert recipe_for("  Blue  HERONS on cream ") == recipe_for("blue herons on cream")


@pytest.mark.parametrize(
    ("prompt", "ground"),
    [
        ("blue herons on cream", words.COLOURS["cream"]),
        ("daisies on a navy background", words.COLOURS["navy"]),
        ("white dots against terracotta", words.COLOURS["terracotta"]),
        ("oranges on sky blue", words.COLOURS["sky"]),
        ("stripes in navy and white", words.COLOURS["white"]),
    ],
)
def test_ground_has_the_colour_of_the_prompt(prompt: str, ground: str) -> None:
    """`on cream` is a cream ground."""
    assert recipe_for(prompt).palette.ground == ground


def test_colour_belongs_to_its_subject() -> None:
    """In `yellow lemons with green leaves` the lemons are yellow and the leaves green."""
    lemon, leaf = recipe_for("yellow lemons with green leaves on white").subjects

    assert abs(to_oklch(lemon.inks.main)[2] - to_oklch(words.COLOURS["yellow"])[2]) < 15
    assert abs(to_oklch(leaf.inks.main)[2] - to_oklch(words.COLOURS["green"])[2]) < 15


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("herons", ["heron"]),
        ("mushrooms and ferns", ["mushroom", "fern"]),
        ("cherry blossom", ["blossom"]),
        ("rose peonies", ["peony"]),
        ("roses and butterflies", ["rose_flower", "butterfly"]),
        ("lemon stripes", ["stripe"]),
        ("polka dots", ["dot"]),
        ("bees on honeycomb", ["bee", "hexagon"]),
        ("lemon branches with white blossom", ["lemon", "sprig", "blossom"]),
        ("lavender sprigs", ["lavender", "sprig"]),
    ],
)
def test_subjects_are_recognised(prompt: str, names: list[str]) -> None:
    """Plurals, phrases and ambiguous terms."""
    assert [mention.subject for mention in read_prompt(prompt).mentions] == names


def test_every_vocabulary_entry_has_a_drawing() -> None:
    known = motifs.NAMES | fields.NAMES
    named = {*words.SUBJECTS.values(), *words.DEFAULT_SUBJECTS, *motifs.UPRIGHT, *motifs.COMPANIONS}
    named |= {name for names in words.MOOD_SUBJECTS.values() for name in names}
    named |= {name for names in motifs.COMPANIONS.values() for name in names}

    assert named <= known
    assert set(words.MOOD_SUBJECTS) <= set(words.MOODS)
    assert set(words.LAYOUTS.values()) <= layout.NAMES
