"""Drawings of larger animals, whole or their faces, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, Point, around, blade, dark, ellipse, moved, petal, smooth


def elephant(inks: Inks) -> str:
    """An elephant with a rug on its back."""
    body: list[Point] = [
        (-6, -26), (14, -31), (34, -26), (44, -10), (44, 12), (42, 36), (30, 36), (29, 18), (14, 18),
        (12, 36), (-1, 36), (-3, 14), (-10, 6),
    ]  # fmt: skip
    trunk = "M-30,-6C-40,4 -42,22 -36,34C-33,40 -25,38 -27,32C-32,22 -24,10 -18,4Z"
    parts = [
        inks.stroke("M43,-10Q50,4 46,20", inks.main, 2.6),
        inks.paint(smooth(body, tension=0.75), inks.main),
    ]
    parts.append(inks.paint(trunk, inks.main) + inks.disc(-18, -14, 19, inks.main))
    parts.append(inks.paint("M8,-31C20,-34 30,-30 36,-26L35,-2Q22,4 9,-2Z", inks.second))
    parts.append(inks.stroke("M9,-7Q22,-1 35,-7", inks.accent, 2.4))
    parts += [inks.disc(x, y, 2.3, inks.accent) for x, y in ((15, -18), (22, -20), (29, -18))]
    ear = "M-12,-30C4,-34 10,-18 4,-4C0,6 -10,4 -13,-6C-16,-14 -18,-24 -12,-30Z"
    parts.append(inks.paint(ear, mix(inks.main, inks.line, 0.3)) + inks.disc(-25, -16, 2, dark(inks)))
    return "".join([*parts, inks.paint("M-27,0C-36,2 -42,0 -46,-6C-42,8 -32,10 -26,6Z", inks.accent)])


def lion(inks: Inks) -> str:
    mane = [inks.paint(petal(turn, 48, 19, foot=20), inks.second) for turn in range(0, 360, 24)]
    mane += [inks.paint(petal(turn, 40, 16, foot=18), inks.accent) for turn in range(12, 372, 24)]
    ears = "".join(inks.disc(x, -25, 8, inks.main) + inks.disc(x, -25, 4, inks.second) for x in (-22, 22))
    return "".join(mane) + ears + inks.disc(0, 0, 28, inks.main) + _muzzle(inks)


def _muzzle(inks: Inks) -> str:
    deep = dark(inks)
    light = mix(inks.main, "#fffaf0", 0.65)
    parts = [inks.paint(ellipse(-7, 12, 9, 7.5), light), inks.paint(ellipse(7, 12, 9, 7.5), light)]
    parts.append(inks.paint("M-6,3H6Q4,9 0,10Q-4,9 -6,3Z", deep) + inks.stroke("M0,10V15", deep, 1.6))
    parts += [inks.disc(x, -5, 3.1, deep) for x in (-11, 11)]
    return "".join(parts)


def tiger(inks: Inks) -> str:
    deep = dark(inks)
    head = "M-38,-6C-38,-32 -20,-38 0,-38C20,-38 38,-32 38,-6C40,16 24,38 0,38C-24,38 -40,16 -38,-6Z"
    parts = [inks.disc(x, -32, 11, inks.main) + inks.disc(x, -32, 5, inks.accent) for x in (-27, 27)]
    parts.append(inks.paint(head, inks.main))
    side = "".join(
        inks.paint(path, deep)
        for path in (
            "M39,-8L22,-4L38,0Z",
            "M39,5L24,8L36,13Z",
            "M33,19L20,20L28,26Z",
            "M8,-38L12,-22L16,-37Z",
        )
    )
    parts.append(side + moved(side, flip=True) + inks.paint("M-3,-38L0,-20L3,-38Z", deep))
    return "".join([*parts, moved(_muzzle(inks), y=6, scale=1.15)])


def unicorn(inks: Inks) -> str:
    """A horse's head with a horn."""
    horn = inks.paint("M-6,-30L-24,-50L2,-36Z", inks.accent) + inks.stroke("M-16,-40L-10,-44", inks.line, 1.4)
    return moved(horn, x=2, y=2) + horse(inks)


