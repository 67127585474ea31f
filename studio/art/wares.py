"""Drawings of things that are made, each within a circle of radius 50 around the origin."""

from __future__ import annotations

from studio.art.colour import mix
from studio.art.inks import Inks, around, circle, ellipse, moved


def bicycle(inks: Inks) -> str:
    wheels = "".join(
        inks.stroke(circle(x, 18, 20), inks.second, 3.2)
        + "".join(
            inks.stroke(
                "M{:.1f},{:.1f}L{:.1f},{:.1f}".format(*around(t, 19, x, 18), *around(t + 180, 19, x, 18)),
                inks.second,
                0.9,
            )
            for t in range(0, 180, 30)
        )
        for x in (-27, 27)
    )
    frame = "M-27,18L-12,-12L16,-12L27,18M-12,-12L0,18L16,-12M-27,18H0M16,-12L13,-26M-12,-12L-15,-20"
    bars = "M13,-26C6,-30 20,-34 26,-30M-22,-20H-8"
    basket = inks.paint("M18,-28H40L36,-12H22Z", inks.accent) + "".join(
        inks.disc(x, -31, 5, inks.main) for x in (22, 29, 36)
    )
    return (
        wheels
        + inks.stroke(frame, inks.main, 3.6)
        + inks.stroke(bars, inks.second, 3.6)
        + basket
        + inks.disc(0, 18, 4, inks.accent)
    )


def lighthouse(inks: Inks) -> str:
    tower = "M-11,-22H11L18,38H-18Z"
    parts = [
        inks.paint("M-44,38C-30,30 30,30 44,38C40,46 -40,46 -44,38Z", inks.leaf),
        inks.paint(tower, inks.main),
    ]
    parts += [
        inks.paint(path, mix(inks.ground, "#ffffff", 0.5))
        for path in ("M-12.4,-10H12.4L13.8,2H-13.8Z", "M-15,14H15L16.6,27H-16.6Z")
    ]
    parts.append(
        inks.paint("M-15,-26H15V-21H-15Z", inks.second) + inks.paint("M-8,-38H8V-26H-8Z", inks.accent)
    )
    beam = inks.paint("M8,-34L46,-44V-24L8,-30Z", mix(inks.accent, inks.ground, 0.55))
    return (
        beam
        + moved(beam, flip=True)
        + "".join(parts)
        + inks.paint("M-11,-38L0,-49L11,-38Z", inks.second)
        + inks.paint("M-4,38V30A4,4 0 0 1 4,30V38Z", inks.second)
    )


def car(inks: Inks) -> str:
    body = (
        "M-46,20V4C-46,-4 -38,-4 -30,-6L-20,-22"
        "C-18,-26 -14,-26 -10,-26H14C20,-26 24,-24 27,-18L33,-6C42,-5 46,0 46,8V20Z"
    )
    glass = inks.paint(
        "M-23,-6L-15,-19H-1V-6ZM4,-19H14C18,-19 20,-17 22,-13L25,-6H4Z", mix(inks.ground, "#ffffff", 0.4)
    )
    wheels = "".join(
        inks.disc(x, 20, 11, mix(inks.second, "#16130f", 0.6)) + inks.disc(x, 20, 5, inks.accent)
        for x in (-25, 25)
    )
    return (
        inks.paint(body, inks.main)
        + glass
        + inks.stroke("M-44,6H44", inks.second, 3)
        + wheels
        + inks.disc(43, 2, 3.4, inks.accent)
    )


def camper(inks: Inks) -> str:
    body = "M-46,22V-18C-46,-28 -40,-32 -32,-32H28C38,-32 44,-26 46,-14V22Z"
    lower = "M-46,22V2H-20L0,2L46,2V22Z"
    windows = "".join(
        inks.paint(f"M{x},-24h17v16h-17Z", mix(inks.ground, "#ffffff", 0.4)) for x in (-39, -18, 3)
    ) + inks.paint("M25,-24H32C38,-24 40,-16 41,-8H25Z", mix(inks.ground, "#ffffff", 0.4))
    wheels = "".join(
        inks.disc(x, 22, 10, mix(inks.second, "#16130f", 0.6)) + inks.disc(x, 22, 4.6, inks.accent)
        for x in (-25, 25)
    )
    board = inks.paint("M-34,-37H30C36,-37 36,-41 30,-41H-34C-40,-41 -40,-37 -34,-37Z", inks.accent)
    return (
        board
        + inks.paint(body, inks.second)
        + inks.paint(lower, inks.main)
        + windows
        + inks.stroke("M-46,1H46", inks.accent, 2.4)
        + wheels
    )


def key(inks: Inks) -> str:
    bow = "".join(inks.stroke(circle(*around(turn, 11, 0, -28), 9), inks.main, 5) for turn in (0, 120, 240))
    shaft = inks.stroke("M0,-16V44M0,44H14M0,34H11M0,44V47", inks.main, 5.5)
    return (
        bow + shaft + inks.disc(0, -28, 4.4, inks.accent) + inks.stroke("M-6,-10H6M-5,-4H5", inks.accent, 3)
    )


