"""Colours as people see them: hex strings in and out, and changes made in OKLCH, where equal steps look equal."""

from __future__ import annotations

import math

Colour = str


def to_oklch(colour: Colour) -> tuple[float, float, float]:
    """Lightness 0 to 1, chroma 0 to about 0.3, hue in degrees."""
    lightness, a, b = _to_oklab(colour)
    return lightness, math.hypot(a, b), math.degrees(math.atan2(b, a)) % 360


def from_oklch(lightness: float, chroma: float, hue: float) -> Colour:
    """The nearest colour that a screen can show: chroma gives way, lightness and hue stay."""
    lightness = min(1.0, max(0.0, lightness))
    for step in range(21):
        part = chroma * (1 - step / 20)
        rgb = _from_oklab(lightness, part * math.cos(math.radians(hue)), part * math.sin(math.radians(hue)))
        if all(-0.002 <= one <= 1.002 for one in rgb):
            break
    return "#" + "".join(f"{round(255 * _encode(min(1.0, max(0.0, one)))):02x}" for one in rgb)


def shift(colour: Colour, *, lighter: float = 0, chroma: float = 1) -> Colour:
    """The colour `lighter` by a part of the whole range, its chroma multiplied."""
    lightness, was, hue = to_oklch(colour)
    return from_oklch(lightness + lighter, was * chroma, hue)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """`share` of `other` in `one`."""
    pairs = zip(_to_oklab(one), _to_oklab(other), strict=True)
    lightness, a, b = (x + (y - x) * share for x, y in pairs)
    return from_oklch(lightness, math.hypot(a, b), math.degrees(math.atan2(b, a)))


def lightness(colour: Colour) -> float:
    return to_oklch(colour)[0]


def distance(one: Colour, other: Colour) -> float:
    """How different two colours look; 0.02 is hard to tell apart, 0.2 is plain."""
    return math.dist(_to_oklab(one), _to_oklab(other))


def apart(colour: Colour, ground: Colour, least: float) -> Colour:
    """The colour, made lighter or darker until it stands out from the ground."""
    away = 1 if lightness(ground) < 0.55 else -1
    for step in range(16):
        changed = shift(colour, lighter=away * 0.05 * step, chroma=1 + 0.1 * step)
        if distance(changed, ground) >= least:
            return changed
    return changed


def rgb(colour: Colour) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _to_oklab(colour: Colour) -> tuple[float, float, float]:
    red, green, blue = (_decode(part / 255) for part in rgb(colour))
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def _from_oklab(lightness: float, a: float, b: float) -> tuple[float, float, float]:
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _decode(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _encode(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
