"""The pattern on the thing that is sold: cushion, mug, tote bag, wallpaper, scarf, poster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import cos, radians, sin
from pathlib import Path
from types import MappingProxyType

import numpy as np
from PIL import Image

from studio.art.changes import cut, recipe_of
from studio.art.colour import Colour, mix, rgb, shift
from studio.art.inks import ellipse
from studio.art.recipe import Recipe
from studio.art.references import Traits
from studio.art.room import ellipse_svg, lamp, plant, sideboard, skirting_and_floor
from studio.art.surface import (
    CANVAS,
    Grid,
    Printed,
    draw_over,
    finished,
    lay,
    mask,
    over,
    pixels,
    shade,
    shadow,
)
from studio.art.tile import SIDE, drawn_tile, save
from studio.design import Crop, Design, Extend

Selections = Mapping[str, str]

MATERIALS = MappingProxyType(
    {
        "white": "#f4f2ec", "black": "#26262a", "navy": "#22304f", "red": "#b3382f", "sage": "#9dac88",
        "natural": "#d9c6a3", "tan": "#a8713f", "oak": "#c79a63", "none": "#f4f2ec",
    }
)  # fmt: skip


def product_image(
    design: Design,
    category: str,
    selections: Selections,
    width: int = SIDE,
    references: tuple[Traits, ...] = (),
    kept_tile: Path | None = None,
) -> Image.Image:
    """The picture of a product: the pattern of this design on this category's thing, `width` pixels wide.

    `kept_tile` is the file of the pattern's own picture: read, or written if it is not there yet.
    """
    recipe, tile = _rendered(design, references, kept_tile)
    wall = _wall_colour(recipe.palette.ground)
    # Not twice as large: four times the work, for edges that the drawing has smooth already.
    before = CANVAS.set(max(width, SIDE))
    try:
        return finished(SCENES[category](tile, wall, selections), width)
    finally:
        CANVAS.reset(before)


@lru_cache(32)
def _rendered(
    design: Design, references: tuple[Traits, ...], kept_tile: Path | None
) -> tuple[Recipe, Printed]:
    """The products of a catalog come in groups that share a pattern."""
    recipe = recipe_of(design, references)
    cuts = [change for change in design.changes if isinstance(change, Crop | Extend)]
    if not cuts:
        return recipe, Printed(_tile(recipe, kept_tile))
    whole = cut(drawn_tile(recipe), cuts)
    return recipe, Printed(whole, whole.width / SIDE, whole.height / SIDE)


def _tile(recipe: Recipe, kept: Path | None) -> Image.Image:
    if kept is not None and kept.exists():
        with Image.open(kept) as image:
            return image.convert("RGB")
    drawn = drawn_tile(recipe)
    if kept is not None:
        save(drawn, kept)
    return drawn


def _wall_colour(ground: Colour) -> Colour:
    """A quiet wall that the pattern stands out from."""
    return mix("#ece7df", shift(ground, chroma=0.6), 0.12)


def _backdrop(wall: Colour, floor: Colour | None = None, horizon: int = 800) -> Grid:
    """A wall that light falls on from the upper left, and a table."""
    place = pixels()
    colours = np.ones((*place.x.shape, 3), np.float32) * np.array(rgb(wall), dtype=np.float32)
    light = 1.05 - 0.12 * np.hypot(place.x - 0.3, place.y - 0.2)
    colours = shade(colours, light)
    if floor is None:
        return colours
    table = f'<rect y="{horizon}" width="1000" height="{1000 - horizon}" fill="{floor}"/>'
    colours = draw_over(colours, table)
    return shadow(colours, f'<rect y="{horizon - 6}" width="1000" height="14"/>', 9, 0.16)


def cushion(tile: Printed, wall: Colour, selections: Selections) -> Grid:
    half = {"40x40": (335, 335), "50x50": (372, 372), "60x40": (430, 290)}.get(
        selections.get("size", ""), (350, 350)
    )
    across, down = half
    shape = _cushion_shape(500, 510, across, down)
    back = _backdrop(wall, shift(wall, lighter=-0.09), 760)
    back = shadow(back, ellipse_svg(500, 510 + down - 12, across * 0.92, 46), 26, 0.5)
    back = shadow(back, f'<path d="{shape}" transform="translate(16 22)"/>', 30, 0.28)
    place = pixels()
    x, y = (place.x - 0.5) * 1000 / across, (place.y - 0.51) * 1000 / down
    inside = np.clip(1 - np.minimum(x**2, 1), 0, 1) * np.clip(1 - np.minimum(y**2, 1), 0, 1)
    bulge = 1 - 0.16 * inside**0.7
    cloth = lay(tile, 0.5 + (place.x - 0.5) * bulge, 0.5 + (place.y - 0.5) * bulge, 0.36)
    height = inside**0.42
    slope_y, slope_x = np.gradient(height)
    steep = 44 * CANVAS.get() / 1024  # slopes are by the pixel
    light = 0.9 + np.clip(steep * (0.5 * slope_x + 0.85 * slope_y), -0.34, 0.2) + 0.14 * (height - 0.6)
    velvet = 0.10 if selections.get("fabric") == "velvet" else 0.03
    creases = 0.045 * np.sin(9 * np.arctan2(y, x) + 6 * np.hypot(x, y)) * np.clip(np.hypot(x, y) - 0.55, 0, 1)
    light = np.clip(light + creases, 0.42, 1.14)
    lit = shade(cloth, light, np.clip(velvet * (0.9 - np.hypot(x + 0.3, y + 0.4)), 0, 1))
    lit = over(back, lit, mask(f'<path d="{shape}"/>'))
    seam = mix(wall, "#4a4038", 0.55)
    return draw_over(
        lit, f'<path d="{shape}" fill="none" stroke="{seam}" stroke-opacity=".55" stroke-width="5"/>'
    )


def _cushion_shape(x: float, y: float, a: float, b: float) -> str:
    """Corners stand out, sides are drawn in."""
    pull = 0.075
    right, low = x + a, y + b
    left, top = x - a, y - b
    return (
        f"M{left},{top}C{x - a * 0.6},{top + b * pull} {x + a * 0.6},{top + b * pull} {right},{top}"
        f"C{right - a * pull},{y - b * 0.6} {right - a * pull},{y + b * 0.6} {right},{low}"
        f"C{x + a * 0.6},{low - b * pull} {x - a * 0.6},{low - b * pull} {left},{low}"
        f"C{left + a * pull},{y + b * 0.6} {left + a * pull},{y - b * 0.6} {left},{top}Z"
    )


def mug(tile: Printed, wall: Colour, selections: Selections) -> Grid:
    big = selections.get("size") == "15oz"
    left, right, top, bottom, bend = 245.0, 665.0, (215.0 if big else 265.0), 800.0, 38.0
    middle, radius = (left + right) / 2, (right - left) / 2
    enamel = MATERIALS.get(selections.get("colour", "white"), "#f4f2ec")
    back = _backdrop(wall, shift(wall, lighter=-0.1), 700)
    back = shadow(back, ellipse_svg(middle + 60, bottom + 16, radius * 1.35, 42), 28, 0.5)
    handle = (
        f"M{right - 14},{top + 120}C{right + 190},{top + 70} {right + 190},{bottom - 90} "
        f"{right - 20},{bottom - 110}"
    )
    for colour, width in (
        (shift(enamel, lighter=-0.12), 58),
        (enamel, 46),
        (shift(enamel, lighter=0.07), 12),
    ):
        back = draw_over(
            back,
            f'<path d="{handle}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>',
        )
    body = (
        f"M{left},{top}V{bottom - 60}Q{left},{bottom} "
        f"{left + 60},{bottom + 8}Q{middle},{bottom + bend} {right - 60},{bottom + 8}"
    )
    body += f"Q{right},{bottom} {right},{bottom - 60}V{top}Q{middle},{top + bend * 2} {left},{top}Z"
    place = pixels()
    x = np.clip((place.x * 1000 - middle) / radius, -0.9995, 0.9995)
    u = middle / 1000 + radius / 1000 * np.arcsin(x)
    v = place.y - 0.04 * np.sqrt(1 - x**2)
    light = 0.66 + 0.44 * np.sqrt(1 - (np.clip(x + 0.24, -1, 1)) ** 2) - 0.1 * np.clip(x, 0, 1)
    glossy = selections.get("finish") != "matte"
    gloss = (0.34 if glossy else 0.05) * np.exp(-(((x + 0.56) / 0.075) ** 2)) + (
        0.12 if glossy else 0.03
    ) * np.exp(-(((x - 0.62) / 0.12) ** 2))
    lit = shade(lay(tile, u, v, 0.29), light, gloss)
    picture = over(back, lit, mask(f'<path d="{body}"/>'))
    inner = shift(enamel, lighter=-0.1)
    rim = ellipse_svg(middle, top, radius, bend, enamel) + ellipse_svg(
        middle, top + 4, radius - 13, bend - 9, inner
    )
    rim += f'<path d="{ellipse(middle, top + 16, radius - 40, bend - 16)}" fill="{shift(inner, lighter=-0.07)}"/>'
    return draw_over(picture, rim)


def tote_bag(tile: Printed, wall: Colour, selections: Selections) -> Grid:
    wide = 300.0 if selections.get("size") == "large" else 262.0
    strap = MATERIALS.get(selections.get("handles", "natural"), "#d9c6a3")
    top, bottom = 340.0, 915.0
    body = f"M{500 - wide},{top}Q500,{top + 16} {500 + wide},{top}L{500 + wide * 1.05:.0f},{bottom - 30}"
    body += f"Q{500 + wide * 1.05:.0f},{bottom} {500 + wide},{bottom}Q500,{bottom + 12} {500 - wide},{bottom}"
    body += f"Q{500 - wide * 1.05:.0f},{bottom} {500 - wide * 1.05:.0f},{bottom - 30}Z"
    back = shadow(_backdrop(wall), f'<path d="{body}" transform="translate(20 18)"/>', 26, 0.34)
    knob = f'<circle cx="500" cy="84" r="19" fill="{MATERIALS["oak"]}"/><circle cx="496" cy="80" r="9" fill="#e0bb8a"/>'
    loop = f"C{500 - wide * 0.42},150 478,96 500,92C522,96 {500 + wide * 0.42},150"
    behind = (
        f'<path d="M{500 - wide * 0.36},{top + 12}{loop} {500 + wide * 0.36},{top + 12}" '
        f'fill="none" stroke="{shift(strap, lighter=-0.12)}" stroke-width="24"/>'
    )
    picture = draw_over(back, knob + behind)
    place = pixels()
    x, y = (place.x - 0.5) * 1000 / wide, (place.y * 1000 - top) / (bottom - top)
    sway = 0.012 * np.sin(5 * x + 3 * y) * y
    fold = (
        0.06 * np.sin(6.5 * x + 1.2 * np.sin(3 * y)) * (0.35 + y)
        - 0.04 * np.abs(x) ** 4
        + 0.03 * np.sin(14 * x - 4 * y) * y
    )
    light = np.clip(1.0 + fold - 0.1 * np.clip(y - 0.86, 0, 1) * 5 - 0.05 * x, 0.5, 1.12)
    weave = 1 + 0.018 * np.sin(place.x * 1900) * np.sin(place.y * 1900)
    picture = over(
        picture,
        shade(lay(tile, place.x + sway, place.y + 0.3 * sway, 0.31), light * weave),
        mask(f'<path d="{body}"/>'),
    )
    hem = (
        f'<path d="M{500 - wide},{top + 34}Q500,{top + 50} {500 + wide},{top + 34}" '
        'fill="none" stroke="#00000055" stroke-width="2.4" stroke-dasharray="9 6"/>'
    )
    front = (
        f'<path d="M{500 - wide * 0.52},{top + 70}L{500 - wide * 0.5},{top}{loop.replace("150", "190")} '
        f'{500 + wide * 0.5},{top}L{500 + wide * 0.52},{top + 70}" fill="none" '
        f'stroke="{strap}" stroke-width="30" stroke-linejoin="round"/>'
    )
    stitches = "".join(
        f'<path d="M{x - 10},{top + 58}l20,-22m-20,0l20,22" stroke="#00000066" stroke-width="2.2"/>'
        for x in (500 - wide * 0.515, 500 + wide * 0.515)
    )
    return draw_over(shadow(picture, front, 6, 0.3), hem + front + stitches)


def wallpaper(tile: Printed, wall: Colour, selections: Selections) -> Grid:
    period = {"small": 0.15, "large": 0.34}.get(selections.get("scale", ""), 0.22)
    place = pixels()
    rows = {"vinyl": 0.0, "grasscloth": 0.022}.get(selections.get("finish", ""), 0.006)
    light = 1.07 - 0.26 * place.x - 0.1 * place.y + rows * np.sin(place.y * 1400)
    colours = shade(lay(tile, place.x, place.y, period), np.clip(light, 0.6, 1.1))
    colours = _window_light(colours)
    colours = draw_over(colours, skirting_and_floor(wall))
    colours = shadow(colours, '<rect y="800" width="1000" height="20"/>', 8, 0.2)
    colours = shadow(colours, ellipse_svg(360, 935, 250, 22) + ellipse_svg(835, 925, 80, 16), 16, 0.42)
    return draw_over(colours, sideboard() + plant(835, 905) + lamp(235, 560))


def _window_light(colours: Grid) -> Grid:
    panes = '<path d="M560,60L760,150V400L560,300ZM575,325L760,425V640L575,540Z"/>'
    glow = mask(panes, 18)
    return shade(colours, 1 + 0.1 * glow, 0.05 * glow)


def scarf(tile: Printed, wall: Colour, selections: Selections) -> Grid:
    large = selections.get("size") == "90x90"
    half = 372.0 if large else 325.0
    place = pixels()
    turn = radians(-9)
    x, y = (place.x - 0.5) * 1000, (place.y - 0.5) * 1000
    u, v = x * cos(turn) - y * sin(turn), x * sin(turn) + y * cos(turn)
    edge = (
        f"M-{half},-{half + 4}C-100,-{half - 12} 120,-{half + 14} "
        f"{half},-{half - 4}C{half - 12},-80 {half + 14},120 {half},{half}"
    )
    edge += (
        f"C120,{half - 12} -80,{half + 12} -{half - 4},{half - 2}C-{half - 12},90 "
        f"-{half + 12},-100 -{half},-{half + 4}Z"
    )
    frame = 'transform="translate(500 500) rotate(9)"'
    picture = shadow(
        _backdrop(wall), f'<path d="{edge}" transform="translate(512 518) rotate(9)"/>', 20, 0.34
    )
    ripple = 0.055 * np.sin(u / 70 + 1.4 * np.sin(v / 130)) + 0.035 * np.sin((u + v) / 55 + 2)
    silk = selections.get("fabric") == "silk"
    light = 0.98 + ripple - 0.04 * (u + v) / 1000
    gloss = np.clip(ripple * (1.5 if silk else 0.4), 0, 0.14)
    cloth = lay(tile, 0.5 + u / 1000 + 0.006 * ripple, 0.5 + v / 1000 + 0.01 * ripple, 0.3)
    hem_colour = np.array(rgb(_strong(tile)), dtype=np.float32)
    beyond = np.maximum(np.abs(u), np.abs(v)) - (half - 34)
    band = np.clip(beyond * CANVAS.get() / 1000 + 0.5, 0, 1)
    cloth = over(cloth, np.ones_like(cloth) * hem_colour, band)
    picture = over(picture, shade(cloth, light, gloss), mask(f'<path d="{edge}" {frame}/>'))
    stitch = (
        f'<path d="{edge}" {frame} fill="none" stroke="#00000038" '
        f'stroke-width="{5 if selections.get("hem") == "rolled" else 2}"/>'
    )
    return draw_over(picture, stitch)


def _strong(tile: Printed) -> Colour:
    """The darkest of the tile's common colours: the hem's."""
    common = tile.image.quantize(6).convert("RGB").getcolors(SIDE * SIDE) or []
    darkest = min((colour for count, colour in common if count > SIDE), key=_brightness)
    assert isinstance(darkest, tuple)
    return "#" + "".join(f"{part:02x}" for part in darkest)


def _brightness(colour: object) -> float:
    assert isinstance(colour, tuple)
    return float(sum(colour))


def poster(tile: Printed, wall: Colour, selections: Selections) -> Grid:
    frame = selections.get("frame", "none")
    width = 226.0 if selections.get("size") == "A3" else 256.0
    height, middle = width * 1.41, 420.0
    picture = _backdrop(shift(wall, lighter=-0.04), "#b78d62", 905)
    border = 20 if frame != "none" else 0
    outer = (
        f'<rect x="{500 - width - border}" y="{middle - height - border}" '
        f'width="{2 * (width + border)}" height="{2 * (height + border)}"/>'
    )
    picture = shadow(picture, outer.replace("<rect", '<rect transform="translate(14 20)"'), 18, 0.36)
    if frame != "none":
        wood = MATERIALS[frame]
        picture = draw_over(
            picture,
            outer.replace("/>", f' fill="{wood}" stroke="{shift(wood, lighter=-0.1)}" stroke-width="3"/>'),
        )
    place = pixels()
    margin = 34 if frame != "none" else 26
    sheet = f'<rect x="{500 - width}" y="{middle - height}" width="{2 * width}" height="{2 * height}" fill="#fbfaf5"/>'
    picture = draw_over(picture, sheet)
    printed = (
        f'<rect x="{500 - width + margin}" y="{middle - height + margin}" '
        f'width="{2 * (width - margin)}" height="{2 * (height - margin)}"/>'
    )
    gloss = (
        0.10 * np.exp(-(((place.x + 0.6 * place.y - 0.62) / 0.09) ** 2))
        if frame != "none" or selections.get("paper") == "satin"
        else 0.0
    )
    picture = over(
        picture, shade(lay(tile, place.x, place.y, 0.26), 1.02 - 0.08 * place.x, gloss), mask(printed)
    )
    picture = shadow(picture, ellipse_svg(880, 968, 74, 14), 12, 0.4)
    return draw_over(picture, plant(880, 960))


SCENES: MappingProxyType[str, Callable[[Printed, Colour, Selections], Grid]] = MappingProxyType(
    {
        "cushion": cushion,
        "mug": mug,
        "tote_bag": tote_bag,
        "wallpaper": wallpaper,
        "scarf": scarf,
        "poster": poster,
    }
)
