"""Drawings of fruit, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, around, blade, ellipse, moved, petal, smooth


def lemon(inks: Inks) -> str:
    shape = [
        (0.0, -34.0),
        (7, -28),
        (20, -20),
        (27, -2),
        (24, 16),
        (12, 29),
        (6, 33),
        (0, 41),
        (-6, 33),
        (-12, 29),
    ]
    shape += [(-24, 16), (-27, -2), (-20, -20), (-7, -28)]
    parts = [inks.stroke("M0,-32Q2,-42 8,-46", inks.leaf, 2.6)]
    parts += [
        inks.paint(blade(3, -38, turn, length, 17), inks.leaf) for turn, length in ((78, 40), (-62, 36))
    ]
    parts += [
        inks.stroke("M3,-38L{:.1f},{:.1f}".format(*around(turn, 30, 3, -38)), inks.line, 1.2)
        for turn in (78, -62)
    ]
    parts.append(moved(inks.paint(smooth(shape), inks.main), 0, 2, 12))
    shade = mix(inks.main, inks.accent, 0.3)
    parts.append(inks.stroke("M17,-8C21,6 17,18 7,27", shade if inks.style != "ink" else inks.main, 3))
    parts += [
        inks.disc(x, y, 1.2, shade) for x, y in ((-12, -8), (-4, 4), (-14, 8), (-6, 18), (4, -12), (6, 12))
    ]
    return "".join(parts)


def citrus(inks: Inks) -> str:
    """A slice, and a leaf behind it."""
    parts = [inks.paint(blade(0, 0, turn, 50, 22), inks.leaf) for turn in (42, 74)]
    parts.append(inks.disc(0, 0, 40, inks.main) + inks.disc(0, 0, 35, mix(inks.ground, "#fffdf4", 0.6)))
    for step in range(9):
        parts.append(inks.paint(petal(step * 40, 32, 23, foot=4), mix(inks.main, inks.accent, 0.12)))
    for step in range(9):
        x, y = around(step * 40, 19)
        parts.append(inks.paint(blade(x, y, step * 40 + 180, 6, 3), mix(inks.ground, "#fffdf4", 0.6)))
    return "".join(parts)


def strawberry(inks: Inks) -> str:
    parts = [
        inks.paint(
            "M0,46C-22,34 -40,2 -30,-16C-20,-30 -6,-24 0,-20C6,-24 20,-30 30,-16C40,2 22,34 0,46Z", inks.main
        )
    ]
    for row, (y, half) in enumerate(((-8, 22), (5, 21), (18, 14), (31, 6))):
        for x in range(-half, half + 1, 14 if half > 6 else 12):
            parts.append(inks.paint(blade(x + row % 2 * 3, y, 0, 6.5, 4), inks.line, edge=1))
    parts += [inks.paint(blade(0, -22, turn, 25, 12), inks.leaf) for turn in (-105, -65, -25, 25, 65, 105)]
    parts.append(inks.stroke("M0,-22Q0,-38 7,-46", inks.leaf, 2.8))
    return "".join(parts)


def cherries(inks: Inks) -> str:
    parts = [inks.stroke("M8,-42C0,-22 -16,-10 -20,10M8,-42C12,-20 18,-8 20,14", inks.leaf, 2.3)]
    parts.append(
        inks.paint(blade(8, -42, 108, 38, 19), inks.leaf) + inks.stroke("M8,-42L36,-34", inks.line, 1.2)
    )
    for x, y in ((-21, 24), (20, 29)):
        parts.append(inks.disc(x, y, 18, inks.main))
        parts.append(
            inks.stroke(f"M{x - 9},{y + 1}C{x - 9},{y - 6} {x - 4},{y - 10} {x},{y - 10}", inks.line, 2.2)
        )
    return "".join(parts)


def apple(inks: Inks) -> str:
    shape = "M0,-20C-14,-32 -40,-24 -38,6C-36,32 -16,48 0,41C16,48 36,32 38,6C40,-24 14,-32 0,-20Z"
    parts = [
        inks.stroke("M0,-19Q-1,-34 6,-44", inks.second, 3),
        inks.paint(blade(2, -30, 66, 32, 17), inks.leaf),
    ]
    parts.append(inks.paint(shape, inks.main) + inks.stroke("M-26,4C-26,-8 -20,-14 -12,-16", inks.line, 2.6))
    return "".join(parts)


def berries(inks: Inks) -> str:
    parts = [
        inks.stroke("M-6,48C2,24 4,4 0,-20M1,10C10,2 18,0 22,-6M0,24C-10,14 -18,14 -22,10", inks.leaf, 2)
    ]
    parts += [
        inks.paint(blade(x, y, turn, 26, 13), inks.leaf)
        for x, y, turn in ((-2, 32, 62), (2, 4, -58), (-3, 38, -60))
    ]
    for x, y in ((0, -30), (-12, -24), (11, -22), (24, -12), (-25, 5), (-14, 8), (31, -3), (0, -42)):
        parts.append(inks.disc(x, y, 8, inks.main) + inks.disc(x - 2.4, y - 2.6, 1.7, inks.line))
    return "".join(parts)


def pumpkin(inks: Inks) -> str:
    dark = mix(inks.main, "#40180a", 0.22)
    parts = [inks.paint("M-4,-24C-4,-36 2,-44 12,-46L15,-40C8,-38 6,-32 6,-24Z", inks.leaf)]
    for x, width, colour in (
        (-27, 18, dark),
        (27, 18, dark),
        (-15, 18, inks.main),
        (15, 18, inks.main),
        (0, 15, mix(inks.main, inks.ground, 0.15)),
    ):
        parts.append(
            inks.paint(ellipse(x, 10, width, 33), colour) + inks.stroke(ellipse(x, 10, width, 33), dark, 1.2)
        )
    parts.append(inks.stroke("M6,-26C18,-36 30,-32 32,-24C34,-18 27,-16 26,-21", inks.leaf, 2))
    return "".join(parts)


DRAWINGS = {
    "lemon": lemon,
    "citrus": citrus,
    "strawberry": strawberry,
    "cherries": cherries,
    "apple": apple,
    "berries": berries,
    "pumpkin": pumpkin,
}
