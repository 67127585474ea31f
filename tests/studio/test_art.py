"""What a prompt becomes: the recipe that its words ask for, and the tiles and products drawn from it."""

import hashlib
import random

import numpy as np
import pytest

from studio.art import words
from studio.art.colour import hue
from studio.art.drawing import picture
from studio.art.products import MATERIALS
from studio.art.reading import read_prompt
from studio.art.recipe import NATURAL, recipe_of
from studio.art.tile import FAMILIES, svg_of, tile_image
from studio.design import Crop, Design, Edit, Extend, Recolor
from studio.offer import CATEGORIES, MODELS

#: A prompt for each motif, and one that names none.
PROMPTS = (
    "blue herons on cream, watercolour", "reeds", "lemon branches", "tossed oranges and bees on navy", "cherries",
    "scattered strawberries and clover", "daisies in stripes", "ferns on forest green", "eucalyptus leaves and ferns",
    "lavender, ink drawing", "terracotta arches, cut paper", "indigo fans", "confetti", "polka dots", "jazz",
)  # fmt: skip
#: The side of a tile in pixels: small ones show as much about seams, in a tenth of the time.
SMALL = 160


def recipe(prompt, *edits):
    return recipe_of(Design(prompt=prompt, changes=tuple(Edit(prompt=edit) for edit in edits)))


def test_case_and_spaces_do_not_change_the_recipe():
    """Prompts that read the same are the same pattern."""
    assert recipe("  Blue  HERONS on cream ") == recipe("blue herons on cream")


@pytest.mark.parametrize(
    ("prompt", "ground"),
    [
        ("blue herons on cream", "cream"), ("daisies on a navy background", "navy"),
        ("white dots against terracotta", "terracotta"), ("oranges on sky blue", "sky"),
        ("arches in navy and white", "white"), ("Zitronen auf salbeigrünem Grund", "sage"),
    ],
)  # fmt: skip
def test_ground_has_the_colour_of_the_prompt(prompt, ground):
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
def test_thing_has_its_colour(prompt, thing, colour):
    """It is the named one, or the thing's own where the named ones are those of leaves."""
    assert abs(hue(recipe(prompt).palette.of(thing)) - hue(colour)) < 6


@pytest.mark.parametrize(
    ("prompt", "motifs"),
    [
        ("herons", ["heron"]), ("leaves and ferns", ["fern"]), ("cherry blossom", ["cherry", "flower"]),
        ("rose peonies", ["flower"]), ("lemon stripes", ["lemon"]), ("lemon dots", ["dot"]),
        ("bees on honeycomb", ["bee"]), ("lavender sprigs", ["lavender"]),
        ("Blaue Reiher im Schilf", ["heron", "reeds"]), ("Erdbeeren und Kleeblätter", ["strawberry", "clover"]),
        ("foxes", []), ("", []),
    ],
)  # fmt: skip
def test_motifs_are_recognised(prompt, motifs):
    """So are plurals, compounds, and words that are colours elsewhere."""
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
def test_edit_adds_replaces_and_removes(edit, motifs):
    before, after = (
        recipe("strawberries and clover on cream"),
        recipe("strawberries and clover on cream", edit),
    )

    assert after.motifs == motifs
    assert after.seed == before.seed


def test_edit_that_names_nothing_known_is_another_drawing():
    """Whoever pays for a change sees one."""
    assert recipe("strawberries", "more of a jazz feeling").seed != recipe("strawberries").seed


def test_recolored_design_is_in_these_colours_alone():
    """The ground comes first, then the inks and mixtures of them; leaves have them too."""
    change = Recolor(palette=("#102030", "#ffd84d"))
    palette = recipe_of(Design(prompt="lemons on cream", changes=(change,))).palette

    assert (palette.ground, palette.inks[0], palette.exact) == ("#102030", "#ffd84d", True)
    assert {palette.of(thing, 1) for thing in NATURAL} <= {palette.ground, *palette.inks}


def test_references_colour_a_prompt_that_names_no_colour():
    """The ground comes from the first picture; where the prompt names a colour, they do not count."""
    pictures = (("#112233", "#ddeeff"), ("#aa0000",))
    drawn, named = (
        recipe_of(Design(prompt=prompt, references=pictures)).palette for prompt in ("jazz", "red")
    )

    assert (drawn.ground, drawn.named) == ("#112233", ("#ddeeff", "#aa0000"))
    assert "#112233" not in (named.ground, *named.named)


