"""Wallpaper groups: every motion of the group carries the drawn placements into themselves."""

from __future__ import annotations

import numpy as np
import pytest

from studio.art.layout import HEXAGONAL, TILE, Motion, Wish, arrange, cells, compose, motions
from studio.art.recipe import Dice

#: The group, and how many motions it has in a cell of the lattice as it is written here (centred cells count double).
GROUPS = {"half_drop": 2, "p2": 2, "pg": 2, "cm": 4, "pmm": 4, "pgg": 4, "p4": 4, "p4m": 8, "p3": 6, "p6": 12}


def test_groups_have_their_motions() -> None:
    assert {name: len(motions(name, 300.0, 300.0)) for name in GROUPS} == GROUPS


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_placements_have_the_symmetry_of_the_group(name: str) -> None:
    """Position and orientation, for drawings in general places; a drawing on a centre or mirror stands for itself."""
    columns, rows = cells(name, 1.0)
    width = TILE / columns
    height = width * 3**0.5 if name in HEXAGONAL else TILE / rows
    squeeze = TILE / rows / height
    group = motions(name, width, height)
    placed = [
        _unsqueezed(one.motion, squeeze)
        for one in arrange(name, 1.0, [Wish(0, 90, 5), Wish(0, 60, 5)], Dice(5))
    ]
    period = (TILE, height * rows)
    general = [one for one in placed if _is_general(one, group, (width, height))]

    assert len(general) >= GROUPS[name] * columns * rows
    for one in general:
        for motion in group:
            image = compose(motion, one)
            assert any(_same(image, other, period) for other in placed)


def _unsqueezed(motion: Motion, squeeze: float) -> Motion:
    a, b, c, d, x, y = motion
    return a, b / squeeze, c, d / squeeze, x, y / squeeze


def _is_general(one: Motion, group: tuple[Motion, ...], cell: tuple[float, float]) -> bool:
    """Whether no motion but rest leaves the place where it is."""
    images = [compose(motion, one) for motion in group]
    places = {(round(x % cell[0], 2) % cell[0], round(y % cell[1], 2) % cell[1]) for *_, x, y in images}
    return len(places) == len(group)


def _same(one: Motion, other: Motion, period: tuple[float, float]) -> bool:
    gaps = [abs(a - b) % whole for a, b, whole in zip(one[4:], other[4:], period, strict=True)]
    near = all(min(gap, whole - gap) < 1e-3 for gap, whole in zip(gaps, period, strict=True))
    return near and np.allclose(one[:4], other[:4], atol=1e-6)
