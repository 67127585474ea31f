"""Drawings of shore and household, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.inks import Inks, Point, around, circle, moved, petal, smooth


def shell(inks: Inks) -> str:
    """A scallop."""
    corners: list[Point] = [(-9.0, 40.0)]
    for step in range(9):
        turn = -72 + step * 18
        corners += [around(turn - 7, 70, 0, 32), around(turn, 75, 0, 32), around(turn + 7, 70, 0, 32)]
    fan = [(x * 0.72, 32 + (y - 32) * 0.98) for x, y in corners[1:]]
    parts = [
        inks.paint("M-16,44L-10,30H10L16,44Z", inks.second),
        inks.paint(smooth([(-7, 36), *fan, (7, 36)], tension=0.7), inks.main),
    ]
    for step in range(8):
        x, y = around(-63 + step * 18, 64, 0, 32)
        parts.append(inks.stroke(f"M{(step - 3.5) * 1.2:.1f},34L{x * 0.72:.1f},{y:.1f}", inks.line, 1.7))
    return moved("".join(parts), 0, 3, 0, 0.98)


def coral_reef(inks: Inks) -> str:
    def branch(x: float, y: float, turn: float, length: float, width: float) -> str:
        end = around(turn, length, x, y)
        drawn = inks.stroke(f"M{x:.1f},{y:.1f}L{end[0]:.1f},{end[1]:.1f}", inks.main, width)
        if length < 9:
            return drawn + inks.disc(*end, width * 0.62, inks.main)
        return drawn + "".join(branch(*end, turn + side, length * 0.72, width * 0.8) for side in (-31, 27))

    return branch(0, 48, 0, 27, 6.5)


def anchor(inks: Inks) -> str:
    parts = [inks.stroke(circle(0, -38, 7), inks.main, 4), inks.stroke("M0,-30V40M-18,-20H18", inks.main, 5)]
    parts.append(inks.stroke("M-36,10C-34,32 -16,42 0,42C16,42 34,32 36,10", inks.main, 5))
    parts.append(inks.paint("M-45,18L-36,2L-27,18Z", inks.main) + inks.paint("M45,18L36,2L27,18Z", inks.main))
    parts.append(inks.stroke("M-12,-12C14,-6 -14,8 12,16C-10,22 8,32 14,34", inks.accent, 2.6))
    return "".join(parts)


def heart(inks: Inks) -> str:
    path = "M0,42C-18,26 -46,8 -44,-16C-42,-38 -12,-42 0,-18C12,-42 42,-38 44,-16C46,8 18,26 0,42Z"
    return inks.paint(path, inks.main) + inks.stroke("M-32,-14C-31,-22 -26,-27 -19,-27", inks.line, 3)


def _small_flower(inks: Inks) -> str:
    return "".join(inks.paint(petal(turn, 46, 34), inks.line) for turn in range(0, 360, 72)) + inks.disc(
        0, 0, 12, inks.accent
    )


def paisley(inks: Inks) -> str:
    shape = [
        (6.0, -46.0),
        (20, -40),
        (25, -27),
        (16, -18),
        (24, -4),
        (30, 14),
        (24, 34),
        (4, 46),
        (-18, 40),
        (-30, 22),
        (-27, 0),
        (-14, -14),
        (2, -24),
        (9, -35),
    ]

    def inner(size: float) -> str:
        return smooth([(-1 + (x + 1) * size, 17 + (y - 17) * size) for x, y in shape])

    parts = [
        inks.paint(inner(1.0), inks.main),
        inks.paint(inner(0.76), inks.second),
        inks.paint(inner(0.5), inks.accent),
    ]
    parts += [inks.disc(*around(turn, 24.5, -1, 17), 1.7, inks.line) for turn in range(60, 310, 22)]
    return "".join(parts) + moved(_small_flower(inks), -2, 19, 0, 0.2)


DRAWINGS = {
    "shell": shell,
    "coral_reef": coral_reef,
    "anchor": anchor,
    "heart": heart,
    "paisley": paisley,
}