# -- the drawing


def drawn(prompt, *changes, model="atelier"):
    design = Design(prompt=prompt, model=model, changes=changes)
    return np.asarray(tile_image(design, side=SMALL), dtype=np.float64)


def seam_and_inside(image, axis):
    """Return the mean step across the seam, and the greatest mean step between neighbours inside."""
    steps = np.abs(np.diff(np.concatenate([image, np.take(image, [0], axis)], axis), axis=axis))
    means = steps.mean(axis=(1 - axis, 2))
    return float(means[-1]), float(means[:-1].max())


def seams_are_hidden(image):
    return all(
        seam <= inside * 1.1 + 0.5 for seam, inside in (seam_and_inside(image, axis) for axis in (0, 1))
    )


@pytest.mark.parametrize("prompt", PROMPTS)
def test_tile_is_seamless(prompt):
    """The step from the last pixels to the first is no larger than steps inside the tile."""
    assert seams_are_hidden(drawn(prompt))


def test_seam_measure_finds_a_seam():
    """The tile is cut off short of its period."""
    assert not seams_are_hidden(drawn("lemon branches")[: SMALL - 28, : SMALL - 22])


def test_prompts_show_every_family():
    assert {recipe_of(Design(prompt=prompt)).family for prompt in PROMPTS} == set(FAMILIES)


@pytest.mark.parametrize("prompt", PROMPTS[::3])
def test_cut_tile_is_seamless(prompt):
    crop, extend = Crop(x=0.2, y=0.3, width=0.5, height=0.4), Extend(columns=2, rows=2)

    assert seams_are_hidden(drawn(prompt, crop, extend))


def test_every_model_draws_the_same_bytes_in_its_own_manner():
    first, again = (
        [drawn("strawberries and bees", model=model["modelId"]).tobytes() for model in MODELS]
        for _ in range(2)
    )

    assert first == again
    assert len(set(first)) == len(MODELS)


def test_every_take_is_another_picture():
    """Each time a prompt is asked for again, it is drawn differently."""
    for prompt in PROMPTS[::4]:
        assert len({svg_of(recipe_of(Design(prompt=prompt, seed=seed))) for seed in (None, 1, 2, 3)}) == 4


@pytest.mark.parametrize(
    ("prompt", "digest"),
    [
        ("blue herons on cream", "1df07c64f0b16360"), ("tossed lemons on navy", "7a38455e4f086e4b"),
        ("art deco fans in gold", "6715ca9f4481c7b8"), ("jazz", "7cbec7e23973198e"),
    ],
)  # fmt: skip
def test_drawing_of_a_prompt_is_pinned(prompt, digest):
    """A prompt draws for ever what was sold under it, on any machine."""
    assert hashlib.sha256(svg_of(recipe_of(Design(prompt=prompt))).encode()).hexdigest()[:16] == digest


def test_every_prompt_is_drawn():
    """It may have any letters, and any words of the vocabulary in any order."""
    dice = random.Random(7)
    known = ["on", "background", "without", "hell", "lemon", "bee", "fern", "navy", "pale", "rows"]
    texts = ["".join(chr(dice.randrange(32, 0x3000)) for _ in range(dice.randrange(60))) for _ in range(15)]
    texts += [" ".join(dice.choices(known, k=dice.randrange(1, 12))) for _ in range(25)]

    for text in ("", "\0", "🦊" * 2000, "on on on", *texts):
        svg_of(recipe_of(Design(prompt=text)))


def selections_of(category):
    """Return selections in which each value of each option occurs at least once."""
    most = max(len(option.surcharges) for option in category.options)
    return [
        {one.name: list(one.surcharges)[number % len(one.surcharges)] for one in category.options}
        for number in range(most)
    ]


@pytest.mark.parametrize("category", CATEGORIES, ids=lambda category: category.key)
def test_every_product_is_drawn_in_each_width(category):
    """Selections look different where they can be seen, and no mark is left unfilled."""
    design = Design(prompt="lemons on navy").model_dump(mode="json")
    images = set()
    for selections in selections_of(category):
        image = picture({"design": design, "category": category.key, "selections": selections}, 128)
        assert image.size == (128, 128)
        images.add(image.tobytes())

    assert len(images) >= 2
    materials = {"colour", "handles", "frame"}
    named = {value for option in category.options if option.name in materials for value in option.surcharges}
    assert named - {"none"} <= set(MATERIALS)
