"""Colours as `#rrggbb`, and what is made of them: mixtures, lighter and darker ones, and ones that stand out."""

from __future__ import annotations

import colorsys
import math

Colour = str
#: The shares of red, green and blue in the light that people see.
LUMINANCE = (0.3, 0.59, 0.11)


def _parts(colour: Colour) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def _hex(red: float, green: float, blue: float) -> Colour:
    return "#" + "".join(f"{round(255 * min(1.0, max(0.0, part))):02x}" for part in (red, green, blue))


def lightness(colour: Colour) -> float:
    """Return how light a colour looks, from 0 (black) to 1 (white)."""
    return sum(weight * part for weight, part in zip(LUMINANCE, _parts(colour), strict=True))


def hue(colour: Colour) -> float:
    """Return the place on the colour wheel in degrees: red is 0, green 120."""
    return 360 * colorsys.rgb_to_hsv(*_parts(colour))[0]


def strength(colour: Colour) -> float:
    """Return how colourful it is, from 0 (grey) to 1."""
    return max(_parts(colour)) - min(_parts(colour))


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """Return `one` mixed with a `share` of `other`."""
    red, green, blue = (a + (b - a) * share for a, b in zip(_parts(one), _parts(other), strict=True))
    return _hex(red, green, blue)


def shift(colour: Colour, lighter: float, stronger: float = 1) -> Colour:
    """Return the colour made `lighter` by a share of the whole range, with its saturation multiplied."""
    turn, light, saturation = colorsys.rgb_to_hls(*_parts(colour))
    return _hex(
        *colorsys.hls_to_rgb(turn, min(1.0, max(0.0, light + lighter)), min(1.0, saturation * stronger))
    )


def distance(one: Colour, other: Colour) -> float:
    """Return how different two colours look: 0.03 is hardly seen, 0.25 is plain."""
    pairs = zip(LUMINANCE, _parts(one), _parts(other), strict=True)
    return math.sqrt(sum(weight * (a - b) ** 2 for weight, a, b in pairs))


def apart(colour: Colour, ground: Colour, least: float = 0.18) -> Colour:
    """Return the colour, made lighter or darker until it stands out from the ground."""
    away = 0.04 if lightness(ground) < 0.5 else -0.04
    steps = (shift(colour, away * step) for step in range(20))
    return next((one for one in steps if distance(one, ground) >= least), colour)
