"""Laying a pattern on a surface: which point of the tile each pixel shows, and how light falls on it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from studio.art.raster import rasterise

#: The side at which a picture is composed, to be averaged down after; blurs are given for the largest.
LARGEST = 1024
CANVAS: ContextVar[int] = ContextVar("canvas", default=LARGEST)

Grid = NDArray[np.float64]


@dataclass(frozen=True)
class Pixels:
    """The coordinates of all pixels of the canvas, 0 to 1."""

    x: Grid
    y: Grid


def pixels() -> Pixels:
    side = CANVAS.get()
    steps = (np.arange(side) + 0.5) / side
    x, y = np.meshgrid(steps, steps)
    return Pixels(x, y)


@dataclass(frozen=True)
class Printed:
    """A tile as it is printed: its picture, and how wide and high it is, in regular tiles."""

    image: Image.Image
    across: float = 1.0
    down: float = 1.0


def lay(tile: Printed, u: Grid, v: Grid, period: float) -> Grid:
    """The tile's colours at coordinates u, v (canvas sides); a regular one repeats every `period` canvas sides."""
    periods = period * tile.across, period * tile.down
    width, height = (max(8, round(one * CANVAS.get())) for one in periods)
    if periods == (period, period):
        width = height = max(32, width)
    sized = np.asarray(_resized(tile.image, width, height), dtype=np.float64)
    across = np.mod(u / periods[0], 1.0) * width
    down = np.mod(v / periods[1], 1.0) * height
    left, top = np.floor(across).astype(int), np.floor(down).astype(int)
    right_share, low_share = (across - left)[..., None], (down - top)[..., None]
    left, top = left % width, top % height
    right, low = (left + 1) % width, (top + 1) % height
    upper = sized[top, left] * (1 - right_share) + sized[top, right] * right_share
    lower = sized[low, left] * (1 - right_share) + sized[low, right] * right_share
    laid: Grid = upper * (1 - low_share) + lower * low_share
    return laid


def _resized(tile: Image.Image, across: int, down: int) -> Image.Image:
    """The tile in another size; its surroundings are itself, so that no seam appears."""
    width, height = tile.size
    around = Image.new("RGB", (width * 3, height * 3))
    for column in range(3):
        for row in range(3):
            around.paste(tile, (column * width, row * height))
    box = (width, height, width * 2, height * 2)
    return around.resize((across, down), Image.Resampling.LANCZOS, box=box)


def shade(colours: Grid, light: Grid, gloss: Grid | float = 0.0) -> Grid:
    """Colours under a light (1 is as they are), with white gloss added."""
    lit = colours * light[..., None]
    shine = np.broadcast_to(np.asarray(gloss, dtype=np.float64), light.shape)[..., None]
    shaded: Grid = lit + (255 - lit) * shine
    return shaded


def scene(content: str) -> Grid:
    """An SVG drawing in a 1000 x 1000 field as colours and alpha."""
    return np.asarray(_drawn(content).convert("RGBA"), dtype=np.float64)


def mask(content: str, blur: float = 0.0) -> Grid:
    """How much of each pixel the drawing covers, 0 to 1."""
    alpha = _drawn(content).convert("RGBA").getchannel("A")
    if blur:
        alpha = alpha.filter(ImageFilter.GaussianBlur(blur * CANVAS.get() / LARGEST))
    covered: Grid = np.asarray(alpha, dtype=np.float64) / 255
    return covered


def _drawn(content: str) -> Image.Image:
    return rasterise(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000" viewBox="0 0 1000 1000">{content}</svg>',
        CANVAS.get(),
    )


def over(below: Grid, above: Grid, cover: Grid) -> Grid:
    """`above` on `below`, where and as far as it covers."""
    mixed: Grid = below + (above - below) * cover[..., None]
    return mixed


def draw_over(below: Grid, content: str) -> Grid:
    drawing = scene(content)
    return over(below, drawing[..., :3], drawing[..., 3] / 255)


def shadow(below: Grid, content: str, blur: float, depth: float) -> Grid:
    """A soft shadow of the drawing."""
    darkened: Grid = below * (1 - depth * mask(content, blur))[..., None]
    return darkened


def finished(colours: Grid, side: int) -> Image.Image:
    whole = Image.fromarray(np.clip(colours, 0, 255).astype(np.uint8), "RGB")
    return whole.resize((side, side), Image.Resampling.BOX)
