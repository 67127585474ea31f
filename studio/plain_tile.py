"""A seeded tile in place of every picture, for a studio without the package `studio.art`.

The same design is the same tile, another one nearly always another: turned quarters of circles in three colours. It
shows which rows share a pattern, and nothing of what the prompt says.
"""

from __future__ import annotations

import colorsys
import hashlib
import os
from pathlib import Path

from PIL import Image, ImageDraw

from studio.design import Design, Recolor

#: So many cells a side, each of so many pixels before the picture is brought to its size.
CELLS, CELL = 8, 64
#: A product's tile leaves such a part of the picture free on each side.
MARGIN = 1 / 8
MARGIN_COLOUR = "#efece6"


def write_tile(design: Design, *, on_product: bool, width: int, path: Path) -> None:
    """Write the picture of this design as PNG, `width` pixels wide and high. The file appears whole."""
    image = tile(design).resize((width, width), Image.Resampling.LANCZOS)
    if on_product:
        edge = round(width * MARGIN)
        image = image.crop((edge, edge, width - edge, width - edge))
        whole = Image.new("RGB", (width, width), MARGIN_COLOUR)
        whole.paste(image, (edge, edge))
        image = whole
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    image.save(part, "PNG")
    part.replace(path)


def tile(design: Design) -> Image.Image:
    """The tile, which repeats without a seam: no circle crosses its cell."""
    digest = hashlib.sha256(design.model_dump_json().encode()).digest()
    ground, *inks = colours(design, digest)
    image = Image.new("RGB", (CELLS * CELL, CELLS * CELL), ground)
    pen = ImageDraw.Draw(image)
    half = CELLS // 2
    for row in range(CELLS):
        for column in range(CELLS):
            # The quarter of the tile that the digest fills is seen four times, turned over.
            place = min(row, CELLS - 1 - row) * half + min(column, CELLS - 1 - column)
            throw = digest[place]
            _quarter(pen, column, row, corner=throw % 4, ink=inks[throw // 4 % len(inks)])
    return image


def _quarter(pen: ImageDraw.ImageDraw, column: int, row: int, *, corner: int, ink: str) -> None:
    """A quarter of a circle around a corner of its cell, corners clockwise from the upper left."""
    if row >= CELLS // 2:
        corner = (3, 2, 1, 0)[corner]
    if column >= CELLS // 2:
        corner = (1, 0, 3, 2)[corner]
    right, low = corner in (1, 2), corner in (2, 3)
    x, y = (column + right) * CELL, (row + low) * CELL
    angle = (0, 90, 180, 270)[corner]
    pen.pieslice((x - CELL, y - CELL, x + CELL - 1, y + CELL - 1), angle, angle + 90, fill=ink)


def colours(design: Design, digest: bytes) -> list[str]:
    """The ground and the inks: those that were asked for last, else three from the digest."""
    asked = [change.palette for change in design.changes if isinstance(change, Recolor)]
    palette = asked[-1] if asked else design.palette
    if len(palette) > 1:
        return list(palette)
    hue = digest[-1] / 256
    return [
        *(palette or [_colour(hue, 0.93, 0.45)]),
        _colour(hue + 0.5, 0.45, 0.5),
        _colour(hue + 0.58, 0.7, 0.55),
        _colour(hue + 0.08, 0.35, 0.4),
    ]


def _colour(hue: float, lightness: float, saturation: float) -> str:
    parts = colorsys.hls_to_rgb(hue % 1, lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
