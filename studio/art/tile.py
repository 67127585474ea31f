"""Tiles: draws the pixels of a design's tile, which repeats without a seam."""

from __future__ import annotations

import io
from collections.abc import Callable

import resvg_py
from PIL import Image, ImageOps

from studio.art import scenes, shapes
from studio.art.recipe import Recipe, recipe_of
from studio.art.sheet import Sheet
from studio.design import Crop, Design, Extend

#: The longer side of a tile in pixels, and the longest that a crop or an extension may make it before it is fitted.
SIDE, LARGEST = 512, 4608
FAMILIES: dict[str, Callable[[Sheet], None]] = {
    "waterside": scenes.draw_waterside, "garden": scenes.draw_garden, "foliage": scenes.draw_foliage,
    "arches": shapes.draw_arches, "fans": shapes.draw_fans, "confetti": shapes.draw_confetti,
    "plain": shapes.draw_plain,
}  # fmt: skip


def tile_image(design: Design, side: int = SIDE) -> Image.Image:
    """Return the tile of a design, `side` pixels long."""
    tile = rasterise(svg_of(recipe_of(design)), side)
    for change in design.changes:
        if isinstance(change, Crop):
            tile = _cropped(tile, change)
        elif isinstance(change, Extend):
            size = change.columns * tile.width, change.rows * tile.height
            tile = repeated(tile, size) if max(size) <= LARGEST else tile
    return tile if max(tile.size) == side else ImageOps.contain(tile, (side, side))


def svg_of(recipe: Recipe) -> str:
    """Return the tile of a recipe as SVG."""
    sheet = Sheet(recipe)
    FAMILIES[recipe.family](sheet)
    return sheet.svg()


def rasterise(svg: str, width: int) -> Image.Image:
    """Return the drawing as pixels, so many across."""
    png = resvg_py.svg_to_bytes(svg_string=svg, width=width, skip_system_fonts=True)
    return Image.open(io.BytesIO(png)).convert("RGB")


def repeated(tile: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return an area of this size that the tile covers, from the upper left on."""
    whole = Image.new("RGB", size)
    for x in range(0, size[0], tile.width):
        for y in range(0, size[1], tile.height):
            whole.paste(tile, (x, y))
    return whole


def _cropped(tile: Image.Image, crop: Crop) -> Image.Image:
    """Return the area and its mirror images, which meet without a seam."""
    width, height = max(8, round(crop.width * tile.width)), max(8, round(crop.height * tile.height))
    if 2 * max(width, height) > LARGEST:
        return tile
    left, top = round(crop.x * tile.width), round(crop.y * tile.height)
    area = tile.crop((left, top, left + width, top + height))
    whole = Image.new("RGB", (2 * width, 2 * height))
    for x, half in ((0, area), (width, ImageOps.mirror(area))):
        whole.paste(half, (x, 0))
        whole.paste(ImageOps.flip(half), (x, height))
    return whole
