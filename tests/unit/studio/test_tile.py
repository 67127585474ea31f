"""Tiles and products: seamless whatever is on them, the same bytes for the same design, and drawn for every prompt."""

from __future__ import annotations

import hashlib
import random
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.art.drawing import picture
from studio.art.products import MATERIALS
from studio.art.recipe import recipe_of
from studio.art.tile import FAMILIES, svg_of, tile_image
from studio.design import Change, Crop, Design, Extend
from studio.models import MODELS
from studio.offer import CATEGORIES, Category

#: One for each motif, and one that names none.
PROMPTS = (
    "blue herons on cream, watercolour", "reeds", "lemon branches", "tossed oranges and bees on navy", "cherries",
    "scattered strawberries and clover", "daisies in stripes", "ferns on forest green", "eucalyptus leaves and ferns",
    "lavender, ink drawing", "terracotta arches, cut paper", "indigo fans", "confetti", "polka dots", "jazz",
)  # fmt: skip
#: Small tiles say as much about seams, in a tenth of the time.
SMALL = 160
Pixels = NDArray[np.float64]


def drawn(prompt: str, *changes: Change, seed: int | None = None, model: str = "atelier") -> Pixels:
    design = Design(prompt=prompt, seed=seed, model=model, changes=changes)
    return np.asarray(tile_image(design, side=SMALL), dtype=np.float64)


def seam_and_inside(image: Pixels, axis: int) -> tuple[float, float]:
    """The mean step across the seam, and the greatest mean step between neighbours inside."""
    steps = np.abs(np.diff(np.concatenate([image, np.take(image, [0], axis)], axis), axis=axis))
    means = steps.mean(axis=(1 - axis, 2))
    return float(means[-1]), float(means[:-1].max())


def seams_are_hidden(image: Pixels) -> bool:
    return all(
        seam <= inside * 1.1 + 0.5 for seam, inside in (seam_and_inside(image, axis) for axis in (0, 1))
    )


@pytest.mark.parametrize(("prompt", "seed"), list(product(PROMPTS, (None, 1))))
def test_tile_is_seamless(prompt: str, seed: int | None) -> None:
    """The step from the last pixels to the first is no larger than steps inside the tile."""
    assert seams_are_hidden(drawn(prompt, seed=seed))


def test_seam_measure_finds_a_seam() -> None:
    """In a tile that is cut out of its period."""
    assert not seams_are_hidden(drawn("lemon branches")[: SMALL - 28, : SMALL - 22])


def test_prompts_show_every_family() -> None:
    assert {recipe_of(Design(prompt=prompt)).family for prompt in PROMPTS} == set(FAMILIES)


@pytest.mark.parametrize("prompt", PROMPTS[::3])
def test_cut_tile_is_seamless(prompt: str) -> None:
    crop, extend = Crop(x=0.2, y=0.3, width=0.5, height=0.4), Extend(columns=2, rows=2)

    assert seams_are_hidden(drawn(prompt, crop, extend))


def test_every_model_draws_the_same_bytes_in_its_own_manner() -> None:
    first, again = (
        [drawn("strawberries and bees", model=model.model_id).tobytes() for model in MODELS] for _ in range(2)
    )

    assert first == again
    assert len(set(first)) == len(MODELS)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_take_is_another_picture(prompt: str) -> None:
    """Asked for again, a prompt is drawn otherwise."""
    svgs = {svg_of(recipe_of(Design(prompt=prompt, seed=seed))) for seed in (None, 1, 2, 3)}

    assert len(svgs) == 4


@pytest.mark.parametrize(
    ("prompt", "digest"),
    [
        ("blue herons on cream", "1df07c64f0b16360"),
        ("tossed lemons on navy", "7a38455e4f086e4b"),
        ("art deco fans in gold", "6715ca9f4481c7b8"),
        ("jazz", "7cbec7e23973198e"),
    ],
)
def test_drawing_of_a_prompt_is_pinned(prompt: str, digest: str) -> None:
    """What was sold under a prompt is what it draws ever after, on any machine."""
    assert hashlib.sha256(svg_of(recipe_of(Design(prompt=prompt))).encode()).hexdigest()[:16] == digest


def test_every_prompt_is_drawn() -> None:
    """Of any letters, and of any words of the vocabulary in any order."""
    dice = random.Random(7)
    known = ["on", "background", "without", "hell", "lemon", "bee", "fern", "navy", "pale", "rows"]
    texts = ["".join(chr(dice.randrange(32, 0x3000)) for _ in range(dice.randrange(60))) for _ in range(15)]
    texts += [" ".join(dice.choices(known, k=dice.randrange(1, 12))) for _ in range(25)]

    for text in ("", "\0", "🦊" * 2000, "on on on", *texts):
        svg_of(recipe_of(Design(prompt=text)))


def selections_of(category: Category) -> list[dict[str, str]]:
    """Selections in which each value of each option comes at least once."""
    most = max(len(option.values) for option in category.options)
    return [
        {one.name: one.values[number % len(one.values)] for one in category.options} for number in range(most)
    ]


@pytest.mark.parametrize("category", CATEGORIES, ids=lambda category: category.key)
def test_every_product_is_drawn_in_each_width(category: Category) -> None:
    """Each selection in its own way where it is seen, and without a mark that nothing filled."""
    design = Design(prompt="lemons on navy").model_dump(mode="json")
    images = set()
    for selections in selections_of(category):
        order = {"design": design, "references": [], "category": category.key, "selections": selections}
        image = picture({**order, "width": 128})
        assert image.size == (128, 128)
        images.add(image.tobytes())

    assert len(images) >= 2
    materials = {"colour", "handles", "frame"}
    named = {value for option in category.options if option.name in materials for value in option.values}
    assert named - {"none"} <= set(MATERIALS)
