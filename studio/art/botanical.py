"""Drawings of leaves, branches and other greenery, each within a circle of radius 50 around the origin."""

from __future__ import annotations

import math

from studio.art.colour import mix
from studio.art.inks import Inks, around, blade, moved, number, polygon, smooth


def leaf(inks: Inks) -> str:
    parts = [inks.paint(blade(0, 46, 0, 94, 50, belly=0.5), inks.main)]
    parts.append(inks.stroke("M0,46C1,20 -1,-10 0,-38", inks.line, 2.2))
    for step in range(5):
        y = 26 - step * 13
        reach = 15 - abs(step - 1.5) * 2.2
        parts.append(inks.stroke(f"M0,{y}Q{reach * 0.5:.1f},{y - 5} {reach:.1f},{y - 13}", inks.line, 1.5))
        parts.append(inks.stroke(f"M0,{y}Q{-reach * 0.5:.1f},{y - 5} {-reach:.1f},{y - 13}", inks.line, 1.5))
    return "".join(parts)


def _branch(
    inks: Inks, *, pairs: int, length: float, width: float, spread: float, belly: float = 0.45
) -> str:
    """A bent stem with leaves in pairs that grow smaller, and one at its tip."""
    bend = 8.0
    stem = inks.stroke(f"M{-bend},48Q{bend},10 0,-30", inks.leaf, 2.2)
    parts = []
    for step in range(pairs):
        share = (step + 0.7) / (pairs + 0.6)
        x = (1 - share) ** 2 * -bend + 2 * share * (1 - share) * bend
        y = (1 - share) ** 2 * 48 + 2 * share * (1 - share) * 10 - share**2 * 30
        size = 1 - 0.42 * share
        for side in (-1, 1):
            turn = side * spread * (1 - 0.35 * share) + (1 - share) * 8
            colour = inks.main if (step + (side > 0)) % 3 else inks.second
            path = blade(x, y - (3 if side > 0 else 0), turn, length * size, width * size, belly=belly)
            parts.append(inks.paint(path, colour))
    parts.append(inks.paint(blade(0, -28, -6, length * 0.62, width * 0.6, belly=belly), inks.main))
    return stem + "".join(parts)


def sprig(inks: Inks) -> str:
    return _branch(inks, pairs=4, length=31, width=18, spread=58)


def willow(inks: Inks) -> str:
    return _branch(inks, pairs=5, length=36, width=9.5, spread=42)


def eucalyptus(inks: Inks) -> str:
    return _branch(inks, pairs=4, length=21, width=21, spread=76, belly=0.58)


def olive_branch(inks: Inks) -> str:
    fruit = inks.with_main(inks.leaf)
    parts = [_branch(fruit, pairs=4, length=32, width=10, spread=52)]
    for x, y, turn in ((-15, 22, -30), (14, 3, 28), (-8, -12, -18)):
        oval = f'<g transform="translate({x} {y}) rotate({turn})">'
        parts.append(f"{oval}{inks.paint('M-6,0C-6,-11 6,-11 6,0C6,10 -6,10 -6,0Z', inks.main)}")
        parts.append(inks.stroke("M-2.6,-3Q-3,1 -1.6,4", inks.line, 1.2) + "</g>")
    return "".join(parts)


def fern(inks: Inks) -> str:
    """A frond: leaflets along a bow, longest in the lower third."""
    parts = [inks.stroke("M-10,49C-2,20 6,-10 4,-47", inks.main, 2.0)]
    count = 12
    for step in range(count):
        share = (step + 0.6) / count
        x = -10 + 24 * share - 10 * share**2.2
        y = 49 - 96 * share
        size = math.sin(math.pi * min(1.0, 0.24 + 0.76 * share)) ** 0.8 * 29 + 2.5
        for side in (-1, 1):
            turn = side * (68 - 26 * share) + 9 * (1 - share)
            colour = inks.main if side < 0 else inks.leaf
            parts.append(inks.paint(blade(x, y, turn, size, size * 0.2 + 2.2, belly=0.35), colour, edge=1.1))
    parts.append(inks.paint(blade(4, -44, 0, 7, 4), inks.main))
    return "".join(parts)


def palm(inks: Inks) -> str:
    """A fan palm: slender leaflets from one foot."""
    parts = [inks.stroke("M0,48Q4,34 0,16", inks.leaf, 3)]
    for step in range(11):
        turn = -125 + step * 25
        length = 58 - abs(turn) * 0.16
        colour = inks.main if step % 2 == 0 else inks.leaf
        parts.append(inks.paint(blade(0, 16, turn, length, 11.5, belly=0.4), colour))
        x, y = around(turn, length * 0.78, 0, 16)
        parts.append(inks.stroke(f"M0,16L{number(x)},{number(y)}", inks.line, 1.0))
    return "".join(parts)


