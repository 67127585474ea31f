"""Laying a pattern on a surface: which point of the tile each pixel shows, and how light falls on it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from studio.art.raster import rasterise

#: The side for which blurs are given.
BLURRED_AT = 1024
#: The side at which a picture is composed: as it is shown, or larger to be averaged down after.
CANVAS: ContextVar[int] = ContextVar("canvas", default=512)

#: Single precision: finer than what a screen shows, and half of the memory to pass through.
Grid = NDArray[np.floating[Any]]
#: What the products of a kind have in common, as shadows, handles and furniture, is drawn once: up to a megabyte each.
_KEPT_DRAWINGS = 64


@dataclass(frozen=True)
class Pixels:
    """The coordinates of all pixels of the canvas, 0 to 1."""

    x: Grid
    y: Grid


def pixels() -> Pixels:
    side = CANVAS.get()
    steps = (np.arange(side, dtype=np.float32) + np.float32(0.5)) / side
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
    sized = _resized(tile.image, width, height)
    left, right, right_share = _neighbours(u * (width / periods[0]), width)
    top, low, low_share = _neighbours(v * (height / periods[1]), height)
    upper = over(_colours(sized, top, left), _colours(sized, top, right), right_share)
    lower = over(_colours(sized, low, left), _colours(sized, low, right), right_share)
    return over(upper, lower, low_share)


Places = NDArray[np.int32]


def _neighbours(place: Grid, side: int) -> tuple[Places, Places, Grid]:
    """The pixels before and after each place in a periodic row of pixels, and the share of the second."""
    place = place - np.float32(0.5)
    before = np.floor(place)
    first = before.astype(np.int32) % side
    return first, (first + 1) % side, place - before


def _colours(tile: NDArray[np.uint32], row: Places, column: Places) -> Grid:
    found = tile.ravel().take(row * tile.shape[1] + column)
    colours: Grid = found.view(np.uint8).reshape(*row.shape, 4)[..., :3].astype(np.float32)
    return colours


def _resized(tile: Image.Image, across: int, down: int) -> NDArray[np.uint32]:
    """The tile in another size, a number a pixel. Around it is itself, as far as the filter reaches: no seam."""
    width, height = tile.size
    left, top = (
        min(side, ceil(3 * max(1.0, side / wanted)) + 1) for side, wanted in ((width, across), (height, down))
    )
    around = Image.fromarray(np.pad(np.asarray(tile), ((top, top), (left, left), (0, 0)), mode="wrap"))
    box = (left, top, left + width, top + height)
    sized = around.resize((across, down), Image.Resampling.LANCZOS, box=box).convert("RGBA")
    return np.asarray(sized).view(np.uint32)[..., 0]


def shade(colours: Grid, light: Grid, gloss: Grid | float = 0.0) -> Grid:
    """Colours under a light (1 is as they are), with white gloss added."""
    lit = colours * light[..., None]
    if isinstance(gloss, float) and not gloss:
        return lit
    shine = np.broadcast_to(np.asarray(gloss, dtype=np.float32), light.shape)[..., None]
    shaded: Grid = lit + (255 - lit) * shine
    return shaded


def mask(content: str, blur: float = 0.0) -> Grid:
    """How much of each pixel the drawing covers, 0 to 1. An SVG drawing in a 1000 x 1000 field."""
    covered: Grid = _alpha(content, blur, CANVAS.get()).astype(np.float32) / 255
    return covered


@lru_cache(_KEPT_DRAWINGS)
def _alpha(content: str, blur: float, side: int) -> NDArray[np.uint8]:
    alpha = _drawn(content).convert("RGBA").getchannel("A")
    if blur:
        alpha = alpha.filter(ImageFilter.GaussianBlur(blur * side / BLURRED_AT))
    return np.asarray(alpha)


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
    """An SVG drawing in a 1000 x 1000 field on `below`."""
    place, colours = _coloured(content, CANVAS.get())
    drawn = below.copy()
    drawn[place] = over(below[place], colours[..., :3].astype(np.float32), colours[..., 3] / np.float32(255))
    return drawn


@lru_cache(_KEPT_DRAWINGS)
def _coloured(content: str, side: int) -> tuple[tuple[slice, slice], NDArray[np.uint8]]:
    """Where the drawing is, and its pixels there."""
    drawing = _drawn(content).convert("RGBA")
    left, top, right, bottom = drawing.getchannel("A").getbbox() or (0, 0, 0, 0)
    return (slice(top, bottom), slice(left, right)), np.asarray(drawing.crop((left, top, right, bottom)))


def shadow(below: Grid, content: str, blur: float, depth: float) -> Grid:
    """A soft shadow of the drawing."""
    darkened: Grid = below * (1 - depth * mask(content, blur))[..., None]
    return darkened


def finished(colours: Grid, side: int) -> Image.Image:
    whole = Image.fromarray(np.clip(colours, 0, 255).astype(np.uint8), "RGB")
    return whole if whole.width == side else whole.resize((side, side), Image.Resampling.BOX)