def umbrella(inks: Inks) -> str:
    cover = "M-46,2C-44,-26 -22,-38 0,-38C22,-38 44,-26 46,2C38,-6 24,-6 16,2C10,-6 -10,-6 -16,2C-24,-6 -38,-6 -46,2Z"
    middle = "M0,-38C-12,-28 -16,-14 -16,2C-10,-6 10,-6 16,2C16,-14 12,-28 0,-38Z"
    return (
        inks.stroke("M0,-44V36C0,46 14,46 14,36", inks.accent, 3.4)
        + inks.paint(cover, inks.main)
        + inks.paint(middle, inks.second)
    )


def skull(inks: Inks) -> str:
    """A skull with flowers for eyes."""
    parts = [
        inks.paint("M-20,14L-20,38Q0,46 20,38L20,14Z", inks.main),
        inks.paint(
            "M0,-44C28,-44 40,-26 38,-6C36,12 26,20 0,20C-26,20 -36,12 -38,-6C-40,-26 -28,-44 0,-44Z",
            inks.main,
        ),
    ]
    dark = mix(inks.second, "#14110f", 0.55)
    for x in (-16, 16):
        parts.append(inks.disc(x, -8, 11, dark))
        parts += [inks.disc(*around(turn, 6.6, x, -8), 4.2, inks.accent) for turn in range(0, 360, 60)]
        parts.append(inks.disc(x, -8, 3.4, inks.second))
    return "".join(
        [
            *parts,
            inks.paint("M0,4L6,14Q0,11 -6,14Z", dark),
            inks.stroke("M-12,26V40M-4,26V42M4,26V42M12,26V40M-18,30H18", dark, 2),
        ]
    )


def ghost(inks: Inks) -> str:
    shape = (
        "M0,-44C24,-44 30,-24 30,-4C30,14 34,28 38,42C28,46 24,36 16,36C8,36 8,46 0,46"
        "C-8,46 -8,36 -16,36C-24,36 -28,46 -38,42C-34,28 -30,14 -30,-4C-30,-24 -24,-44 0,-44Z"
    )
    dark = mix(inks.main, "#14110f", 0.85)
    return (
        inks.paint(shape, inks.main)
        + inks.paint(ellipse(-10, -12, 4.4, 6.4), dark)
        + inks.paint(ellipse(10, -12, 4.4, 6.4), dark)
        + inks.paint(ellipse(0, 6, 5, 6.5), dark)
        + inks.disc(-18, -2, 3.4, inks.accent)
        + inks.disc(18, -2, 3.4, inks.accent)
    )


def bow(inks: Inks) -> str:
    loop = inks.paint("M2,-6C14,-30 46,-32 46,-10C46,12 16,12 2,2Z", inks.main) + inks.paint(
        "M8,-4C18,-18 36,-20 36,-9C36,2 18,4 8,0Z", inks.second
    )
    end = inks.paint("M2,2C14,14 22,28 26,46L14,38L6,46C8,30 4,16 0,4Z", inks.main)
    return (
        end
        + moved(end, flip=True)
        + loop
        + moved(loop, flip=True)
        + inks.paint(ellipse(0, -3, 9, 10), inks.accent)
    )


def eye(inks: Inks) -> str:
    """An eye with rays for lashes."""
    rays = "".join(
        inks.stroke(
            "M{:.1f},{:.1f}L{:.1f},{:.1f}".format(*around(t, 34, 0, 4), *around(t, 46, 0, 4)),
            inks.second,
            2.6,
        )
        for t in range(-60, 61, 20)
    )
    return (
        rays
        + inks.paint("M-46,4C-26,-26 26,-26 46,4C26,32 -26,32 -46,4Z", inks.main)
        + inks.paint("M-36,4C-20,-16 20,-16 36,4C20,22 -20,22 -36,4Z", mix(inks.ground, "#ffffff", 0.6))
        + inks.disc(0, 3, 14, inks.second)
        + inks.disc(0, 3, 9, inks.accent)
        + inks.disc(0, 3, 4.6, mix(inks.second, "#101018", 0.8))
    )


def bolt(inks: Inks) -> str:
    return inks.paint("M10,-48L-26,6H-4L-12,48L26,-10H4Z", inks.main) + inks.stroke(
        "M6,-34L-12,-2H4", inks.line, 2
    )


def crown(inks: Inks) -> str:
    band = inks.paint("M-36,18H36V30H-36Z", inks.second)
    top = inks.paint("M-36,16L-42,-22L-20,-4L0,-34L20,-4L42,-22L36,16Z", inks.main)
    gems = "".join(
        inks.disc(x, y, 4.6, inks.accent)
        for x, y in ((-42, -25), (0, -38), (42, -25), (-18, 24), (0, 24), (18, 24))
    )
    return top + band + gems


def note(inks: Inks) -> str:
    heads = inks.paint(ellipse(-22, 32, 13, 10), inks.main) + inks.paint(ellipse(22, 24, 13, 10), inks.main)
    return (
        heads
        + inks.paint("M-14,32V-32L35,-42V24H30V-24L-9,-16V32Z", inks.main)
        + inks.stroke("M-9,-22L30,-30", inks.accent, 3)
    )


DRAWINGS = {
    one.__name__: one
    for one in (
        bicycle, lighthouse, car, camper, key, umbrella, skull, ghost, bow, eye, bolt, crown, note,
    )
}  # fmt: skip
UPRIGHT = frozenset(DRAWINGS) - {"key", "bow", "bolt", "note"}
