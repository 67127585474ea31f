"""SVG as pixels, by resvg."""

from __future__ import annotations

import io
import re
from functools import partial

import resvg_py
from PIL import Image

_ROOT = re.compile(r'<svg xmlns="[^"]*" width="([^"]*)" height="([^"]*)">')


def rasterise(
    svg: str, width: int, height: int | None = None, top: float = 0, rows: float = 0
) -> Image.Image:
    """The drawing as pixels. With a `height` exactly these, stretched by less than one if they must be.

    `top` and `rows`, in drawing units: only this strip of it.
    """
    if height is not None:
        svg = _ROOT.sub(partial(_sized, width, height, top, rows), svg, count=1)
    png = resvg_py.svg_to_bytes(svg_string=svg, width=width, skip_system_fonts=True)
    return Image.open(io.BytesIO(png))


def _sized(width: int, height: int, top: float, rows: float, root: re.Match[str]) -> str:
    box = f"0 {top} {root[1]} {rows or root[2]}"
    size = f'width="{width}" height="{height}" viewBox="{box}" preserveAspectRatio="none"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
