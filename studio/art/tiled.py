"""Fields of tiles, fans, rings and waves, each periodic in the tile.

Each drawing covers more than the tile, and what it draws repeats exactly after the tile's side.
"""

from __future__ import annotations

from itertools import product

from studio.art.cloth import Cloth, box, fill, line
from studio.art.colour import Colour, mix
from studio.art.inks import Point, around, blade, circle, number, polygon, smooth
from studio.art.layout import TILE


def geometric(cloth: Cloth) -> str:
    """Quarter circles and triangles in squares, as on a sixties' scarf."""
    count = cloth.count(5)
    step = TILE / count
    drawn = []
    for row, column in product(range(count), range(count)):
        x, y = column * step, row * step
        turn = int(cloth.dice.between(0, 4))
        drawn.append(fill(box(x, y, step, step), mix(cloth.ground, cloth.ink(row + 2 * column), 0.16)))
        drawn.append(
            _piece(int(cloth.dice.between(0, 4)), turn, x, y, step, cloth.ink(int(cloth.dice.between(0, 4))))
        )
    return "".join(drawn)


def _piece(kind: int, turn: int, x: float, y: float, step: float, colour: Colour) -> str:
    half = number(step)
    shapes = (
        f"M0,0H{half}A{half},{half} 0 0 1 0,{half}Z",
        polygon([(0, 0), (step, 0), (0, step)]),
        f"M0,0H{half}A{number(step / 2)},{number(step / 2)} 0 0 1 0,0Z",
        circle(step / 2, step / 2, step * 0.36),
    )
    middle = f"{number(x)} {number(y)}) rotate({turn * 90} {number(step / 2)} {number(step / 2)}"
    return f'<g transform="translate({middle})">{fill(shapes[kind], colour)}</g>'


def triangle(cloth: Cloth) -> str:
    count = cloth.count(8, multiple=2)
    step = TILE / count
    drawn = []
    for row in range(count):
        for half in range(-1, 2 * count + 1):
            x, up = half * step / 2, (half + row) % 2 == 0
            y = row * step
            corners = (
                [(x, y + step), (x + step / 2, y), (x + step, y + step)]
                if up
                else [(x, y), (x + step, y), (x + step / 2, y + step)]
            )
            ink = ((half % (2 * count)) * 7 + row * 5 + (half % (2 * count)) * row) % (len(cloth.inks) + 1)
            if ink < len(cloth.inks):
                drawn.append(fill(polygon(corners), cloth.ink(ink)))
    return "".join(drawn)


def hexagon(cloth: Cloth) -> str:
    """Honeycomb: rings in cells, on a lattice that is stretched by a hundredth to close."""
    across = cloth.count(7)
    down = max(2, round(across * 2 / 3**0.5 / 2) * 2)
    width, height = TILE / across, TILE / down
    drawn = []
    for row, column in product(range(-1, down + 1), range(-1, across + 1)):
        x, y = (column + row % 2 * 0.5) * width, row * height
        tint = (row * 2 + column % across + (column % across) * row) % 4
        shades = (
            ((1.0, cloth.ink(0)), (0.86, cloth.ground))
            if tint
            else ((1.0, cloth.ink(1)), (0.86, cloth.ink(1)))
        )
        for size, colour in (*shades, (0.5, cloth.ink(tint % 3)), (0.3, cloth.ground)):
            corners = [(x + px * width / 3**0.5, y + py * height / 1.5) for px, py in _six(size * 0.94)]
            drawn.append(fill(polygon(corners), colour))
    return "".join(drawn)


def _six(size: float) -> list[Point]:
    return [around(turn, size) for turn in range(0, 360, 60)]


def tile(cloth: Cloth) -> str:
    """Painted tiles: a rosette in each square, quarter flowers at the corners."""
    count = cloth.count(3)
    step = TILE / count
    drawn = []
    for row, column in product(range(-1, count + 1), range(-1, count + 1)):
        x, y = (column + 0.5) * step, (row + 0.5) * step
        drawn.append(
            line(
                box(x - step / 2, y - step / 2, step, step),
                mix(cloth.ground, cloth.ink(0), 0.3),
                step * 0.012,
            )
        )
        for turn in range(0, 360, 45):
            foot, reach = around(turn, step * 0.08, x, y), step * (0.3 if turn % 90 else 0.36)
            drawn.append(
                fill(blade(*foot, turn, reach, step * 0.14, belly=0.6), cloth.ink(0 if turn % 90 else 1))
            )
            drawn.append(fill(circle(*around(turn + 22.5, step * 0.3, x, y), step * 0.018), cloth.ink(2)))
        drawn.append(
            fill(circle(x, y, step * 0.085), cloth.ink(2)) + fill(circle(x, y, step * 0.045), cloth.ground)
        )
        drawn.append(line(circle(x, y, step * 0.455), cloth.ink(0), step * 0.018))
        corner = (x + step / 2, y + step / 2)
        drawn += [
            fill(blade(*corner, turn, step * 0.2, step * 0.13, belly=0.6), cloth.ink(1))
            for turn in range(45, 405, 90)
        ]
        drawn += [
            fill(blade(*corner, turn, step * 0.13, step * 0.09, belly=0.6), cloth.ink(2))
            for turn in range(0, 360, 90)
        ]
        drawn.append(fill(circle(*corner, step * 0.035), cloth.ink(0)))
    return "".join(drawn)


