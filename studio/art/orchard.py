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


def pear(inks: Inks) -> str:
    shape = [
        (0.0, -30.0),
        (9, -26),
        (13, -12),
        (24, 6),
        (29, 24),
        (18, 41),
        (0, 45),
        (-18, 41),
        (-29, 24),
        (-24, 6),
        (-13, -12),
        (-9, -26),
    ]
    parts = [
        inks.stroke("M0,-28Q-1,-40 5,-48", inks.second, 2.8),
        inks.paint(blade(1, -36, 72, 32, 15), inks.leaf),
    ]
    parts.append(
        inks.paint(smooth(shape), inks.main) + inks.stroke("M-18,26C-20,14 -14,4 -9,-4", inks.line, 2.2)
    )
    parts += [inks.disc(x, y, 1.1, inks.line) for x, y in ((8, 12), (14, 24), (4, 30), (-4, 18), (10, 36))]
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


def fig(inks: Inks) -> str:
    """A fruit cut in half: skin, flesh, seeds."""
    skin = [
        (0.0, -44.0),
        (6, -36),
        (10, -22),
        (26, -4),
        (32, 18),
        (20, 38),
        (0, 44),
        (-20, 38),
        (-32, 18),
        (-26, -4),
        (-10, -22),
        (-6, -36),
    ]
    inner = [(x * 0.8, 6 + (y - 6) * 0.78) for x, y in skin[1:]]
    core = [(x * 0.6, 12 + (y - 12) * 0.58) for x, y in skin[2:-1]]
    parts = [
        inks.paint(smooth(skin), inks.main),
        inks.paint(smooth(inner), mix(inks.ground, "#fff6ea", 0.5)),
        inks.paint(smooth(core), inks.accent),
    ]
    for ring, count in ((4, 4), (9, 8), (14, 11)):
        parts += [
            inks.disc(*around(step * 360 / count + ring * 9, ring, 0, 15), 1.4, inks.second)
            for step in range(count)
        ]
    return "".join(parts)


def pineapple(inks: Inks) -> str:
    parts = [
        inks.paint(blade(0, -12, turn, 38 - abs(turn) * 0.18, 11), inks.leaf)
        for turn in (-70, 70, -46, 46, -22, 22, 0)
    ]
    parts.append(inks.paint(ellipse(0, 17, 23, 31), inks.main))
    for x in (-24, -12, 0, 12):
        parts.append(
            inks.stroke(f"M{x - 4},{-6 if abs(x) < 16 else 4}L{x + 18},{40 if x < 4 else 33}", inks.line, 1.5)
        )
        parts.append(
            inks.stroke(
                f"M{-x + 4},{-6 if abs(x) < 16 else 4}L{-x - 18},{40 if x < 4 else 33}", inks.line, 1.5
            )
        )
    return "".join(parts)


def watermelon(inks: Inks) -> str:
    parts = [
        inks.paint("M-46,-16A46,46 0 0 0 46,-16Z", inks.leaf),
        inks.paint("M-41,-16A41,41 0 0 0 41,-16Z", mix(inks.ground, "#ffffff", 0.4)),
    ]
    parts.append(inks.paint("M-37,-16A37,37 0 0 0 37,-16Z", inks.main))
    seed = mix(inks.second, "#17141a", 0.8)
    for x, y, turn in (
        (-22, -8, 20),
        (-8, -8, 8),
        (8, -8, -8),
        (22, -8, -20),
        (-14, 4, 14),
        (0, 6, 0),
        (14, 4, -14),
    ):
        parts.append(inks.paint(blade(x, y + 4, turn, 7, 4.6, belly=0.6), seed, edge=0.8))
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
    "pear": pear,
    "berries": berries,
    "fig": fig,
    "pineapple": pineapple,
    "watermelon": watermelon,
    "pumpkin": pumpkin,
}