def monstera(inks: Inks) -> str:
    """A split leaf: half an outline of fingers, and its mirror image."""
    half = [
        (0.0, -48.0),
        (10, -40),
        (22, -36),
        (19, -28),
        (8, -17),
        (22, -23),
        (36, -21),
        (34, -12),
        (12, -3),
    ]
    half += [(30, -8), (45, -3), (42, 6), (14, 8), (32, 9), (44, 16), (38, 25), (15, 17), (27, 26), (30, 34)]
    half += [(22, 37), (10, 32), (0.0, 21)]
    corners = half + [(-x, y) for x, y in reversed(half[1:-1])]
    parts = [
        inks.stroke("M0,50Q2,36 0,20", inks.leaf, 3.2),
        inks.paint(smooth(corners, tension=0.75), inks.main),
    ]
    parts.append(inks.stroke("M0,22C1,0 0,-20 0,-42", inks.line, 1.8))
    for x, y, foot in ((15, -30, -20), (28, -18, -6), (35, -1, 6), (34, 17, 15)):
        for side in (-1, 1):
            parts.append(
                inks.stroke(f"M0,{foot}Q{side * x * 0.5},{(foot + y) / 2 + 2} {side * x},{y}", inks.line, 1.2)
            )
    return "".join(parts)


def oak(inks: Inks) -> str:
    """An oak leaf with round lobes."""
    half = [
        (0.0, -46.0),
        (9, -43),
        (12, -34),
        (8, -27),
        (17, -29),
        (23, -21),
        (18, -12),
        (11, -8),
        (22, -9),
        (29, 0),
    ]
    half += [(23, 9), (12, 10), (19, 14), (21, 22), (14, 28), (6, 27), (3, 33), (0.0, 36)]
    corners = half + [(-x, y) for x, y in reversed(half[1:-1])]
    parts = [inks.stroke("M1,50L0,30", inks.second, 2.6), inks.paint(smooth(corners), inks.main)]
    parts.append(inks.stroke("M0,36L0,-36", inks.line, 1.9))
    for x, y, foot in ((9, -34, -24), (17, -19, -8), (21, 1, 10), (14, 21, 25)):
        for side in (-1, 1):
            parts.append(inks.stroke(f"M0,{foot}L{side * x},{y}", inks.line, 1.4))
    return "".join(parts)


def acorn(inks: Inks) -> str:
    nut = "M-21,-4C-22,24 -8,38 0,46C8,38 22,24 21,-4Z"
    cap = "M-27,-3C-29,-26 -12,-33 0,-33C12,-33 29,-26 27,-3C14,1 -14,1 -27,-3Z"
    parts = [
        inks.stroke("M0,-32Q2,-42 9,-46", inks.second, 3.4),
        inks.paint(nut, inks.main),
        inks.paint(cap, inks.second),
    ]
    parts.append(inks.stroke("M-12,6Q-12,20 -5,30", inks.line, 1.8))
    for row, y in enumerate((-24, -16, -8)):
        for x in range(-18 + row * 3 % 6, 22, 9):
            parts.append(inks.stroke(f"M{x - 3},{y}Q{x},{y + 4} {x + 3},{y}", inks.line, 1.2))
    return "".join(parts)


def cactus(inks: Inks) -> str:
    trunk = "M-12,46V-24C-12,-44 12,-44 12,-24V46Z"
    left = "M-12,22H-20C-32,22 -35,14 -35,4V-8C-35,-17 -23,-17 -23,-8V2C-23,8 -20,9 -12,9Z"
    right = "M12,12H19C31,12 35,3 35,-6V-18C35,-27 23,-27 23,-18V-8C23,-2 20,-1 12,-1Z"
    parts = [inks.paint(path, inks.main) for path in (left, right, trunk)]
    for x in (-5, 5):
        parts.append(inks.stroke(f"M{x},-28V40", inks.line, 1.3))
    for x, y in ((0, -40), (-29, -16), (29, -26)):
        for turn in (-60, -20, 20, 60):
            parts.append(inks.paint(blade(x, y + 2, turn, 10, 6), inks.accent, edge=1))
    parts.append(inks.stroke("M-24,47H24", inks.second, 3))
    return "".join(parts)


def wheat(inks: Inks) -> str:
    parts = [inks.stroke("M-7,50Q2,10 0,-34", inks.leaf, 2)]
    for step in range(6):
        y = 8 - step * 9
        for side in (-1, 1):
            parts.append(inks.stroke(f"M{side * 4},{y - 10}L{side * 13},{y - 28}", inks.second, 1))
            parts.append(inks.paint(blade(0.4 * step - 1, y, side * 28, 17, 10), inks.main))
    parts.append(inks.paint(blade(0, -42, 0, 14, 8), inks.main))
    return moved("".join(parts), 0, 5, 0, 0.86)


