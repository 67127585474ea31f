"""What a reference picture lends to a pattern: its colours, how fine it is, and which way it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.art import words
from studio.art.colour import Colour, distance, to_oklch
from studio.art.reading import Mention, Reading

#: A picture is measured at this side in pixels.
MEASURED = 96
COLOURS = 12
#: What the pattern shows when the prompt names nothing: by how fine the picture is, coarse first.
MOTIFS = ("cutout", "monstera", "peony", "wildflower", "daisy", "confetti")
LAYOUTS = {"upright": "pg", "level": "brick", "slanting": "p2", "none": "toss"}


@dataclass(frozen=True)
class Traits:
    """A picture, measured: its dominant colours, largest share first; detail 0 (plain) to 1 (busy); direction."""

    colours: tuple[Colour, ...]
    detail: float
    direction: str


def measure(picture: Image.Image) -> Traits:
    """The traits of a picture."""
    small = picture.convert("RGB").resize((MEASURED, MEASURED), Image.Resampling.BOX)
    grey = np.asarray(small.convert("L"), dtype=np.float64) / 255
    across, down = np.gradient(grey, axis=1), np.gradient(grey, axis=0)
    detail = min(1.0, float(np.hypot(down, across).mean()) / 0.12)
    return Traits(_dominant(small), round(detail, 3), _direction(np.asarray(across), np.asarray(down)))


def _dominant(small: Image.Image) -> tuple[Colour, ...]:
    """By quantisation; colours that look alike count as one."""
    counted = small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).convert("RGB").getcolors() or []
    found: list[Colour] = []
    for count, rgb in sorted(counted, key=lambda one: (-one[0], one[1])):
        assert isinstance(rgb, tuple)
        colour = "#" + "".join(f"{part:02x}" for part in rgb)
        large_enough = count > MEASURED**2 // 200
        if large_enough and all(distance(colour, other) > 0.07 for other in found):
            found.append(colour)
    return tuple(found[:6])


def _direction(across: NDArray[np.float64], down: NDArray[np.float64]) -> str:
    """From the structure tensor: lines run across the gradient."""
    xx, yy, xy = float((across**2).sum()), float((down**2).sum()), float((across * down).sum())
    whole = xx + yy
    if whole < 1e-6 or math.hypot(xx - yy, 2 * xy) / whole < 0.3:
        return "none"
    angle = math.degrees(0.5 * math.atan2(2 * xy, xx - yy)) % 180
    if min(angle, 180 - angle) < 25:
        return "upright"
    return "level" if abs(angle - 90) < 25 else "slanting"


def guided(reading: Reading, traits: Sequence[Traits]) -> Reading:
    """The reading, with what the prompt leaves open taken from the references: words always win."""
    if not traits:
        return reading
    detail = sum(one.detail for one in traits) / len(traits)
    if not reading.colours and reading.ground is None:
        reading.ground, *reading.colours = _palette(traits)
        reading.moods.clear()
    if not reading.mentions and not any(mood in words.MOOD_SUBJECTS for mood in reading.moods):
        reading.mentions.append(Mention(MOTIFS[min(len(MOTIFS) - 1, int(detail * len(MOTIFS)))]))
    if reading.scale == 1.0:
        reading.scale = round(1.5 - 0.9 * detail, 2)
    reading.layout = reading.layout or LAYOUTS[traits[0].direction]
    return reading


def _palette(traits: Sequence[Traits]) -> list[Colour]:
    """The first picture's most common colour is the ground; vivid colours before dull ones follow, of all in turn."""
    ground = traits[0].colours[0]
    found: list[Colour] = []
    for place in range(6):
        for one in traits:
            colour = one.colours[place] if place < len(one.colours) else ground
            if all(distance(colour, other) > 0.07 for other in [ground, *found]):
                found.append(colour)
    return [ground, *sorted(found[:5], key=lambda colour: -to_oklch(colour)[1])]
