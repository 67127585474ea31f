"""Drawings of insects and faces of animals, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, blade, circle, ellipse, moved


def butterfly(inks: Inks) -> str:
    upper = "M2,-6C8,-30 30,-46 46,-36C52,-20 36,0 4,2Z"
    lower = "M3,3C26,2 38,14 34,28C26,42 10,32 3,10Z"
    half = inks.paint(lower, inks.second) + inks.paint(upper, inks.main)
    half += inks.paint("M10,-8C16,-22 28,-32 38,-29C40,-20 30,-8 10,-8Z", inks.second)
    half += (
        inks.disc(36, -26, 3.4, inks.line)
        + inks.disc(30, -17, 2.4, inks.line)
        + inks.disc(25, 22, 4.2, inks.accent)
    )
    half += inks.stroke("M1,-14C4,-26 8,-32 14,-36", inks.leaf, 1.4)
    body = inks.paint("M-3,-14C-3,-19 3,-19 3,-14L2.4,20C1.6,26 -1.6,26 -2.4,20Z", inks.leaf)
    return half + moved(half, flip=True) + body


def bee(inks: Inks) -> str:
    dark = mix(inks.second, "#17130f", 0.75)
    wing = mix(inks.ground, inks.second, 0.3)
    parts = []
    for side in (-1, 1):
        flip = side < 0
        parts.append(moved(inks.paint(blade(3, -8, 62, 45, 24, belly=0.62), wing), flip=flip))
        parts.append(moved(inks.paint(blade(3, -2, 98, 32, 17, belly=0.6), wing), flip=flip))
        parts.append(
            moved(
                inks.stroke("M4,-9L34,-24M4,-2L27,1", inks.line if inks.line != inks.ground else dark, 1),
                flip=flip,
            )
        )
        parts.append(moved(inks.stroke("M4,-29C6,-37 10,-40 14,-41", dark, 1.6), flip=flip))
    parts.append(inks.paint("M-15,-4C-16,22 -8,38 0,45C8,38 16,22 15,-4Z", inks.main))
    for y, width in ((6, 15), (18, 13.4), (30, 9)):
        parts.append(
            inks.paint(
                f"M{-width},{y - 3}Q0,{y + 2} {width},{y - 3}L{width - 1.4},{y + 3}Q0,{y + 8} {-width + 1.4},{y + 3}Z",
                dark,
            )
        )
    parts.append(inks.disc(0, -9, 13.5, mix(inks.main, dark, 0.22)) + inks.disc(0, -25, 8, dark))
    return "".join(parts)


def _face(inks: Inks, ears: str, head: str) -> str:
    """What cat, bear, fox and rabbit have in common."""
    dark = mix(inks.second, "#17141a", 0.75)
    parts = [ears, inks.paint(head, inks.main)]
    parts += [inks.disc(x, 4, 3.4, dark) for x in (-14, 14)] + [
        inks.disc(x, 14, 5, mix(inks.main, inks.accent, 0.5)) for x in (-24, 24)
    ]
    parts.append(
        inks.paint("M-5,13H5L0,19Z", dark)
        + inks.stroke("M0,19V23M0,23Q-5,28 -9,24M0,23Q5,28 9,24", dark, 1.7)
    )
    return "".join(parts)


def cat(inks: Inks) -> str:
    ears = "".join(
        moved(
            inks.paint("M8,-20L34,-44L36,-2Z", inks.main) + inks.paint("M17,-22L31,-35L32,-12Z", inks.accent),
            flip=flip,
        )
        for flip in (False, True)
    )
    whiskers = inks.stroke("M24,17L44,13M24,21L43,24M-24,17L-44,13M-24,21L-43,24", inks.second, 1.3)
    stripes = inks.stroke("M-7,-24V-14M0,-26V-12M7,-24V-14", inks.second, 2.6)
    return _face(inks, ears, ellipse(0, 8, 38, 32)) + stripes + whiskers


def bear(inks: Inks) -> str:
    ears = "".join(inks.disc(x, -26, 13, inks.main) + inks.disc(x, -26, 7, inks.accent) for x in (-26, 26))
    return _face(inks.with_main(inks.main), ears, ellipse(0, 6, 40, 35)) + inks.stroke(
        "M-15,19C-15,34 15,34 15,19", inks.second, 1.4
    )


def rabbit(inks: Inks) -> str:
    ear = inks.paint(ellipse(0, -28, 9.5, 22), inks.main) + inks.paint(ellipse(0, -27, 4.6, 15), inks.accent)
    ears = moved(ear, -13, 0, -8) + moved(ear, 13, 0, 8)
    return _face(inks, ears, ellipse(0, 15, 31, 28))


def fox(inks: Inks) -> str:
    dark = mix(inks.second, "#17141a", 0.75)
    half = inks.paint("M6,-18L38,-46L40,0Z", inks.main) + inks.paint("M18,-22L33,-35L34,-12Z", inks.second)
    half += inks.paint("M0,-20C20,-24 40,-6 45,4C36,12 14,30 0,40Z", inks.main)
    half += inks.paint("M45,4C36,12 14,30 0,40L0,22C12,12 28,4 45,4Z", mix(inks.main, "#ffffff", 0.74))
    half += inks.disc(17, 2, 3.4, dark)
    return half + moved(half, flip=True) + inks.disc(0, 38, 5, dark)


def paw(inks: Inks) -> str:
    return "".join(
        inks.paint(circle(x, y, r), inks.main)
        for x, y, r in ((0, 14, 18), (-22, -8, 9), (-8, -22, 9), (8, -22, 9), (22, -8, 9))
    )


DRAWINGS = {
    "butterfly": butterfly,
    "bee": bee,
    "cat": cat,
    "bear": bear,
    "rabbit": rabbit,
    "fox": fox,
    "paw": paw,
}