def quatrefoil(cloth: Cloth) -> str:
    count = cloth.count(4)
    step = TILE / count
    drawn = []
    for double in range(-2, 2 * count + 2):
        for column in range(-1, count + 1):
            x, y = (column + double % 2 * 0.5) * step, double * step / 2
            ink = 0 if double % 2 else 1
            lobes = [around(turn, step * 0.2, x, y) for turn in range(0, 360, 90)]
            for size, colour in ((0.205, cloth.ink(ink)), (0.17, cloth.ground)):
                drawn += [fill(circle(*lobe, step * size), colour) for lobe in lobes]
                drawn.append(
                    fill(box(x - step * 0.2, y - step * 0.2, step * 0.4, step * 0.4), colour)
                    if size > 0.2
                    else fill(box(x - step * 0.18, y - step * 0.18, step * 0.36, step * 0.36), colour)
                )
            drawn += [
                fill(blade(x, y, turn, step * 0.24, step * 0.13, belly=0.6), cloth.ink(ink))
                for turn in range(0, 360, 90)
            ]
            drawn += [
                fill(blade(x, y, turn, step * 0.15, step * 0.07, belly=0.6), cloth.ink(2))
                for turn in range(45, 405, 90)
            ]
            drawn.append(fill(circle(x, y, step * 0.035), cloth.ink(2)))
    return "".join(drawn)


def wave(cloth: Cloth) -> str:
    across, down = cloth.count(3), cloth.count(12)
    length, step = TILE / across, TILE / down
    drawn = []
    for row in range(-3, down + 3):
        shift = (row % down) * 0.0
        corners: list[Point] = []
        for half in range(-2, 2 * across + 3):
            swing = step * (0.85 if half % 2 else -0.85)
            corners.append((half * length / 2 + shift, row * step + swing))
        widths = (0.42, 0.2, 0.3, 0.12)
        order = row % down % 4 if down % 4 == 0 else row % down % 3
        drawn.append(line(smooth(corners, closed=False, tension=1.4), cloth.ink(order), step * widths[order]))
    return "".join(drawn)


def scallop(cloth: Cloth) -> str:
    """Seigaiha: rows of ringed circles, each row half over the one above."""
    across = cloth.count(5)
    down = across * 4
    width, step = TILE / across, TILE / down
    drawn = []
    for row, column in product(range(-4, down + 6), range(-1, across + 2)):
        x, y = (column + row % 2 * 0.5) * width, row * step + step
        for size, colour in _rings(cloth, (row % down * 3 + column % across) % 5 == 0):
            drawn.append(fill(circle(x, y, width * 0.5 * size), colour))
    return "".join(drawn)


def _rings(cloth: Cloth, special: bool) -> tuple[tuple[float, Colour], ...]:
    first = cloth.ink(1) if special else cloth.ink(0)
    return (
        (1.0, cloth.ground),
        (0.94, first),
        (0.76, cloth.ground),
        (0.66, first),
        (0.48, cloth.ground),
        (0.38, cloth.ink(2) if special else first),
        (0.2, cloth.ground),
    )


def deco_fan(cloth: Cloth) -> str:
    across = cloth.count(4)
    down = across * 2
    width, step = TILE / across, TILE / down
    drawn = []
    for row, column in product(range(-2, down + 4), range(-1, across + 2)):
        x, y = (column + row % 2 * 0.5) * width, row * step + step
        drawn.append(
            fill(circle(x, y, width * 0.5), cloth.ink(0)) + fill(circle(x, y, width * 0.475), cloth.ground)
        )
        for turn in range(-90, 91, 20):
            drawn.append(
                fill(
                    blade(x, y, turn, width * 0.45, width * 0.1, belly=0.75),
                    cloth.ink(0 if turn % 40 else 1),
                )
            )
        drawn.append(
            fill(circle(x, y, width * 0.16), cloth.ground)
            + line(circle(x, y, width * 0.14), cloth.ink(0), width * 0.02)
            + fill(circle(x, y, width * 0.07), cloth.ink(2))
        )
    return "".join(drawn)


def arch(cloth: Cloth) -> str:
    across = cloth.count(4)
    down = max(1, round(across * 0.75)) * 2
    width, height = TILE / across, TILE / down
    drawn = []
    for row, column in product(range(-1, down + 1), range(-1, across + 1)):
        x, y = (column + row % 2 * 0.5 + 0.5) * width, (row + 1) * height
        first = (row % down + column % across) % 4
        for ring, size in enumerate((0.45, 0.345, 0.24, 0.135)):
            radius = number(width * size)
            base = number(y - height * 0.06)
            path = (
                f"M{number(x - width * size)},{base}V{number(y - height * 0.38)}A{radius},{radius} 0 0 "
                f"1 {number(x + width * size)},{number(y - height * 0.38)}V{base}Z"
            )
            drawn.append(fill(path, cloth.ink(first + ring)) + (line(path, cloth.ground, width * 0.022)))
    return "".join(drawn)


def circles(cloth: Cloth) -> str:
    """Overlapping rings on a square lattice, with petals where they cross."""
    count = cloth.count(5)
    step = TILE / count
    drawn = []
    for row, column in product(range(-1, count + 2), range(-1, count + 2)):
        x, y = column * step, row * step
        for turn in range(45, 405, 90):
            drawn.append(
                fill(
                    blade(x, y, turn, step * 0.7, step * 0.26, belly=0.5),
                    cloth.ink((row % count + column % count) % 2),
                )
            )
    for row, column in product(range(-1, count + 2), range(-1, count + 2)):
        drawn.append(fill(circle((column + 0.5) * step, row * step, step * 0.075), cloth.ink(2)))
        drawn.append(fill(circle(column * step, row * step, step * 0.05), cloth.ground))
    return "".join(drawn)


FIELDS = {
    "geometric": geometric,
    "triangle": triangle,
    "hexagon": hexagon,
    "tile": tile,
    "quatrefoil": quatrefoil,
    "wave": wave,
    "scallop": scallop,
    "deco_fan": deco_fan,
    "arch": arch,
    "circles": circles,
}
