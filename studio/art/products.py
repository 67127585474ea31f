"""The pattern on what is sold: mock-ups are in `things/`, where `{marks}` stand for what is selected."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from studio.art.tile import rasterise, repeated

#: The width and height of a size, relative to the mock-up's own.
SIZES = {
    "40x40": (0.88, 0.88), "60x40": (1.15, 0.78), "15oz": (1.0, 1.18), "large": (1.16, 1.0), "90x90": (1.16, 1.16),
    "A2": (1.16, 1.16), "50x70": (1.2, 1.2),
}  # fmt: skip
MATERIALS = {
    "white": "#f7f5f0", "black": "#2a2a2e", "navy": "#22304f", "red": "#b3382f", "sage": "#9dac88",
    "natural": "#dccaa9", "tan": "#a8713f", "oak": "#c79a63",
}  # fmt: skip
SHEEN = {"glossy": 0.5, "matte": 0.12, "velvet": 1.0, "silk": 1.0, "grasscloth": 0.25, "satin": 0.12}
#: The width of one repeat, in thousandths of the picture.
REPEATS = {"cushion": 330, "mug": 270, "wallpaper": 250, "small": 170, "large": 380}
#: The left and right edges of the mug, around which the pattern is bent, in the same unit.
MUG = (235, 655)


def product_image(tile: Image.Image, category: str, selections: Mapping[str, str], width: int) -> Image.Image:
    """Return the picture of a product, `width` pixels wide and high, with this tile printed on it."""
    svg = Path(__file__).with_name("things").joinpath(f"{category}.svg").read_text("utf-8")
    for mark, value in _marks(selections).items():
        svg = svg.replace(f"{{{mark}}}", str(value))
    repeat = REPEATS.get(selections.get("scale", ""), REPEATS.get(category, 300))
    small = ImageOps.contain(tile, (max(1, round(repeat * width / 1000)),) * 2, Image.Resampling.BOX)
    cloth = repeated(small, (width, width))
    cloth = _bent(cloth) if category == "mug" else cloth
    file = io.BytesIO()
    cloth.save(file, "PNG", compress_level=1)
    data = base64.b64encode(file.getvalue()).decode()
    return rasterise(svg.replace("{cloth}", f"data:image/png;base64,{data}"), width)


def _marks(selections: Mapping[str, str]) -> dict[str, object]:
    wide, high = SIZES.get(selections.get("size", ""), (1.0, 1.0))
    hem, roll = selections.get("hem"), selections.get("width")
    return {
        "wide": wide, "high": high, "hem": 6 if hem == "plain" else 14, "roll": 300 if roll == "68" else 230,
        "material": _first(MATERIALS, selections, ("colour", "handles", "frame")) or "none",
        "sheen": _first(SHEEN, selections, ("finish", "fabric", "paper")) or 0,
    }  # fmt: skip


def _first(known: Mapping[str, object], selections: Mapping[str, str], names: tuple[str, ...]) -> object:
    return next((known[selections[name]] for name in names if selections.get(name) in known), None)


def _bent(cloth: Image.Image) -> Image.Image:
    left, right = (edge * cloth.width / 1000 for edge in MUG)
    middle, radius = (left + right) / 2, (right - left) / 2
    turn = np.arcsin(np.clip((np.arange(cloth.width) - middle) / radius, -1, 1))
    columns = np.clip(np.round(middle + radius * turn), 0, cloth.width - 1).astype(int)
    return Image.fromarray(np.asarray(cloth)[:, columns])
