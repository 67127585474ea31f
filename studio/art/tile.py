"""From a design to the tile: SVG first, then pixels, periodic in both directions at every step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.art.changes import cut, recipe_of
from studio.art.raster import rasterise
from studio.art.recipe import Recipe
from studio.art.references import Traits
from studio.art.sheet import sheet_for, to_svg
from studio.design import Design

#: The longer side of the finished tile in pixels, and how much larger it is drawn before it is averaged down.
SIDE = 512
OVERSAMPLING = 2


def tile_image(design: Design, references: Sequence[Traits] = (), side: int = SIDE) -> Image.Image:
    """The tile of a design. `references` are the traits of its reference pictures; `side` the longer side's pixels."""
    return fitted(cut(drawn_tile(recipe_of(design, references), side), design.changes), side)


def drawn_tile(recipe: Recipe, side: int = SIDE) -> Image.Image:
    """The square tile of a recipe."""
    drawn = rasterise(to_svg(sheet_for(recipe)), side * OVERSAMPLING)
    return _textured(drawn.convert("RGB").reduce(OVERSAMPLING), recipe)


def fitted(tile: Image.Image, side: int) -> Image.Image:
    """The tile with so many pixels on its longer side."""
    longer = max(tile.size)
    if longer == side:
        return tile
    width, height = (max(1, round(side * length / longer)) for length in tile.size)
    return tile.resize((width, height), Image.Resampling.LANCZOS)


def _textured(image: Image.Image, recipe: Recipe) -> Image.Image:
    if recipe.texture == "none":
        return image
    grain = texture(recipe.texture, recipe.seed, image.width)
    pixels = np.asarray(image, dtype=np.float32) * (1 + grain[:, :, None])
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8), "RGB")


def save(image: Image.Image, path: Path) -> None:
    """Write the file whole: it appears under its name when it is complete."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    # Level 6 takes four times as long, for a fifth less.
    image.save(part, "PNG", compress_level=2)
    part.replace(path)


def texture(name: str, seed: int, side: int = SIDE) -> NDArray[np.float32]:
    """How much lighter or darker each pixel is, as a part; periodic, since it is made from whole waves."""
    generator = np.random.Generator(np.random.PCG64(seed))
    size = (side, side)
    if name == "linen":
        rows, columns = _noise(generator, size, 1.2, (1.0, 14.0)), _noise(generator, size, 1.2, (14.0, 1.0))
        return (0.026 * rows + 0.026 * columns).astype(np.float32)
    if name == "wash":
        return (
            0.02 * _noise(generator, size, 34.0)
            + 0.02 * _noise(generator, size, 9.0)
            + 0.012 * _noise(generator, size, 1.0)
        ).astype(np.float32)
    return (0.014 * _noise(generator, size, 1.0) + 0.01 * _noise(generator, size, 3.0)).astype(np.float32)


def _noise(
    generator: np.random.Generator,
    shape: tuple[int, int],
    size: float,
    stretch: tuple[float, float] = (1.0, 1.0),
) -> NDArray[np.float64]:
    """Smooth noise of mean 0 and deviation 1 with features of about `size` pixels (rows, columns stretched)."""
    white = np.fft.rfft2(generator.standard_normal(shape))
    down, across = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None, :]
    reach = (down * size * stretch[0]) ** 2 + (across * size * stretch[1]) ** 2
    kept = np.fft.irfft2(white * np.exp(-2 * np.pi**2 * reach / 2), s=shape)
    noise: NDArray[np.float64] = (kept - kept.mean()) / kept.std()
    return noise
