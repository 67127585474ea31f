"""Fields of loose pieces: chips, confetti, cut paper, spots, each periodic in the tile.

Shapes are strewn on a torus; what crosses an edge is drawn again on the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from studio.art.cloth import Cloth, fill, line
from studio.art.colour import mix
from studio.art.inks import Point, around, circle, number, polygon, smooth
from studio.art.layout import TILE


@dataclass(frozen=True)
class Piece:
    """One loose shape around its own origin, where it lies, and how far it reaches."""

    shape: str
    x: float
    y: float
    reach: float


def _scattered(cloth: Cloth, count: int, spread: float, taken: Sequence[Point] = ()) -> list[Point]:
    """Points at a distance from one another, and from those taken, on the torus."""
    placed = np.empty((len(taken) + count, 2))
    placed[: len(taken)] = np.reshape(taken, (len(taken), 2))
    kept: list[Point] = []
    for _ in range(count * 30):
        point = cloth.dice.between(0, TILE), cloth.dice.between(0, TILE)
        others = placed[: len(taken) + len(kept)]
        gaps = np.abs(others - point)
        if (np.minimum(gaps, TILE - gaps) ** 2).sum(axis=1).min(initial=np.inf) > spread**2:
            placed[len(others)] = point
            kept.append(point)
        if len(kept) == count:
            break
    return kept


def wrapped(piece: Piece) -> str:
    """A shape, drawn again wherever it crosses an edge of the tile."""
    steps, reach = (-TILE, 0, TILE), piece.reach
    across = [step for step in steps if -reach < piece.x + step < TILE + reach]
    down = [step for step in steps if -reach < piece.y + step < TILE + reach]
    return "".join(
        f'<g transform="translate({number(piece.x + right)} {number(piece.y + low)})">{piece.shape}</g>'
        for right in across
        for low in down
    )


def terrazzo(cloth: Cloth) -> list[Piece]:
    drawn: list[Piece] = []
    taken: list[Point] = []
    for part, share in ((112.0, 5.0), (70.0, 4.0), (34.0, 3.0)):
        size = part * cloth.scale
        spots = _scattered(cloth, int(share * (1000 / size) ** 2 / 16), size * 1.02, taken)
        taken += spots
        for x, y in spots:
            sides = int(cloth.dice.between(4, 7))
            corners = [
                around(
                    step * 360 / sides + cloth.dice.between(-18, 18), size * cloth.dice.between(0.35, 0.62)
                )
                for step in range(sides)
            ]
            drawn.append(
                Piece(
                    fill(polygon(corners), cloth.ink(int(cloth.dice.between(0, len(cloth.inks))))), x, y, size
                )
            )
    return drawn


def confetti(cloth: Cloth) -> list[Piece]:
    drawn: list[Piece] = []
    size = 34 * cloth.scale
    for index, (x, y) in enumerate(_scattered(cloth, int(230 / cloth.scale**2), size * 1.4)):
        angle = cloth.dice.between(0, 180)
        end = around(angle, size * 0.5)
        shape = line(
            f"M{number(-end[0])},{number(-end[1])}L{number(end[0])},{number(end[1])}",
            cloth.ink(index % 5),
            size * 0.3,
        )
        drawn.append(Piece(shape, x, y, size))
    return drawn


def memphis(cloth: Cloth) -> list[Piece]:
    drawn: list[Piece] = []
    size = 62 * cloth.scale
    for index, (x, y) in enumerate(_scattered(cloth, int(70 / cloth.scale**2), size * 1.5)):
        colour, other, angle = cloth.ink(index % 4), cloth.ink((index + 1) % 4), cloth.dice.between(0, 360)
        zigzag = "M-50,12L-30,-12L-10,12L10,-12L30,12L50,-12"
        shapes = (
            line(zigzag, colour, 9),
            line("M-46,8C-34,-26 -22,-26 -12,4C-2,32 8,32 18,4C26,-22 38,-22 46,4", colour, 9),
            fill(polygon([(-34, 26), (0, -34), (34, 26)]), colour)
            + fill(polygon([(-16, 14), (0, -14), (16, 14)]), cloth.ground),
            fill(circle(0, 0, 30), colour)
            + "".join(fill(circle(px, py, 4), other) for px in (-12, 0, 12) for py in (-12, 0, 12)),
            line("M-26,0H26M0,-26V26", colour, 10),
            fill("M-38,0A38,38 0 0 1 38,0Z", colour) + line("M-38,11H38", other, 6),
        )
        drawn.append(
            Piece(
                f'<g transform="rotate({angle:.1f}) scale({size / 62:.3f})">{shapes[index % 6]}</g>',
                x,
                y,
                size,
            )
        )
    for x, y in _scattered(cloth, int(120 / cloth.scale**2), size * 0.8):
        drawn.insert(0, Piece(fill(circle(0, 0, size * 0.07), cloth.ink(3)), x, y, size))
    return drawn


def cutout(cloth: Cloth) -> list[Piece]:
    """Shapes as if cut from paper: seaweeds, pebbles, hills."""
    drawn: list[Piece] = []
    size = 120 * cloth.scale
    for index, (x, y) in enumerate(_scattered(cloth, int(24 / cloth.scale**2), size * 1.45)):
        angle, colour = cloth.dice.between(0, 360), cloth.ink(index % 4)
        bend = cloth.dice.between(0.55, 1.0)
        shapes = (_frond(), _pebble(bend), _frond(), _hills(bend))
        detail = fill(_pebble(bend), cloth.ground) if index % 4 == 1 else ""
        inner = f'<g transform="scale(.42)">{detail}</g>' if detail else ""
        drawn.append(
            Piece(
                f'<g transform="rotate({angle:.1f}) scale({size / 100:.3f})">'
                f"{fill(shapes[index % 4], colour)}{inner}</g>",
                x,
                y,
                size * 1.05,
            )
        )
    for index, (x, y) in enumerate(_scattered(cloth, int(60 / cloth.scale**2), size * 0.95)):
        drawn.insert(0, Piece(fill(circle(0, 0, size * 0.07), cloth.ink(index % 4 + 1)), x, y, size))
    return drawn


def _frond() -> str:
    right: list[Point] = [(0, -92)]
    for step in range(5):
        y = -70 + step * 32
        right += [(16, y), (46 - abs(step - 2) * 5, y - 16), (50 - abs(step - 2) * 5, y - 2), (14, y + 20)]
    right.append((8, 92))
    return smooth([*right, *((-x, y) for x, y in reversed(right[1:]))], tension=0.9)


def _pebble(bend: float) -> str:
    return smooth([around(turn, 66 * (bend if turn % 120 else 1.05)) for turn in range(0, 360, 60)])


def _hills(bend: float) -> str:
    return smooth(
        [(-70, 30), (-50, -30 * bend), (-14, -8), (16, -48 * bend), (48, -10), (70, 34), (10, 52), (-40, 48)]
    )


def leopard(cloth: Cloth) -> list[Piece]:
    drawn: list[Piece] = []
    size = 92 * cloth.scale
    dark = cloth.ink(0)
    middle = mix(cloth.ground, cloth.ink(1), 0.55)
    for x, y in _scattered(cloth, int(120 / cloth.scale**2), size * 0.98):
        angle = cloth.dice.between(0, 360)
        shape = fill(
            smooth([around(turn, size * cloth.dice.between(0.28, 0.36)) for turn in range(0, 360, 60)]),
            middle,
        )
        for part in range(3 if cloth.dice.between(0, 1) < 0.6 else 2):
            start = part * 120 + cloth.dice.between(-14, 14)
            outer = [
                around(start + turn, size * 0.5 * cloth.dice.between(0.92, 1.1)) for turn in (0, 28, 56, 84)
            ]
            inner = [around(start + turn, size * 0.31) for turn in (78, 42, 6)]
            shape += fill(smooth([*outer, *inner]), dark)
        drawn.append(Piece(f'<g transform="rotate({angle:.1f})">{shape}</g>', x, y, size))
    return drawn


def _field(pieces: Callable[[Cloth], list[Piece]]) -> Callable[[Cloth], str]:
    return lambda cloth: "".join(wrapped(piece) for piece in pieces(cloth))


FIELDS = {piece.__name__: _field(piece) for piece in (terrazzo, confetti, memphis, cutout, leopard)}
