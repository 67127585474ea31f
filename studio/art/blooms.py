"""Drawings of flowers, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, Point, around, blade, moved, petal, smooth


def daisy(inks: Inks) -> str:
    count = 12
    parts = [inks.paint(petal(turn * 360 / count, 47, 21, foot=8), inks.main) for turn in range(count)]
    parts += [
        inks.stroke(
            "M{:.1f},{:.1f}L{:.1f},{:.1f}".format(*around(turn * 30, 18), *around(turn * 30, 33)),
            inks.line,
            1.3,
        )
        for turn in range(count)
    ]
    parts.append(inks.disc(0, 0, 13.5, inks.accent))
    parts += [
        inks.disc(*around(turn * 51.4, 7.6), 1.5, mix(inks.accent, inks.ground, 0.55)) for turn in range(7)
    ]
    return "".join(parts)


def peony(inks: Inks) -> str:
    """Three rounds of scalloped petals that grow darker inwards, on a collar of leaves."""
    light = mix(inks.main, inks.ground, 0.34)
    dark = mix(inks.main, inks.line if inks.line != inks.ground else "#301018", 0.3)
    parts = [inks.paint(blade(0, 0, turn, 57, 25), inks.leaf) for turn in (38, 158, 278)]
    for count, reach, width, offset, colour in (
        (8, 39, 36, 0, light),
        (7, 30, 30, 20, inks.main),
        (5, 20, 24, 8, dark),
    ):
        for step in range(count):
            turn = offset + step * 360 / count
            parts.append(inks.paint(_scalloped(turn, reach, width), colour))
            tip = around(turn, reach * 0.56)
            foot = around(turn, reach * 0.3)
            parts.append(
                inks.stroke(f"M{foot[0]:.1f},{foot[1]:.1f}L{tip[0]:.1f},{tip[1]:.1f}", inks.line, 1.0)
            )
    parts.append(inks.disc(0, 0, 6.5, inks.accent))
    parts += [inks.disc(*around(turn * 60, 4), 1.2, inks.line) for turn in range(6)]
    return "".join(parts)


def _scalloped(angle: float, reach: float, width: float) -> str:
    spread = width / reach * 32
    corners: list[Point] = [
        (0.0, 0.0),
        around(angle - spread, reach * 0.78),
        around(angle - spread * 0.62, reach * 0.99),
    ]
    corners += [
        around(angle - spread * 0.28, reach * 0.93),
        around(angle, reach * 1.04),
        around(angle + spread * 0.28, reach * 0.93),
    ]
    corners += [around(angle + spread * 0.62, reach * 0.99), around(angle + spread, reach * 0.78)]
    return smooth(corners)


def rose_flower(inks: Inks) -> str:
    """A garden rose from above: rounds of petals, each turned against the last."""
    parts = [inks.paint(blade(0, 0, turn, 55, 26), inks.leaf) for turn in (60, 180, 300)]
    parts += [
        inks.stroke("M0,0L{:.1f},{:.1f}".format(*around(turn, 44)), inks.line, 1.1) for turn in (60, 180, 300)
    ]
    deep = mix(inks.main, "#2a0f16", 0.22)
    for place, (count, reach) in enumerate(((5, 37), (5, 29), (4, 21.5), (3, 14.5))):
        colour = mix(inks.main, inks.ground, 0.28 - 0.14 * place) if place < 3 else deep
        for step in range(count):
            turn = place * 33 + step * 360 / count
            x, y = around(turn, reach * 0.42)
            parts.append(inks.disc(x, y, reach * 0.58, colour))
            arc = [around(turn + side, reach * 0.97) for side in (-32, -12, 12, 32)]
            parts.append(
                inks.stroke(smooth(arc, closed=False), deep if inks.style != "ink" else inks.main, 1.3)
            )
    parts.append(inks.stroke("M-5,1C-6,-6 5,-7 6,0C6,6 -1,6 -1,1", inks.line, 1.8))
    return "".join(parts)


def sunflower(inks: Inks) -> str:
    parts = [
        inks.paint(blade(0, 0, turn * 22.5 + 11, 49, 15), mix(inks.main, inks.second, 0.35))
        for turn in range(16)
    ]
    parts += [inks.paint(blade(0, 0, turn * 22.5, 47, 16), inks.main) for turn in range(16)]
    parts.append(inks.disc(0, 0, 19, mix(inks.second, "#2a1a10", 0.55)))
    for ring, count in ((4, 5), (9, 10), (14, 16)):
        parts += [
            inks.disc(*around(step * 360 / count + ring * 7, ring), 1.5, inks.main) for step in range(count)
        ]
    return "".join(parts)


def tulip(inks: Inks) -> str:
    parts = [inks.stroke("M0,-2C2,18 -2,32 0,48", inks.leaf, 3)]
    parts.append(inks.paint("M-1,47C-22,38 -27,14 -20,-2C-12,12 -4,24 -1,47Z", inks.leaf))
    parts.append(inks.paint("M1,47C18,40 24,22 21,8C13,18 4,28 1,47Z", inks.leaf))
    parts.append(inks.paint("M-10,-6C-14,-24 -6,-40 0,-48C6,-40 14,-24 10,-6Z", inks.second))
    parts.append(inks.paint("M0,2C-20,2 -25,-18 -19,-44C-10,-38 -2,-22 0,2Z", inks.main))
    parts.append(inks.paint("M0,2C20,2 25,-18 19,-44C10,-38 2,-22 0,2Z", inks.main))
    parts.append(inks.stroke("M-14,-30C-13,-18 -9,-8 -3,-3", inks.line, 1.3))
    parts.append(inks.stroke("M14,-30C13,-18 9,-8 3,-3", inks.line, 1.3))
    return "".join(parts)


def poppy(inks: Inks) -> str:
    back = mix(inks.main, "#2a0f10", 0.16)
    parts = [inks.paint(_wide_petal(turn), back) for turn in (0, 180)]
    parts += [inks.paint(_wide_petal(turn), inks.main) for turn in (90, 270)]
    for turn in range(0, 360, 24):
        near, far = around(turn, 13), around(turn, 27 if turn % 48 else 32)
        parts.append(inks.stroke(f"M{near[0]:.1f},{near[1]:.1f}L{far[0]:.1f},{far[1]:.1f}", back, 1.2))
    core = mix(inks.second, "#17161b", 0.72)
    parts += [inks.disc(*around(turn * 24, 15.5), 1.9, core) for turn in range(15)]
    parts.append(inks.disc(0, 0, 9.5, core))
    parts += [
        inks.stroke("M0,0L{:.1f},{:.1f}".format(*around(turn * 60, 7)), inks.accent, 1.3) for turn in range(6)
    ]
    return "".join(parts)


def _wide_petal(angle: float) -> str:
    corners: list[Point] = [(0.0, 0.0)]
    shape = ((-62, 30), (-50, 43), (-28, 47), (-9, 43), (6, 47), (27, 46), (49, 43), (62, 30))
    corners += [around(angle + turn, reach) for turn, reach in shape]
    return smooth(corners)


def blossom(inks: Inks) -> str:
    """Five notched petals, as of a cherry."""
    deep = mix(inks.main, inks.accent, 0.55)
    parts = []
    for step in range(5):
        turn = step * 72
        corners: list[Point] = [
            (0.0, 0.0),
            around(turn - 30, 22),
            around(turn - 32, 36),
            around(turn - 14, 46),
        ]
        corners += [around(turn, 38), around(turn + 14, 46), around(turn + 32, 36), around(turn + 30, 22)]
        parts.append(inks.paint(smooth(corners, tension=0.9), inks.main))
    for step in range(10):
        reach = 20 if step % 2 else 25
        x, y = around(step * 36, reach)
        parts.append(inks.stroke(f"M0,0L{x:.1f},{y:.1f}", deep, 1.2) + inks.disc(x, y, 2.1, inks.accent))
    parts.append(inks.disc(0, 0, 5, deep))
    return "".join(parts)


def lavender(inks: Inks) -> str:
    parts = [inks.stroke("M-4,50Q3,20 0,-36", inks.leaf, 2.1)]
    parts += [inks.paint(blade(-2, 40, turn, 28, 6), inks.leaf) for turn in (-34, 30)]
    for step in range(8):
        y = 8 - step * 7
        size = 1 - 0.05 * step
        for turn in (-62, -26, 26, 62):
            colour = inks.main if abs(turn) > 40 else mix(inks.main, inks.ground, 0.25)
            parts.append(inks.paint(blade(0, y, turn, 13 * size, 9 * size, belly=0.55), colour, edge=1))
    parts.append(inks.paint(blade(0, -40, 0, 11, 8), inks.main))
    return "".join(parts)


def lotus(inks: Inks) -> str:
    light = mix(inks.main, inks.ground, 0.35)
    parts = []
    for turn, length, colour in (
        (-78, 46, light),
        (78, 46, light),
        (-52, 50, inks.main),
        (52, 50, inks.main),
    ):
        parts.append(inks.paint(blade(0, 30, turn, length, 23, belly=0.55), colour))
    for turn, length, colour in ((-26, 60, light), (26, 60, light), (0, 72, inks.main)):
        parts.append(inks.paint(blade(0, 32, turn, length, 26, belly=0.5), colour))
    parts += [
        inks.stroke("M0,30L{:.1f},{:.1f}".format(*around(turn, 40, 0, 30)), inks.line, 1.2)
        for turn in (-26, 0, 26)
    ]
    parts.append(inks.paint("M-42,34C-22,26 22,26 42,34C24,44 -24,44 -42,34Z", inks.leaf))
    return "".join(parts)


def wildflower(inks: Inks) -> str:
    """A small bunch: three stems of different flowers."""
    parts = []
    for path in ("M0,50C-6,24 -22,8 -24,-12", "M0,50C2,20 0,-4 4,-24", "M0,50C8,30 22,18 26,0"):
        parts.append(inks.stroke(path, inks.leaf, 1.9))
    for x, y, turn in ((-12, 18, -62), (-8, 26, 40), (3, 8, 58), (2, 18, -40), (14, 24, 70), (6, 34, 30)):
        parts.append(inks.paint(blade(x, y, turn, 18, 7), inks.leaf))
    small = inks.with_main(inks.second)
    parts.append(moved(daisy(inks), 4, -28, 10, 0.4))
    parts.append(moved(blossom(small), -25, -16, -14, 0.34))
    for x, y in ((26, -4), (20, -9), (32, -8), (25, -14), (33, 1), (18, -1)):
        parts.append(inks.disc(x, y, 4, inks.accent))
    return "".join(parts)


DRAWINGS = {
    "daisy": daisy,
    "peony": peony,
    "rose_flower": rose_flower,
    "sunflower": sunflower,
    "tulip": tulip,
    "poppy": poppy,
    "blossom": blossom,
    "lavender": lavender,
    "lotus": lotus,
    "wildflower": wildflower,
}
