"""Changes to a pattern: edits and other colours change its recipe; crops and extensions then cut its tile."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageOps

from studio.art.editing import edited
from studio.art.recipe import Recipe, recipe_for
from studio.art.recolouring import in_two_inks, recolored
from studio.art.references import Traits
from studio.design import DEFAULT_MODEL, Change, Crop, Design, Edit, Extend, Recolor

#: No tile is larger than so many pixels a side: what would be is left as it is.
LARGEST = 4608


def recipe_of(design: Design, references: Sequence[Traits] = ()) -> Recipe:
    """The recipe of a design, with its edits and its other colours. A model's manner is a style of that name."""
    style = None if design.model == DEFAULT_MODEL else design.model
    recipe = recipe_for(design.prompt, design.seed, style=style, traits=references)
    if design.palette:
        recipe = recolored(recipe, design.palette)
    for change in design.changes:
        if isinstance(change, Recolor):
            recipe = recolored(recipe, change.palette)
        elif isinstance(change, Edit):
            recipe = edited(recipe, change.prompt)
    return in_two_inks(recipe) if recipe.style == "linocut" else recipe


def cut(tile: Image.Image, changes: Sequence[Change]) -> Image.Image:
    """The tile after its crops and extensions, seamless as before."""
    for change in changes:
        if isinstance(change, Crop):
            tile = _cropped(tile, change)
        elif isinstance(change, Extend):
            tile = _extended(tile, change)
    return tile


def _cropped(tile: Image.Image, crop: Crop) -> Image.Image:
    """The area and its mirror images, which meet without a seam."""
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


def _extended(tile: Image.Image, extend: Extend) -> Image.Image:
    """The tile in so many columns and rows: a larger repeat."""
    size = extend.columns * tile.width, extend.rows * tile.height
    if max(size) > LARGEST:
        return tile
    whole = Image.new("RGB", size)
    for x in range(0, size[0], tile.width):
        for y in range(0, size[1], tile.height):
            whole.paste(tile, (x, y))
    return whole