def zebra(inks: Inks) -> str:
    """A zebra's head and neck."""
    deep = dark(inks) if inks.line == inks.ground else inks.line
    shape = "M-6,-34C4,-40 16,-34 24,-22C34,-4 38,22 38,46L2,46C2,28 -4,18 -10,14C-16,20 -26,28 -34,26"
    shape += "C-42,22 -40,10 -32,2C-26,-8 -20,-26 -6,-34Z"
    parts = [inks.paint("M2,-36L2,-50L14,-36Z", inks.main)]
    parts.append(
        inks.paint("M6,-38C20,-44 36,-24 42,6C46,24 46,36 44,46L36,46C36,16 28,-20 6,-38Z", inks.second)
    )
    parts.append(inks.paint(shape, inks.main))
    bars = (
        "M36,-2L14,4M38,12L8,14M38,24L6,24M38,36L4,36M30,-14L14,-8M20,-26L10,-16M-4,-34L0,-20M-14,-26L-8,-14"
    )
    parts.append(inks.stroke(bars, deep, 3.6) + inks.stroke("M-22,-14L-14,-6", deep, 3))
    parts.append(
        inks.paint("M-34,26C-42,22 -40,10 -32,2C-24,6 -20,14 -20,24C-26,27 -30,27 -34,26Z", inks.second)
    )
    return "".join([*parts, inks.disc(-6, -12, 2.6, deep)])


def giraffe(inks: Inks) -> str:
    """A giraffe's head on its long neck."""
    neck = "M-4,-14L14,-18C18,6 22,28 24,49L-6,49C-2,28 -2,8 -4,-14Z"
    head = (
        "M-2,-38C8,-42 18,-36 18,-26C18,-16 8,-10 -4,-8"
        "C-14,-4 -26,2 -32,-2C-38,-8 -30,-14 -22,-20C-14,-28 -10,-36 -2,-38Z"
    )
    parts = [inks.stroke("M2,-38V-48M11,-38L14,-48", inks.main, 3)]
    parts.append(inks.disc(2, -48, 2.8, inks.second) + inks.disc(14, -48, 2.8, inks.second))
    parts.append(inks.paint(blade(16, -32, 74, 18, 9), inks.main) + inks.paint(neck, inks.main))
    spots = ((6, -4, 5), (13, 8, 5), (4, 14, 5.5), (14, 24, 6), (3, 31, 5.5), (16, 39, 5), (4, 45, 4))
    for x, y, size in spots:
        parts.append(
            inks.paint(
                smooth([around(turn, size, x, y) for turn in (10, 80, 150, 230, 300)], tension=0.5),
                inks.second,
            )
        )
    parts.append(inks.paint(head, inks.main) + inks.disc(-2, -26, 2.6, dark(inks)))
    return "".join([*parts, inks.disc(-29, -5, 1.6, inks.second)])


def deer(inks: Inks) -> str:
    antler = inks.stroke(
        "M8,-18C14,-28 16,-36 12,-48M13,-28C20,-30 26,-36 26,-46M14,-34C10,-38 6,-40 4,-46", inks.second, 3
    )
    ear = inks.paint(blade(12, -14, 66, 30, 15), inks.main) + inks.paint(
        blade(15, -14, 66, 22, 8), inks.accent
    )
    face = "M0,-22C14,-22 18,-12 16,0C14,14 12,26 8,34C5,40 -5,40 -8,34C-12,26 -14,14 -16,0C-18,-12 -14,-22 0,-22Z"
    chest = inks.paint(
        "M-14,24C-20,34 -20,42 -18,49H18C20,42 20,34 14,24Z", mix(inks.main, inks.ground, 0.25)
    )
    parts = [chest, antler, moved(antler, flip=True), ear, moved(ear, flip=True), inks.paint(face, inks.main)]
    parts.append(
        inks.paint("M-7,20C-4,16 4,16 7,20C8,30 5,38 0,38C-5,38 -8,30 -7,20Z", mix(inks.main, "#fffaf0", 0.6))
    )
    deep = dark(inks)
    parts.append(inks.paint("M-5,28H5Q3,34 0,35Q-3,34 -5,28Z", deep))
    return "".join([*parts, inks.disc(-9, 0, 2.7, deep), inks.disc(9, 0, 2.7, deep)])


