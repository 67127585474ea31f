"""Seams, over many prompts and every field: the slow half of what the unit tier looks at."""

from __future__ import annotations

import pytest

from studio.art.words import MOODS
from tests.unit.studio.test_tile import pixels, seam_and_inside

PROMPTS = (
    "midnight moon and stars",
    "tiny daisies on navy, ditsy",
    "ink drawn swallows",
    "watercolour palm leaves",
    "terrazzo in terracotta and blush",
    "tartan plaid in red and green",
    "huge red poppies on charcoal",
    *sorted(MOODS)[::4],
)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_seams_are_invisible(prompt: str) -> None:
    """The step from the last pixels to the first is no larger than steps inside the tile."""
    image = pixels(prompt)

    for axis in (0, 1):
        seam, inside = seam_and_inside(image, axis)
        assert seam <= inside * 1.1
