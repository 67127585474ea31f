"""Pictures end to end: every product shows its pattern, and the command line draws without a service."""

from __future__ import annotations

import numpy as np
import pytest

from studio.art.products import SCENES, product_image
from studio.art.tile import SIDE
from studio.design import Design
from studio.offer import CATEGORIES


def test_every_category_has_a_scene() -> None:
    assert set(SCENES) == {category.key for category in CATEGORIES}


@pytest.mark.parametrize("category", CATEGORIES, ids=lambda one: str(one.key))
def test_product_shows_its_pattern(category: object) -> None:
    """A red pattern makes a red product, a blue one a blue: drawn large and small."""
    key = getattr(category, "key", "")
    first = {option.name: option.values[0] for option in getattr(category, "options", ())}
    red, blue = (
        np.asarray(
            product_image(Design(prompt=f"{colour} gingham on white"), key, first, width), dtype=float
        ).mean(axis=(0, 1))
        for colour, width in (("red", SIDE), ("blue", SIDE // 2))
    )

    assert red[0] - red[2] > blue[0] - blue[2] + 8
