"""Fields that a loom could make: stripes, checks, tweeds, each periodic in the tile.

Each drawing covers more than the tile, and what it draws repeats exactly after the tile's side.
"""

from __future__ import annotations

from itertools import product

from studio.art.cloth import Cloth, box, fill
from studio.art.inks import Point, circle, polygon
from studio.art.layout import TILE


def stripe(cloth: Cloth) -> str:
    """Broad and fine stripes in turn."""
    count = cloth.count(6)
    step = TILE / count
    bands = ((0.04, 0.40, 0), (0.52, 0.07, 1), (0.66, 0.16, 2), (0.89, 0.04, 1))
    if cloth.dice.between(0, 1) < 0.35:
        bands = ((0.0, 0.5, 0), (0.62, 0.05, 1), (0.72, 0.05, 1), (0.82, 0.05, 1))
    return "".join(
        fill(box(index * step + start * step, -10, width * step, TILE + 20), cloth.ink(ink))
        for index in range(count)
        for start, width, ink in bands
    )


def dot(cloth: Cloth) -> str:
    count = cloth.count(6, multiple=2)
    step = TILE / count
    radius = step * 0.27
    return "".join(
        fill(circle((column + row % 2 * 0.5) * step, row * step, radius), cloth.ink(0))
        for row in range(-1, count + 2)
        for column in range(-1, count + 1)
    )


def gingham(cloth: Cloth) -> str:
    count = cloth.count(8)
    step = TILE / count
    bands = "".join(
        fill(box(-10, index * step, TILE + 20, step / 2), cloth.ink(0), 0.5) for index in range(count)
    )
    posts = "".join(
        fill(box(index * step, -10, step / 2, TILE + 20), cloth.ink(0), 0.5) for index in range(count)
    )
    return bands + posts


def plaid(cloth: Cloth) -> str:
    count = cloth.count(3)
    step = TILE / count
    bands = (
        (0.05, 0.34, 0, 0.5),
        (0.11, 0.03, 3, 0.8),
        (0.30, 0.03, 3, 0.8),
        (0.55, 0.18, 1, 0.45),
        (0.62, 0.035, 2, 0.85),
        (0.86, 0.025, 2, 0.85),
    )
    drawn = []
    for index in range(count):
        for start, width, ink, see in bands:
            place = (index + start) * step
            drawn.append(fill(box(-10, place, TILE + 20, width * step), cloth.ink(ink), see))
            drawn.append(fill(box(place, -10, width * step, TILE + 20), cloth.ink(ink), see))
    return "".join(drawn)


def checkerboard(cloth: Cloth) -> str:
    count = cloth.count(8, multiple=2)
    step = TILE / count
    return "".join(
        fill(box(column * step, row * step, step, step), cloth.ink(0))
        for row in range(count)
        for column in range(count)
        if (row + column) % 2 == 0
    )


#: One tooth in a 4 x 4 weave: a square and its four teeth.
HOUND: tuple[Point, ...] = (
    (0, 0), (1, 0), (2, 1), (2, 0), (3, 1), (3, 2), (4, 3), (4, 4), (3, 3), (2, 3), (2, 4), (1, 3), (0, 2),
    (1, 2), (1, 1),
)  # fmt: skip


def houndstooth(cloth: Cloth) -> str:
    count = cloth.count(8)
    step = TILE / count / 4
    drawn = []
    for row, column in product(range(-1, count + 1), range(-1, count + 1)):
        at = [((column * 4 + x) * step, (row * 4 + y) * step) for x, y in HOUND]
        drawn.append(fill(polygon(at), cloth.ink(0)))
    return "".join(drawn)


def chevron(cloth: Cloth) -> str:
    across, down = cloth.count(6), cloth.count(8, multiple=4)
    width, step = TILE / across, TILE / down
    drawn = []
    for row in range(-3, down + 3):
        ink = (0, 1, 0, 2)[row % 4]
        top = [
            (column * width / 2, row * step + (column % 2) * width * 0.45)
            for column in range(-1, 2 * across + 2)
        ]
        bottom = [(x, y + step * 0.62) for x, y in reversed(top)]
        drawn.append(fill(polygon([*top, *bottom]), cloth.ink(ink)))
    return "".join(drawn)


def herringbone(cloth: Cloth) -> str:
    across, down = cloth.count(6, multiple=2), cloth.count(14, multiple=4)
    width, step = TILE / across, TILE / down
    slope = width * 0.75
    drawn = []
    for column in range(across):
        for row in range(-4, down + 4):
            left, right = (0.0, slope) if column % 2 == 0 else (slope, 0.0)
            x, y = column * width, row * step - slope / 2
            gap = 0.13
            corners = [
                (x + width * 0.02, y + left), (x + width * 0.98, y + right),
                (x + width * 0.98, y + right + step * (1 - gap)), (x + width * 0.02, y + left + step * (1 - gap)),
            ]  # fmt: skip
            drawn.append(
                fill(polygon(corners), cloth.ink(1 + column // 2 % 2 if (row + column) % 4 == 0 else 0))
            )
    return "".join(drawn)


FIELDS = {
    "stripe": stripe,
    "dot": dot,
    "gingham": gingham,
    "plaid": plaid,
    "checkerboard": checkerboard,
    "houndstooth": houndstooth,
    "chevron": chevron,
    "herringbone": herringbone,
}