def hedgehog(inks: Inks) -> str:
    parts = [
        inks.paint(blade(4, 14, turn, 44 - abs(turn - 20) / 9, 13), inks.main) for turn in range(-62, 111, 14)
    ]
    parts += [inks.paint(blade(4, 16, turn, 33, 10), inks.second) for turn in range(-52, 101, 17)]
    parts.append(
        inks.paint(
            "M-46,22C-38,6 -22,0 -8,6C8,10 34,10 40,26C30,36 -24,36 -36,28C-40,28 -44,26 -46,22Z", inks.accent
        )
    )
    deep = dark(inks)
    parts.append(inks.disc(-45, 21, 4, deep) + inks.disc(-27, 14, 2.4, deep))
    return "".join([*parts, inks.stroke("M-18,33V38M-8,34V39M16,34V39M26,32V37", deep, 3.4)])


def squirrel(inks: Inks) -> str:
    tail = "M18,40C44,36 50,10 44,-12C40,-30 22,-38 14,-26C8,-16 20,-10 22,-2C24,10 16,22 8,30Z"
    body = "M-6,-6C10,0 22,18 18,42L-18,42C-22,36 -14,32 -10,30C-16,22 -14,8 -6,-6Z"
    head = "M-34,-14C-32,-26 -20,-32 -10,-28L-10,-40L-2,-26C4,-18 2,-6 -8,-2C-18,0 -30,-4 -34,-14Z"
    parts = [
        inks.paint(tail, inks.main),
        inks.stroke("M24,34C38,24 40,4 34,-12C31,-20 24,-24 20,-22", inks.second, 3),
    ]
    parts.append(
        inks.paint(body, inks.main) + inks.paint("M-8,4C0,12 2,28 -4,38C-12,30 -12,16 -8,4Z", inks.accent)
    )
    parts.append(
        inks.paint(head, inks.main)
        + inks.disc(-16, -17, 2.5, dark(inks))
        + inks.disc(-34, -14, 2.2, dark(inks))
    )
    return "".join(
        [
            *parts,
            inks.stroke("M-4,10C-10,14 -16,12 -20,8", inks.main, 5),
            inks.paint(ellipse(-23, 6, 5, 6.5), inks.second),
        ]
    )


def peacock(inks: Inks) -> str:
    return moved(_fan(inks), y=2, scale=0.84)


def penguin(inks: Inks) -> str:
    body = (
        "M0,-44C18,-44 24,-30 24,-18C32,-4 34,24 22,38"
        "C14,44 -14,44 -22,38C-34,24 -32,-4 -24,-18C-24,-30 -18,-44 0,-44Z"
    )
    belly = (
        "M0,-26C6,-34 17,-30 16,-20C24,-6 24,22 14,34"
        "C8,38 -8,38 -14,34C-24,22 -24,-6 -16,-20C-17,-30 -6,-34 0,-26Z"
    )
    wing = inks.paint("M24,-14C36,-6 42,12 38,24C30,18 26,4 24,-14Z", inks.main)
    parts = [
        wing,
        moved(wing, flip=True),
        inks.paint(body, inks.main),
        inks.paint(belly, mix(inks.ground, "#ffffff", 0.7)),
    ]
    deep = dark(inks)
    parts.append(
        inks.disc(-8, -22, 2.8, deep)
        + inks.disc(8, -22, 2.8, deep)
        + inks.paint("M-6,-17H6L0,-9Z", inks.accent)
    )
    parts.append(
        inks.paint("M-24,-4C-8,4 8,4 24,-4L24,3C8,11 -8,11 -24,3Z", inks.second)
        + inks.paint("M10,4L20,2L19,20L11,21Z", inks.second)
    )
    return "".join(
        [
            *parts,
            inks.paint(ellipse(-11, 42, 9, 4), inks.accent),
            inks.paint(ellipse(11, 42, 9, 4), inks.accent),
        ]
    )


