"""Drawings of birds, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.inks import Inks, blade, ellipse


def bird(inks: Inks) -> str:
    """A songbird on a twig."""
    body = "M-30,-8C-30,-26 -14,-32 -4,-26C12,-20 24,-4 30,14C18,24 -4,26 -16,16C-26,10 -30,2 -30,-8Z"
    wing = "M-8,-10C6,-12 20,2 34,22C18,22 0,18 -8,6C-11,0 -11,-6 -8,-10Z"
    parts = [inks.stroke("M-44,34C-20,28 14,34 46,26", inks.leaf, 2.4)]
    parts += [
        inks.paint(blade(x, y, turn, 16, 8), inks.leaf)
        for x, y, turn in ((-32, 31, -40), (22, 31, 130), (40, 27, 40))
    ]
    parts.append(inks.paint("M24,10L50,22L46,30L20,20Z", inks.second))
    parts.append(inks.stroke("M-6,20V31M2,21V31", inks.second, 2))
    parts.append(inks.paint(body, inks.main))
    parts.append(inks.paint("M-30,-6C-28,8 -20,18 -6,20C-16,12 -20,2 -20,-6Z", inks.accent))
    parts.append(inks.paint(wing, inks.second))
    parts.append(inks.stroke("M0,2C8,6 16,12 24,18M-3,-4C8,0 18,8 27,17", inks.line, 1.4))
    parts.append(inks.paint("M-29,-16L-42,-11L-29,-8Z", inks.accent))
    parts.append(inks.disc(-19, -15, 2.5, inks.line))
    return "".join(parts)


def swallow(inks: Inks) -> str:
    """A swallow in flight, from above."""
    shape = "M0,-34C5,-32 7,-26 7,-18C20,-26 38,-24 49,-8C36,-12 24,-6 10,4C9,12 8,18 14,46C8,38 4,28 0,24"
    shape += "C-4,28 -8,38 -14,46C-8,18 -9,12 -10,4C-24,-6 -36,-12 -49,-8C-38,-24 -20,-26 -7,-18C-7,-26 -5,-32 0,-34Z"
    parts = [
        inks.paint(shape, inks.main),
        inks.paint("M0,-31C4,-29 5,-23 4,-17C2,-14 -2,-14 -4,-17C-5,-23 -4,-29 0,-31Z", inks.accent),
    ]
    parts.append(inks.stroke("M14,-14C24,-18 34,-17 42,-11M-14,-14C-24,-18 -34,-17 -42,-11", inks.line, 1.5))
    parts.append(inks.stroke("M0,-8V14", inks.line, 1.4))
    return "".join(parts)


def _wader(inks: Inks, legs: str, beak: str, crest: str) -> str:
    body = "M-16,-2C-4,-14 20,-12 42,10C30,12 18,16 4,14C-8,13 -17,8 -16,-2Z"
    neck = "M-8,4C-22,-2 -24,-14 -14,-24C-8,-30 -10,-38 -17,-38C-22,-38 -24,-34 -23,-31"
    neck += "C-19,-34 -15,-32 -18,-27C-30,-16 -28,2 -10,12Z"
    parts = [inks.stroke(legs, inks.accent, 1.9), inks.paint(neck, inks.main), inks.paint(body, inks.main)]
    parts.append(inks.paint("M0,-6C14,-8 28,0 42,10C28,8 12,10 2,4C-1,1 -2,-3 0,-6Z", inks.second))
    parts.append(inks.stroke("M8,-1C18,0 26,4 33,7M6,3C14,6 22,7 29,8", inks.line, 1.2))
    parts.append(inks.paint(beak, inks.accent))
    parts.append(inks.stroke(crest, inks.second, 1.8) if crest else "")
    parts.append(inks.disc(-18, -35, 1.3, inks.line))
    return "".join(parts)


def heron(inks: Inks) -> str:
    """A heron that stands among reeds."""
    legs = "M6,12L4,47M14,12L15,30L11,47M4,47H-3M11,47H18"
    reeds = inks.stroke("M-32,49C-34,30 -36,16 -32,2M-24,49Q-24,36 -29,24M34,49Q38,34 34,22", inks.leaf, 1.8)
    reeds += inks.paint(ellipse(-32, -2, 2.6, 8), inks.second) + inks.paint(
        ellipse(34, 19, 2.4, 7), inks.second
    )
    reeds += inks.paint(blade(28, 49, 14, 24, 5), inks.leaf) + inks.paint(
        blade(-28, 49, 18, 26, 5), inks.leaf
    )
    return reeds + _wader(inks, legs, "M-22,-38L-46,-31L-22,-32Z", "M-14,-38C-8,-38 -4,-36 0,-31")


def flamingo(inks: Inks) -> str:
    legs = "M8,12L8,48M14,12L24,26L10,30M8,48H1"
    return _wader(inks, legs, "M-22,-38C-30,-38 -33,-32 -31,-25C-29,-30 -26,-32 -22,-31Z", "")


DRAWINGS = {
    "bird": bird,
    "swallow": swallow,
    "heron": heron,
    "flamingo": flamingo,
}
