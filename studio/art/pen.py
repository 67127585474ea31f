"""Shapes as SVG: the pen that fills paths in the style of a pattern, and draws the motifs of `motifs.svg` with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from studio.art.colour import Colour, mix

SVG = "{http://www.w3.org/2000/svg}"
#: The threads or gouges along the edges of shapes: their share of white, their width and their dashes.
STITCHES = {"linocut": (0.75, 3.4, "16 5 7 6"), "embroidery": (0.45, 3.6, "7 3")}


class Pen:
    """Draws in one style: flat, watercolour, ink, paper, linocut or embroidery. `defs` is what its shapes refer to."""

    def __init__(self, ground: Colour, style: str) -> None:
        self._ground, self._style = ground, style
        self.defs: dict[str, str] = {}

    def paint(self, path: str, colour: Colour) -> str:
        """Return a filled shape."""
        if self._style == "ink":
            return fill(path, mix(self._ground, colour, 0.3)) + line(path, colour, 2.2)
        if self._style == "watercolour":
            return fill(path, self._wash(colour)) + line(path, colour, 1.6, 'stroke-opacity=".4"')
        if self._style == "paper":
            return fill(path, "#2a1d16", 'fill-opacity=".16" transform="translate(3 5)"') + fill(path, colour)
        if self._style in STITCHES:
            share, width, dashes = STITCHES[self._style]
            thread = mix(colour, "#ffffff", share)
            return fill(path, colour) + line(path, thread, width, f'stroke-dasharray="{dashes}"')
        return fill(path, colour)

    def _wash(self, colour: Colour) -> str:
        """Return the name of a gradient, which looks as if pigment gathers on one side of a shape."""
        name, stop = f"wash{colour[1:]}", f'<stop stop-color="{colour}" stop-opacity='
        stops = f'{stop}".42"/>{stop}".72" offset=".6"/>{stop}".95" offset="1"/>'
        self.defs[name] = f'<linearGradient id="{name}" x2=".7" y2="1">{stops}</linearGradient>'
        return f"url(#{name})"

    def motif(self, name: str, inks: Mapping[str, Colour], fruit: str = "") -> str:
        """Return a motif. `inks` are the colours by class, `fruit` is the motif that hangs on a branch."""
        drawn = ""
        for shape in _motifs()[fruit if name == "fruit" else name]:
            if shape.tag == f"{SVG}use":
                inner = self.motif(shape.attrib["href"][1:], inks, fruit)
                drawn += f'<g transform="{shape.get("transform", "scale(1)")}">{inner}</g>'
            else:
                drawn += self._path(shape.attrib, inks[shape.attrib["class"]])
        return drawn

    def _path(self, shape: Mapping[str, str], ink: Colour) -> str:
        if "stroke-width" in shape:
            return line(shape["d"], ink, float(shape["stroke-width"]))
        if "fill-opacity" in shape:
            return fill(shape["d"], ink, f'fill-opacity="{shape["fill-opacity"]}"')
        return self.paint(shape["d"], ink)


@cache
def _motifs() -> dict[str, ElementTree.Element]:
    root = ElementTree.parse(Path(__file__).with_name("motifs.svg")).getroot()  # noqa: S314  a file of our own
    return {group.attrib["id"]: group for group in root.iter(f"{SVG}g")}


def fill(path: str, colour: Colour, more: str = "") -> str:
    return f'<path d="{path}" fill="{colour}" {more}/>'


def line(path: str, colour: Colour, width: float, more: str = "") -> str:
    """Return a line with round ends."""
    ends = 'stroke-linecap="round" stroke-linejoin="round"'
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:.3g}" {ends} {more}/>'


def circle(x: float, y: float, radius: float) -> str:
    arc = f"a{radius:.1f},{radius:.1f} 0 1 1"
    return f"M{x - radius:.1f},{y:.1f}{arc} {2 * radius:.1f},0{arc} {-2 * radius:.1f},0Z"


def moved(drawing: str, x: float, y: float, angle: float = 0, scale: float = 1, *, flip: bool = False) -> str:
    """Return the drawing in another place, direction and size."""
    sizes = f"{-scale if flip else scale:.3f} {scale:.3f}"
    return f'<g transform="translate({x:.1f} {y:.1f}) rotate({angle:.1f}) scale({sizes})">{drawing}</g>'
