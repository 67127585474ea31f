"""What fields are drawn on and with: ground, inks and scale, and the simplest shapes."""

from __future__ import annotations

from dataclasses import dataclass

from studio.art.colour import Colour
from studio.art.inks import number, polygon
from studio.art.layout import Choices


@dataclass(frozen=True)
class Cloth:
    """What a field is drawn on and with."""

    ground: Colour
    inks: tuple[Colour, ...]
    scale: float
    dice: Choices

    def ink(self, index: int) -> Colour:
        return self.inks[index % len(self.inks)]

    def count(self, regular: float, *, multiple: int = 1) -> int:
        """How often something repeats along the side, at this scale."""
        return max(1, round(regular / self.scale / multiple)) * multiple


def fill(path: str, colour: Colour, opacity: float = 1.0) -> str:
    see = "" if opacity >= 1 else f' fill-opacity="{opacity}"'
    return f'<path d="{path}" fill="{colour}"{see}/>'


def line(path: str, colour: Colour, width: float) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{number(width)}"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    )


def box(x: float, y: float, width: float, height: float) -> str:
    return polygon([(x, y), (x + width, y), (x + width, y + height), (x, y + height)])