def clover(inks: Inks) -> str:
    parts = [inks.stroke("M0,0Q4,28 -6,46", inks.leaf, 2.6)]
    heart = "M0,2C-8,-8 -25,-14 -21,-29C-18,-40 -4,-39 0,-29C4,-39 18,-40 21,-29C25,-14 8,-8 0,2Z"
    for turn in (-100, 0, 100):
        parts.append(
            moved(inks.paint(heart, inks.main) + inks.stroke("M0,-2V-22", inks.line, 1.4), angle=turn)
        )
    return "".join(parts)


def seaweed(inks: Inks) -> str:
    parts = []
    for foot, sway, top, colour in (
        (-20, 6, -24, inks.second),
        (20, -6, -32, inks.leaf),
        (0, 9, -48, inks.main),
    ):
        left = [(foot - 5.0, 48.0), (foot - 6 + sway, 24), (foot - 6 - sway, 0), (foot - 3 + sway * 0.6, -22)]
        right = [
            (foot + 3 + sway * 0.6, -22.0),
            (foot + 6 - sway, 0),
            (foot + 6 + sway, 24),
            (foot + 5.0, 48.0),
        ]
        parts.append(inks.paint(smooth([*left, (foot, top), *right], tension=1.1), colour))
    return "".join(parts)


def pine(inks: Inks) -> str:
    parts = [inks.paint("M-4,48V32H4V48Z", inks.second)]
    for y, width in ((36, 30), (18, 25), (1, 19), (-15, 13)):
        tier = f"M0,{y - 34}C{width * 0.3:.1f},{y - 18} {width * 0.6:.1f},{y - 6} {width},{y}"
        tier += f"Q{width * 0.5:.1f},{y - 4} 0,{y - 3}Q{-width * 0.5:.1f},{y - 4} {-width},{y}"
        tier += f"C{-width * 0.6:.1f},{y - 6} {-width * 0.3:.1f},{y - 18} 0,{y - 34}Z"
        parts.append(inks.paint(tier, inks.main))
        parts.append(
            inks.stroke(f"M{-width * 0.62:.1f},{y - 5}Q0,{y - 8} {width * 0.62:.1f},{y - 5}", inks.line, 1.3)
        )
    return "".join(parts)


def mushroom(inks: Inks) -> str:
    stalk = "M-8,0C-6,18 -13,34 -15,44C-6,49 6,49 15,44C13,34 6,18 8,0Z"
    cap = "M-42,2C-44,-26 -22,-46 0,-46C22,-46 44,-26 42,2C30,9 -30,9 -42,2Z"
    parts = [inks.paint(stalk, inks.second), inks.paint(cap, inks.main)]
    parts.append(inks.paint("M-36,4C-20,11 20,11 36,4C20,-1 -20,-1 -36,4Z", mix(inks.main, inks.second, 0.5)))
    for x, y, radius in (
        (-22, -14, 6),
        (2, -31, 7),
        (21, -17, 5.4),
        (-5, -10, 4),
        (-30, -3, 3),
        (32, -5, 2.6),
        (-16, -32, 3.2),
    ):
        parts.append(inks.disc(x, y, radius, inks.line))
    for x in (-6, 0, 6):
        parts.append(inks.stroke(f"M{x * 0.7},14Q{x},26 {x * 1.4},38", inks.line, 1.2))
    for x, turn in ((-17, -24), (17, 22), (-22, -50)):
        parts.append(inks.paint(blade(x, 48, turn, 18, 7), inks.leaf))
    return "".join(parts)


def mountain(inks: Inks) -> str:
    parts = [inks.disc(20, -26, 12, inks.accent)]
    parts.append(inks.paint(polygon([(-8, 36), (22, -16), (50, 36)]), inks.second))
    parts.append(inks.paint(polygon([(22, -16), (13, 0), (19, -3), (23, 4), (28, -3), (32, 2)]), inks.line))
    parts.append(inks.paint(polygon([(-50, 36), (-14, -36), (26, 36)]), inks.main))
    snow = [(-14, -36), (-27, -10), (-20, -14), (-14, -4), (-8, -13), (0.5, -8)]
    parts.append(inks.paint(polygon(snow), inks.line))
    for x in (-38, -20, 2, 30):
        parts.append(inks.paint(polygon([(x - 6, 38), (x, 20), (x + 6, 38)]), inks.leaf))
    parts.append(inks.stroke("M-48,39H48", inks.leaf, 2.4))
    return "".join(parts)


DRAWINGS = {
    "leaf": leaf,
    "sprig": sprig,
    "willow": willow,
    "eucalyptus": eucalyptus,
    "olive_branch": olive_branch,
    "fern": fern,
    "palm": palm,
    "monstera": monstera,
    "oak": oak,
    "acorn": acorn,
    "cactus": cactus,
    "wheat": wheat,
    "clover": clover,
    "seaweed": seaweed,
    "pine": pine,
    "mushroom": mushroom,
    "mountain": mountain,
}
