"""SVG as pixels, by resvg."""

from __future__ import annotations

import io

import resvg_py
from PIL import Image


def rasterise(svg: str, width: int) -> Image.Image:
    """The drawing as pixels, so many across."""
    png = resvg_py.svg_to_bytes(svg_string=svg, width=width, skip_system_fonts=True)
    return Image.open(io.BytesIO(png))
