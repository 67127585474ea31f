"""Drawings of what is grown and eaten, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, around, blade, ellipse, moved, petal, smooth


def chili(inks: Inks) -> str:
    shape = "M-14,-26C2,-32 14,-24 14,-8C14,14 0,36 -26,46C-14,30 -12,16 -16,2C-20,-10 -22,-20 -14,-26Z"
    parts = [
        inks.paint(shape, inks.main),
        inks.stroke("M6,-14C8,4 2,20 -8,32", mix(inks.main, "#ffffff", 0.45), 2.6),
    ]
    return (
        "".join(parts)
        + inks.stroke("M-2,-28C-2,-38 6,-44 14,-46", inks.leaf, 4.4)
        + inks.paint("M-20,-22C-14,-34 8,-34 14,-20C6,-24 2,-18 -4,-22C-10,-18 -14,-24 -20,-22Z", inks.leaf)
    )


def carrot(inks: Inks) -> str:
    parts = [inks.paint(blade(0, -16, turn, 32, 10), inks.leaf) for turn in (-38, -14, 14, 38)]
    parts.append(inks.paint("M-17,-14C-14,-22 14,-22 17,-14C17,8 6,36 0,49C-6,36 -17,8 -17,-14Z", inks.main))
    return "".join([*parts, inks.stroke("M-15,-4H-4M2,6H13M-9,16H-1M0,28H6", inks.line, 2)])


def ice_cream(inks: Inks) -> str:
    cone = inks.paint("M-20,4H20L0,49Z", inks.second) + inks.stroke(
        "M-14,16L8,30M-18,6L4,40M14,16L-8,30M18,6L-4,40", mix(inks.second, inks.ground, 0.5), 1.5
    )
    scoop = (
        "M-26,4C-30,-26 -14,-40 0,-40C14,-40 30,-26 26,4"
        "C22,12 16,4 12,6C8,14 2,6 -2,6C-8,14 -12,4 -16,6C-20,10 -24,10 -26,4Z"
    )
    bits = "".join(
        inks.stroke(f"M{x},{y}l4,-3", inks.accent, 2.4)
        for x, y in ((-14, -14), (-4, -26), (8, -20), (12, -8), (-2, -8), (-16, -2))
    )
    return cone + inks.paint(scoop, inks.main) + bits + inks.disc(2, -43, 6, inks.accent)


def cupcake(inks: Inks) -> str:
    case = inks.paint("M-26,8H26L19,44H-19Z", inks.second) + inks.stroke(
        "M-15,10L-11,43M-5,10L-4,43M5,10L4,43M15,10L11,43", inks.line, 1.6
    )
    cream = (
        "M-32,10C-36,-2 -26,-8 -22,-8C-24,-20 -12,-22 -12,-22"
        "C-10,-34 10,-34 12,-22C12,-22 24,-20 22,-8C26,-8 36,-2 32,10Z"
    )
    return (
        case
        + inks.paint(cream, inks.main)
        + inks.stroke("M-22,-6C-8,0 8,0 20,-8M-12,-20C-4,-16 6,-16 12,-22", inks.line, 1.8)
        + inks.disc(0, -35, 7, inks.accent)
    )


def ginkgo(inks: Inks) -> str:
    left = "M0,16C-14,10 -40,0 -46,-16C-38,-30 -18,-42 -2,-36C-1,-22 0,-2 0,16Z"
    half = inks.paint(left, inks.main) + "".join(
        inks.stroke(f"M0,14C{x * 0.3:.0f},4 {x * 0.7:.0f},{y * 0.5:.0f} {x},{y}", inks.line, 1.1)
        for x, y in ((-38, -16), (-28, -26), (-17, -32), (-8, -32))
    )
    return inks.stroke("M0,14C2,28 6,38 12,48", inks.second, 3) + half + moved(half, flip=True)


def hydrangea(inks: Inks) -> str:
    parts = [inks.paint(blade(0, 10, turn, 46, 26), inks.leaf) for turn in (110, 180, 250)]
    spots = [
        (0.0, -6.0),
        *(around(t, 17, 0, -6) for t in range(0, 360, 60)),
        *(around(t, 31, 0, -6) for t in range(15, 375, 30)),
    ]
    for place, (x, y) in enumerate(reversed(spots)):
        ink = (inks.main, mix(inks.main, inks.ground, 0.25), mix(inks.main, inks.second, 0.3))[place % 3]
        parts += [inks.paint(petal(turn + place * 17, 10, 9, x=x, y=y), ink) for turn in range(0, 360, 90)]
        parts.append(inks.disc(x, y, 1.9, inks.accent))
    return "".join(parts)


def bamboo(inks: Inks) -> str:
    canes = "".join(
        inks.paint(f"M{x - 5},{y}H{x + 5}L{x + 4.4},{y + 22}H{x - 4.4}Z", inks.main)
        + inks.stroke(f"M{x - 6},{y}H{x + 6}", inks.second, 2)
        for x in (-12, 12)
        for y in (-47 + (x > 0) * 8, -23 + (x > 0) * 8, 1 + (x > 0) * 8, 25 - (x > 0) * 2)
    )
    leaves = "".join(
        inks.paint(blade(x, y, turn, 32, 9), inks.leaf)
        for x, y, turn in (
            (-16, -23, -60),
            (-16, -22, -95),
            (16, -15, 60),
            (16, -14, 100),
            (16, 10, 70),
            (-16, 2, -70),
            (0, -34, 20),
        )
    )
    return canes + leaves


def grapes(inks: Inks) -> str:
    rows = ((-18, 5), (-5, 4), (8, 3), (21, 2), (34, 1))
    parts = [
        inks.stroke("M0,-22V-44", inks.leaf, 3.4),
        inks.paint(
            smooth([around(t, 24 if n % 2 else 14, 14, -34) for n, t in enumerate(range(0, 360, 36))]),
            inks.leaf,
        ),
    ]
    for y, count in rows:
        for place in range(count):
            x = (place - (count - 1) / 2) * 15
            parts.append(
                inks.disc(x, y, 8.6, inks.main if (place + count) % 3 else inks.second)
                + inks.disc(x - 2.6, y - 2.8, 1.9, mix(inks.main, "#ffffff", 0.6))
            )
    return "".join(parts)


def pomegranate(inks: Inks) -> str:
    parts = [
        inks.paint("M-10,-30L-14,-46L-4,-38L0,-48L4,-38L14,-46L10,-30Z", inks.second),
        inks.disc(0, 6, 38, inks.main),
    ]
    parts.append(
        inks.paint(
            "M-18,-10C-8,-22 16,-20 22,-4C28,12 16,32 0,34C-18,32 -26,8 -18,-10Z",
            mix(inks.main, "#fff4e6", 0.7),
        )
    )
    for x, y in (
        (-9, -6),
        (2, -10),
        (12, -4),
        (-12, 6),
        (-2, 2),
        (8, 7),
        (16, 10),
        (-8, 17),
        (3, 17),
        (11, 20),
        (-1, 26),
    ):
        parts.append(inks.paint(ellipse(x, y, 3.7, 4.7), mix(inks.main, "#5a0f1c", 0.45)))
    return "".join(parts)


def thistle(inks: Inks) -> str:
    parts = [
        inks.stroke("M0,10V49", inks.leaf, 3.4),
        inks.paint(blade(0, 44, -48, 32, 12), inks.leaf),
        inks.paint(blade(0, 44, 48, 32, 12), inks.leaf),
    ]
    parts += [
        inks.paint(blade(0, -6, turn, 40, 7), inks.main if turn % 24 else inks.second)
        for turn in range(-60, 61, 12)
    ]
    parts.append(inks.paint("M-17,-4C-20,10 -10,20 0,20C10,20 20,10 17,-4C8,-10 -8,-10 -17,-4Z", inks.leaf))
    return "".join([*parts, inks.stroke("M-14,0L-6,14M-6,-4L4,16M6,-4L-4,16M14,0L6,14", inks.line, 1.4)])


DRAWINGS = {
    one.__name__: one
    for one in (
        chili, carrot, ice_cream, cupcake, ginkgo, hydrangea, bamboo, grapes, pomegranate, thistle,
    )
}  # fmt: skip
UPRIGHT = frozenset(DRAWINGS) - {"chili", "carrot", "ginkgo", "hydrangea"}
