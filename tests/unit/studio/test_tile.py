"""Tiles: they repeat without a seam, whatever is on them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.art import motifs
from studio.art.inks import Inks
from studio.art.recipe import recipe_for
from studio.art.tile import drawn_tile

#: One with drawings on a plain ground, one turned and mirrored, one on a field. More in the integration tier.
PROMPTS = ("blue herons on cream", "cherry blossom mandala", "bees on honeycomb")


Pixels = NDArray[np.float64]
#: Small tiles say as much about seams, in a tenth of the time.
SMALL = 160


def pixels(prompt: str, side: int = SMALL) -> Pixels:
    return np.asarray(drawn_tile(recipe_for(prompt), side), dtype=np.float64)


def seam_and_inside(image: Pixels, axis: int) -> tuple[float, float]:
    """The mean step across the seam, and the greatest mean step between neighbours inside."""
    steps = np.abs(np.diff(np.concatenate([image, np.take(image, [0], axis)], axis), axis=axis))
    means = steps.mean(axis=(1 - axis, 2))
    return float(means[-1]), float(means[:-1].max())


@pytest.mark.parametrize("prompt", PROMPTS)
def test_seams_are_invisible(prompt: str) -> None:
    """The step from the last pixels to the first is no larger than steps inside the tile."""
    image = pixels(prompt)

    for axis in (0, 1):
        seam, inside = seam_and_inside(image, axis)
        assert seam <= inside * 1.05


def test_seam_measure_finds_a_seam() -> None:
    """In a tile that is cut out of its period."""
    cut = pixels("blue herons on cream")[: SMALL - 28, : SMALL - 22]

    assert any(seam > inside * 1.05 for seam, inside in (seam_and_inside(cut, axis) for axis in (0, 1)))


def test_every_drawing_shows_its_main_colour() -> None:
    """No drawing is empty, and each has the requested colour."""
    inks = Inks("#f5ecd7", "#c4564a", "#24456b", "#e0a32e", "#5f8a5a", "#f5ecd7")

    assert [name for name in motifs.NAMES if "#c4564a" not in motifs.DRAWINGS[name](inks)] == []
