"""Drawings of the sky and what flies in it, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, around, blade, circle, moved, polygon, smooth


def star(inks: Inks) -> str:
    corners = [around(step * 36, 46 if step % 2 == 0 else 20) for step in range(10)]
    return inks.paint(smooth(corners, tension=0.25), inks.main) + inks.disc(0, 0, 5, inks.line)


def sparkle(inks: Inks) -> str:
    path = "M0,-48C3,-12 12,-3 44,0C12,3 3,12 0,48C-3,12 -12,3 -44,0C-12,-3 -3,-12 0,-48Z"
    dots = "".join(inks.disc(*around(turn, 27), 2.6, inks.accent) for turn in (45, 135, 225, 315))
    return inks.paint(path, inks.main) + dots


def moon(inks: Inks) -> str:
    parts = [
        inks.paint(
            "M14,-42C-20,-46 -44,-20 -40,10C-36,38 -6,50 20,38C-8,34 -20,12 -16,-8C-13,-24 -2,-36 14,-42Z",
            inks.main,
        )
    ]
    parts += [
        inks.disc(x, y, radius, mix(inks.main, inks.ground, 0.35))
        for x, y, radius in ((-28, 0, 4.5), (-22, 19, 3.2), (-24, -18, 2.6), (-6, 32, 2.8))
    ]
    small = inks.with_main(inks.accent)
    return "".join(parts) + moved(sparkle(small), 20, -6, 0, 0.34) + moved(sparkle(small), 32, 18, 0, 0.18)


def sun(inks: Inks) -> str:
    parts = []
    for step in range(16):
        colour = inks.main if step % 2 == 0 else inks.second
        parts.append(
            inks.paint(blade(*around(step * 22.5, 22), step * 22.5, 26 if step % 2 == 0 else 19, 10), colour)
        )
    parts.append(
        inks.disc(0, 0, 21, inks.main)
        + inks.stroke(circle(0, 0, 14.5), inks.line, 1.6)
        + inks.disc(0, 0, 5, inks.line)
    )
    return "".join(parts)


def starburst(inks: Inks) -> str:
    """The atomic star of the fifties."""
    parts = []
    for step in range(12):
        reach = (48, 26, 36, 26)[step % 4]
        colour = inks.main if step % 2 == 0 else inks.second
        end = around(step * 30, reach)
        if step % 2 == 0:
            parts.append(inks.paint(blade(0, 0, step * 30, reach, 10, belly=0.3), colour))
        else:
            parts.append(
                inks.stroke(f"M0,0L{end[0]:.1f},{end[1]:.1f}", colour, 1.8)
                + inks.disc(*end, 3.4, inks.accent)
            )
    return "".join(parts) + inks.disc(0, 0, 6, inks.accent)


def cloud(inks: Inks) -> str:
    path = "M-32,20C-50,20 -50,-4 -33,-4C-34,-24 -8,-32 2,-16C12,-26 32,-16 29,-2C48,-4 50,20 32,20Z"
    lines = inks.stroke("M-26,8C-22,2 -14,2 -11,7M4,-2C8,-9 17,-8 19,-2", inks.line, 2)
    drops = "".join(inks.paint(blade(x, 42, 0, 13, 6.5, belly=0.3), inks.second) for x in (-20, 0, 20))
    return inks.paint(path, inks.main) + lines + drops


def drop(inks: Inks) -> str:
    return inks.paint(
        "M0,-44C10,-20 26,-4 26,16C26,32 14,44 0,44C-14,44 -26,32 -26,16C-26,-4 -10,-20 0,-44Z", inks.main
    ) + inks.stroke("M-13,18C-13,26 -8,31 -2,33", inks.line, 3)


def rainbow(inks: Inks) -> str:
    parts = []
    for radius, colour in ((43, inks.main), (33, inks.second), (23, inks.accent), (13, inks.leaf)):
        parts.append(inks.stroke(f"M{-radius},26A{radius},{radius} 0 0 1 {radius},26", colour, 7))
    return "".join(parts)


def snowflake(inks: Inks) -> str:
    arm = inks.stroke("M0,0V-46M0,-18L-11,-28M0,-18L11,-28M0,-31L-9,-39M0,-31L9,-39", inks.main, 2.8)
    ring = inks.stroke(polygon([around(turn, 10) for turn in range(0, 360, 60)]), inks.main, 2)
    return (
        "".join(moved(arm + inks.disc(0, -46, 2.6, inks.second), angle=turn) for turn in range(0, 360, 60))
        + ring
    )


DRAWINGS = {
    "star": star,
    "sparkle": sparkle,
    "moon": moon,
    "sun": sun,
    "starburst": starburst,
    "cloud": cloud,
    "drop": drop,
    "rainbow": rainbow,
    "snowflake": snowflake,
}