def parrot(inks: Inks) -> str:
    """A parrot on a branch, its tail hanging down."""
    tail = [
        inks.paint(blade(10, 14, turn, 42, 8), ink)
        for turn, ink in ((150, inks.second), (162, inks.main), (172, inks.accent))
    ]
    body = (
        "M-8,-44C8,-46 18,-34 17,-20C22,-4 22,16 12,26"
        "C0,26 -12,14 -14,-4C-16,-12 -20,-16 -21,-24C-22,-36 -16,-43 -8,-44Z"
    )
    wing = "M2,-16C16,-14 24,8 18,32C6,26 -4,8 -4,-6C-4,-12 -2,-16 2,-16Z"
    parts = [*tail, inks.stroke("M-46,24C-20,20 14,28 46,18", inks.leaf, 4), inks.paint(body, inks.main)]
    parts.append(
        inks.paint(wing, inks.second)
        + inks.stroke("M4,-4C10,4 14,14 15,24M0,2C6,10 10,18 12,26", inks.accent, 2)
    )
    parts.append(inks.paint("M-18,-34C-30,-34 -34,-24 -28,-14C-26,-18 -22,-20 -18,-21Z", inks.accent))
    parts.append(
        inks.disc(-10, -31, 6, mix(inks.ground, "#ffffff", 0.6)) + inks.disc(-11, -31, 2.6, dark(inks))
    )
    return "".join(
        [
            *parts,
            inks.stroke("M-4,24V29M3,25V30", inks.accent, 2.6),
            inks.paint(blade(-34, 22, -30, 18, 9), inks.leaf),
            inks.paint(blade(32, 22, 40, 18, 9), inks.leaf),
        ]
    )


def _fan(inks: Inks) -> str:
    """A peacock that spreads its tail."""
    parts = []
    for turn in range(-84, 85, 21):
        parts.append(inks.paint(petal(turn, 60, 21, foot=6, y=14), inks.main if turn % 42 else inks.second))
        tip = around(turn, 50, 0, 14)
        parts.append(
            inks.disc(*tip, 7, inks.accent) + inks.disc(*tip, 4.2, inks.leaf) + inks.disc(*tip, 2, inks.line)
        )
    parts += [inks.paint(blade(0, 14, turn, 34, 12), inks.leaf) for turn in range(-75, 76, 25)]
    body = (
        "M-4,-14C-8,-10 -8,-4 -5,2C-14,12 -14,34 0,42C14,34 14,12 5,2C8,-4 8,-10 4,-14C2,-17 -2,-17 -4,-14Z"
    )
    parts.append(
        inks.paint(body, mix(inks.second, "#101820", 0.25))
        + inks.stroke("M0,-16V-25M-2,-16L-5,-24M2,-16L5,-24", inks.accent, 1.6)
    )
    return "".join(
        [
            *parts,
            inks.paint("M-2,-8H2L0,-3Z", inks.accent),
            inks.disc(-3, -11, 1.2, inks.line),
            inks.disc(3, -11, 1.2, inks.line),
            inks.stroke("M-4,41V49M4,41V49", inks.accent, 2),
        ]
    )


def horse(inks: Inks) -> str:
    """A horse's head with its mane, and a bridle."""
    mane = "M4,-40C24,-40 40,-18 44,10C46,26 46,38 42,49L24,49C26,22 18,-12 4,-40Z"
    head = (
        "M2,-40C14,-32 26,-10 30,18C32,32 32,42 32,49L-2,49"
        "C0,30 -4,20 -10,14C-18,18 -26,26 -34,24C-42,20 -40,8 -32,0C-24,-10 -16,-30 2,-40Z"
    )
    parts = [
        inks.paint("M0,-36L0,-50L12,-34Z", inks.main),
        inks.paint(mane, inks.second),
        inks.paint(head, inks.main),
    ]
    parts.append(
        inks.stroke("M-30,-2C-24,4 -20,10 -18,18M-26,8L8,-8M8,-8C2,-18 0,-28 -2,-34", inks.accent, 2.6)
    )
    return "".join(
        [
            *parts,
            inks.disc(-7, -14, 2.6, dark(inks)),
            inks.disc(-34, 12, 1.8, dark(inks)),
            inks.disc(8, -8, 3, inks.accent),
        ]
    )


DRAWINGS = {
    one.__name__: one
    for one in (
        elephant, lion, tiger, zebra, giraffe, deer, hedgehog, squirrel, penguin, parrot, peacock, horse, unicorn,
    )
}  # fmt: skip
UPRIGHT = frozenset(DRAWINGS)
