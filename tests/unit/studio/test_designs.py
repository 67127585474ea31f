"""Designs: the drawing of a prompt is pinned, and each change to it changes only what it names."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from studio.art.changes import recipe_of
from studio.art.sheet import sheet_for, to_svg
from studio.art.tile import tile_image
from studio.design import Change, Crop, Design, Edit, Extend
from studio.models import MODELS
from tests.unit.studio.test_tile import SMALL, Pixels, seam_and_inside

CROP = Crop(x=0.2, y=0.3, width=0.5, height=0.4)
EXTEND = Extend(columns=2, rows=2)
#: One tossed, one turned and mirrored, one on loose pieces, one on a regular ground, one on a ground without a repeat.
PROMPTS = (
    "tossed lemons and bees on navy",
    "cherry blossom mandala",
    "terrazzo in blush",
    "bees on gingham",
    "geometric in navy and coral",
)


def design(prompt: str, *changes: Change, model: str = "atelier") -> Design:
    return Design(prompt=prompt, model=model, changes=changes)


def drawn(one: Design, side: int = SMALL) -> Pixels:
    return np.asarray(tile_image(one, side=side), dtype=np.float64)


def seams_are_hidden(image: Pixels) -> bool:
    return all(
        seam <= inside * 1.1 + 0.5 for seam, inside in (seam_and_inside(image, axis) for axis in (0, 1))
    )


@pytest.mark.parametrize(
    ("prompt", "digest"),
    [
        ("blue herons on cream", "ff33c36fb1a0bfce"),
        ("tossed lemons on navy", "4af4249570bf135d"),
        ("black and white houndstooth", "7a8443bab5286f34"),
        ("art deco fans in gold", "f7b880e886eb2379"),
        ("mirrored paisley in burgundy", "7da202e426aeffd6"),
        ("linocut foxes in the woodland", "66272ec70865902b"),
    ],
)
def test_drawing_of_a_prompt_is_pinned(prompt: str, digest: str) -> None:
    """What was sold under a prompt is what the same prompt draws ever after."""
    assert hashlib.sha256(to_svg(sheet_for(recipe_of(design(prompt)))).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("model", [model.model_id for model in MODELS])
def test_every_model_is_seamless_and_draws_the_same_bytes(model: str) -> None:
    one = Design(prompt=PROMPTS[0], model=model, seed=7)
    image = drawn(one)

    assert seams_are_hidden(image)
    assert (drawn(one) == image).all()


@pytest.mark.parametrize("prompt", PROMPTS)
def test_cut_tiles_are_seamless(prompt: str) -> None:
    assert seams_are_hidden(drawn(design(prompt, CROP, EXTEND)))


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("add butterflies", ["heron", "butterfly", "sprig"]),
        ("replace the herons with flamingos", ["flamingo", "sprig"]),
        ("flamingos instead of herons", ["flamingo", "sprig"]),
        ("without sprigs", ["heron"]),
        ("on navy", ["heron", "sprig"]),
    ],
)
def test_edit_adds_replaces_and_removes(words: str, names: list[str]) -> None:
    recipe = recipe_of(design("blue herons and sprigs on cream", Edit(prompt=words)))

    assert [subject.name for subject in recipe.subjects] == names
