"""Drawings of animals of the water, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, around, blade, ellipse, polygon, smooth


def fish(inks: Inks) -> str:
    tail = "M24,0C34,-6 42,-20 48,-22C46,-10 46,10 48,22C42,20 34,6 24,0Z"
    body = "M-48,0C-34,-26 4,-30 30,0C4,30 -34,26 -48,0Z"
    parts = [inks.paint("M-16,-19C-8,-34 10,-34 18,-26C12,-22 8,-16 6,-14Z", inks.second)]
    parts += [
        inks.paint("M-8,18C-4,30 8,32 14,28C10,22 8,18 6,15Z", inks.second),
        inks.paint(tail, inks.second),
    ]
    parts.append(inks.paint(body, inks.main))
    parts.append(inks.stroke("M-26,-16C-19,-6 -19,6 -26,16", inks.line, 2))
    for column, x in enumerate((-12, -3, 6, 15)):
        for y in (-12, -4, 4, 12) if column % 2 == 0 else (-8, 0, 8):
            if abs(y) < 16 - max(0, x) * 0.6:
                parts.append(inks.stroke(f"M{x},{y - 4}Q{x + 5},{y} {x},{y + 4}", inks.line, 1.3))
    parts.append(inks.disc(-35, -5, 4, inks.line) + inks.disc(-35.6, -5, 1.9, mix(inks.main, "#101014", 0.7)))
    parts.append(inks.stroke("M32,-4L42,-12M33,0H43M32,4L42,12", inks.line, 1.2))
    return "".join(parts)


def whale(inks: Inks) -> str:
    body = "M-46,2C-44,-22 -20,-28 0,-20C16,-14 26,-4 34,-10C32,-20 36,-28 40,-30C42,-24 46,-22 50,-22"
    body += "C50,-8 44,8 30,20C14,34 -18,36 -34,26C-43,20 -47,12 -46,2Z"
    parts = [inks.paint(body, inks.main)]
    parts.append(
        inks.paint("M-45,8C-34,14 -14,16 -2,12C-6,26 -18,32 -32,27C-40,22 -45,16 -45,8Z", inks.second)
    )
    parts.append(
        inks.stroke("M-38,15Q-34,24 -30,27M-28,17Q-26,26 -22,30M-18,17Q-17,25 -14,29", inks.line, 1.2)
    )
    parts.append(
        inks.paint("M-4,14C2,26 10,32 18,32C18,24 12,16 6,12Z", inks.second)
        + inks.disc(-28, 2, 2.6, inks.line)
    )
    parts.append(
        inks.stroke(
            "M-18,-28C-18,-38 -24,-42 -30,-40M-18,-28C-18,-40 -12,-44 -6,-41M-18,-28V-37", inks.accent, 2.2
        )
    )
    return "".join(parts)


def turtle(inks: Inks) -> str:
    parts = [
        inks.paint(blade(0, 0, turn, length, 19, belly=0.7), inks.second)
        for turn, length in ((48, 52), (-48, 52), (140, 44), (-140, 44))
    ]
    parts.append(
        inks.paint(ellipse(0, -36, 9, 12), inks.second) + inks.paint(blade(0, 28, 180, 18, 8), inks.second)
    )
    parts.append(inks.paint(ellipse(0, 0, 27, 33), inks.main))
    six = [around(turn, 13) for turn in range(30, 390, 60)]
    parts.append(inks.stroke(polygon(six), inks.line, 1.8))
    for turn in range(30, 390, 60):
        near, far = around(turn, 13), around(turn, 28)
        parts.append(inks.stroke(f"M{near[0]:.1f},{near[1]:.1f}L{far[0]:.1f},{far[1]:.1f}", inks.line, 1.8))
    return "".join(parts)


def starfish(inks: Inks) -> str:
    corners = [around(step * 36, 48 if step % 2 == 0 else 18) for step in range(10)]
    parts = [inks.paint(smooth(corners, tension=0.8), inks.main)]
    for arm in range(5):
        parts += [
            inks.disc(*around(arm * 72, reach), 2.9 - reach * 0.035, inks.line)
            for reach in (8, 16, 24, 32, 39)
        ]
        parts += [inks.disc(*around(arm * 72 + side, 17), 1.5, inks.line) for side in (-16, 16)]
    return "".join(parts)


DRAWINGS = {
    "fish": fish,
    "whale": whale,
    "turtle": turtle,
    "starfish": starfish,
}
