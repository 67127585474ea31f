"""Drawings of small, old and odd animals, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, Point, around, blade, dark, ellipse, moved, smooth


def snail(inks: Inks) -> str:
    foot = "M-44,30C-46,10 -38,-6 -32,-6C-24,-4 -28,12 -22,18C-6,24 24,16 46,32C30,40 -30,40 -44,30Z"
    parts = [inks.stroke("M-38,-4L-44,-20M-32,-5L-30,-20", inks.second, 2.4), inks.paint(foot, inks.second)]
    parts.append(
        inks.disc(-44, -21, 2.6, inks.second)
        + inks.disc(-30, -21, 2.6, inks.second)
        + inks.disc(8, -2, 26, inks.main)
    )
    spiral = smooth([around(turn, 4 + turn / 33, 8, -2) for turn in range(0, 640, 40)], closed=False)
    return "".join([*parts, inks.stroke(spiral, inks.accent, 3.4)])


def frog(inks: Inks) -> str:
    side = inks.paint("M16,6C36,-2 50,14 42,30C48,34 48,40 40,40L20,40C14,30 12,16 16,6Z", inks.main)
    side += (
        inks.disc(14, -24, 10, inks.main)
        + inks.disc(14, -25, 6, mix(inks.ground, "#ffffff", 0.6))
        + inks.disc(14, -25, 3.2, dark(inks))
    )
    body = (
        "M-30,-8C-30,-22 -16,-26 0,-26C16,-26 30,-22 30,-8"
        "C30,4 24,10 22,20C20,34 12,40 0,40C-12,40 -20,34 -22,20C-24,10 -30,4 -30,-8Z"
    )
    parts = [
        side,
        moved(side, flip=True),
        inks.paint(body, inks.main),
        inks.paint(ellipse(0, 22, 14, 15), inks.accent),
    ]
    return "".join(
        [
            *parts,
            inks.stroke("M-20,-6Q0,10 20,-6", dark(inks), 2.2),
            inks.disc(-23, 2, 3, inks.second),
            inks.disc(23, 2, 3, inks.second),
        ]
    )


def dinosaur(inks: Inks) -> str:
    """A long-necked dinosaur with plates along its back."""
    path: list[Point] = [
        (-34, -40), (-24, -42), (-18, -34), (-16, -20), (-8, -6), (8, -10), (24, -4), (34, 10), (48, 30),
        (30, 22), (26, 38), (16, 38), (14, 24), (-2, 24), (-4, 38), (-14, 38), (-16, 18), (-26, -4),
        (-28, -26), (-42, -30),
    ]  # fmt: skip
    plates = ((-14, -30, 62), (-11, -16, 50), (0, -9, 10), (12, -11, 8), (24, -6, 28), (33, 6, 44))
    parts = [inks.paint(blade(x, y + 4, turn, 16, 12), inks.second) for x, y, turn in plates]
    parts.append(inks.paint(smooth(path, tension=0.8), inks.main) + inks.disc(-30, -35, 2.1, dark(inks)))
    return "".join(
        [
            *parts,
            *(
                inks.disc(x, y, size, inks.accent)
                for x, y, size in ((0, 6, 4), (12, 3, 3), (20, 12, 3.4), (-8, 2, 2.4))
            ),
        ]
    )


def octopus(inks: Inks) -> str:
    arms = "".join(
        inks.stroke(
            f"M{x * 0.4:.0f},6C{x * 0.7:.0f},20 {x * 1.1:.0f},16 {x},{y}"
            f"C{x * 0.96:.0f},{y + 8} {x * 0.84:.0f},{y + 8} {x * 0.8:.0f},{y}",
            inks.main,
            6.5,
        )
        for x, y in ((-43, 20), (-31, 36), (-14, 40), (14, 40), (31, 36), (43, 20))
    )
    parts = [
        arms,
        inks.paint("M-24,10C-34,-12 -26,-46 0,-46C26,-46 34,-12 24,10C14,18 -14,18 -24,10Z", inks.main),
    ]
    parts += [
        inks.disc(x, -6, 5.6, mix(inks.ground, "#ffffff", 0.6)) + inks.disc(x, -5, 2.8, dark(inks))
        for x in (-9, 9)
    ]
    parts += [
        inks.disc(x, y, size, inks.accent)
        for x, y, size in ((-12, -30, 3.4), (4, -36, 3), (14, -26, 4), (-2, -24, 2))
    ]
    return "".join([*parts, inks.stroke("M-6,6Q0,11 6,6", dark(inks), 1.8)])


def seahorse(inks: Inks) -> str:
    body = "M-22,-30C-14,-32 -12,-44 2,-44C16,-44 22,-30 16,-20C24,-8 22,12 8,20C0,26 2,36 10,36C16,36 16,28 11,28"
    body += "C14,22 22,28 20,36C16,48 -6,46 -8,30C-9,20 -2,14 0,6C-4,-2 -4,-12 0,-18C-8,-20 -16,-24 -24,-24Z"
    fin = inks.paint("M18,-8C30,-10 32,4 20,8Z", inks.second)
    spikes = "".join(
        inks.paint(blade(x, y, turn, 9, 7), inks.second)
        for x, y, turn in ((0, -43, -10), (8, -42, 20), (15, -36, 50))
    )
    lines = inks.stroke("M2,-12L18,-14M0,-4L20,-4M2,4L18,6M0,12L12,15M-4,20L4,22", inks.accent, 2)
    return spikes + fin + inks.paint(body, inks.main) + lines + inks.disc(2, -33, 2.7, dark(inks))


def bat(inks: Inks) -> str:
    wing = inks.paint(
        "M4,-8C14,-24 34,-30 49,-22C44,-14 44,-4 46,8C38,2 32,4 28,14C24,6 18,6 12,18C10,10 6,6 2,8Z",
        inks.main,
    )
    wing += inks.stroke("M8,-6L44,-20M10,-2L28,10", inks.line, 1.3)
    ear = inks.paint("M3,-20L12,-34L13,-16Z", inks.main)
    parts = [
        wing,
        moved(wing, flip=True),
        ear,
        moved(ear, flip=True),
        inks.paint(ellipse(0, 4, 10, 18), inks.main),
        inks.disc(0, -14, 12, inks.main),
    ]
    return "".join(
        [
            *parts,
            inks.disc(-4.5, -15, 2.4, inks.accent),
            inks.disc(4.5, -15, 2.4, inks.accent),
            inks.paint("M-4,-8L-2,-3L0,-8ZM0,-8L2,-3L4,-8Z", inks.ground),
        ]
    )


DRAWINGS = {
    one.__name__: one
    for one in (
        snail, frog, dinosaur, octopus, seahorse, bat,
    )
}  # fmt: skip
UPRIGHT = frozenset(DRAWINGS) - {"bat", "seahorse"}
