"""Tiles: they repeat without a seam, whatever is on them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.art import layout, motifs
from studio.art.inks import Inks
from studio.art.layout import TILE, Wish, arrange, cells, compose, motions
from studio.art.recipe import Dice, recipe_for
from studio.art.sheet import sheet_for, to_svg
from studio.art.tile import render, texture

#: One with drawings on a plain ground, one turned and mirrored, one on a field. More in the integration tier.
PROMPTS = ("blue herons on cream", "cherry blossom mandala", "bees on honeycomb")


Pixels = NDArray[np.float64]
#: Small tiles say as much about seams, in a tenth of the time.
SMALL = 160


def pixels(prompt: str, side: int = SMALL) -> Pixels:
    return np.asarray(render(sheet_for(recipe_for(prompt)), side=side), dtype=np.float64)


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


@pytest.mark.parametrize("prompt", PROMPTS)
def test_shifted_drawing_is_the_tile_rolled(prompt: str) -> None:
    """The drawing lives on a torus: moving it by whole pixels only moves its pixels around the edges."""
    recipe = recipe_for(prompt)
    shift = (50, 33)
    moved = np.asarray(render(sheet_for(recipe), side=SMALL, shift=shift), dtype=np.float64)
    rolled = np.roll(pixels(prompt), (shift[1], shift[0]), axis=(0, 1))

    difference = np.abs(moved - rolled).max(axis=2)
    # Contours that touch the very border of the canvas are rounded a little differently there.
    assert (difference > 12).mean() < 0.005


def test_every_drawing_shows_its_main_colour() -> None:
    """No drawing is empty, and each has the requested colour."""
    inks = Inks("#f5ecd7", "#c4564a", "#24456b", "#e0a32e", "#5f8a5a", "#f5ecd7")

    assert [name for name in motifs.NAMES if "#c4564a" not in motifs.DRAWINGS[name](inks)] == []


@pytest.mark.parametrize("name", ["linen", "wash", "paper"])
def test_textures_are_periodic_and_faint(name: str) -> None:
    """A texture neither shows a seam nor hides the pattern."""
    grain = texture(name, 7, SMALL).astype(np.float64)[:, :, None]

    assert abs(grain).max() < 0.35
    assert all(seam <= inside * 1.05 for seam, inside in (seam_and_inside(grain, axis) for axis in (0, 1)))


def test_same_recipe_is_the_same_svg() -> None:
    assert to_svg(sheet_for(recipe_for("koi fish and waves"))) == to_svg(
        sheet_for(recipe_for("koi fish and waves"))
    )


@pytest.mark.parametrize("name", sorted(layout.NAMES - {"toss", "grid"}))
def test_layout_has_the_symmetry_of_its_group(name: str) -> None:
    """Every motion of the group carries the set of placements into itself."""
    placements = arrange(name, 1.0, [Wish(0, 400, 1, ease=0.8), Wish(1, 90, 10)], Dice(11))
    columns, rows = cells(name, 1.0)
    width = TILE / columns
    height = width * 3**0.5 if name in layout.HEXAGONAL else TILE / rows
    squeeze = TILE / rows / height
    centres = [(one.role, one.motion[4], one.motion[5] / squeeze) for one in placements]

    for motion in motions(name, width, height):
        for role, x, y in centres:
            image = compose(motion, (1, 0, 0, 1, x, y))
            assert any(role == other and _near(image[4:6], (u, v), height * rows) for other, u, v in centres)


def _near(one: tuple[float, ...], other: tuple[float, float], height: float) -> bool:
    gaps = [abs(a - b) % period for a, b, period in zip(one, other, (TILE, height), strict=True)]
    return all(min(gap, period - gap) < 1e-3 for gap, period in zip(gaps, (TILE, height), strict=True))
