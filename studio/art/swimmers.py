"""Drawings of animals of the water, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, around, blade, ellipse, moved, polygon, smooth


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


def jellyfish(inks: Inks) -> str:
    parts = []
    for x, sway in ((-22, 5), (-8, -6), (8, 6), (22, -5)):
        path = f"M{x},-6C{x + sway},8 {x - sway},18 {x},28C{x + sway},36 {x - sway * 0.5},42 {x},48"
        parts.append(inks.stroke(path, inks.second if abs(x) > 10 else inks.accent, 3))
    parts.append(
        inks.paint(
            "M-36,-4C-38,-34 -18,-48 0,-48C18,-48 38,-34 36,-4Q28,4 22,-4Q15,4 7,-4Q0,4 -7,-4"
            "Q-15,4 -22,-4Q-28,4 -36,-4Z",
            inks.main,
        )
    )
    parts.append(inks.stroke("M-24,-16C-22,-30 -12,-37 -2,-38", inks.line, 2.2))
    parts += [inks.disc(x, y, 2.4, inks.line) for x, y in ((-12, -15), (2, -20), (16, -14))]
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


def crab(inks: Inks) -> str:
    half = inks.stroke("M20,14L38,22L42,34M16,20L30,32L30,42M24,6L42,8L48,18", inks.main, 4)
    half += inks.stroke("M22,-4C34,-8 34,-18 32,-22", inks.main, 5)
    half += inks.paint(
        "M32,-18C20,-24 20,-42 30,-47C30,-40 33,-36 35,-34C36,-40 40,-44 44,-44C48,-32 44,-20 32,-18Z",
        inks.main,
    )
    half += (
        inks.stroke("M7,-10V-20", inks.main, 2.6)
        + inks.disc(7, -22, 4, inks.line)
        + inks.disc(7, -22, 2, inks.second)
    )
    shell = inks.paint("M-30,4C-28,-16 28,-16 30,4C28,26 -28,26 -30,4Z", inks.main)
    shell += inks.stroke("M-10,12Q0,18 10,12", inks.line, 2) + "".join(
        inks.disc(x, y, 2, inks.line) for x, y in ((-14, 0), (0, -4), (14, 0))
    )
    return half + moved(half, flip=True) + shell


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
    "jellyfish": jellyfish,
    "turtle": turtle,
    "crab": crab,
    "starfish": starfish,
}
