"""What a drawing is drawn with: its colours, and the strokes that turn them into SVG in the recipe's style."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from studio.art.colour import Colour, mix

Point = tuple[float, float]


@dataclass(frozen=True)
class Inks:
    """Colours by their part in a drawing, and the style: flat, print, ink, watercolour, linocut or embroidery."""

    ground: Colour
    main: Colour
    second: Colour
    accent: Colour
    leaf: Colour
    line: Colour
    style: str = "flat"

    def with_main(self, main: Colour) -> Inks:
        return replace(self, main=main)

    def paint(self, path: str, colour: Colour, *, edge: float = 1.6) -> str:
        """A filled shape."""
        if self.style == "ink":
            tint = mix(self.ground, colour, 0.12)
            return f'<path d="{path}" fill="{tint}" stroke="{colour}" stroke-width="{edge}" stroke-linejoin="round"/>'
        if self.style == "watercolour":
            return (
                f'<path d="{path}" fill="{colour}" fill-opacity=".62"/>'
                f'<path d="{path}" fill="none" stroke="{colour}" stroke-opacity=".45" stroke-width="1.5"/>'
            )
        if self.style in ("linocut", "embroidery"):
            return self._hatched(path, colour)
        return f'<path d="{path}" fill="{colour}"/>'

    def _hatched(self, path: str, colour: Colour) -> str:
        """With the sheet's gouges or threads in it; a thread's edge is a darker stitch."""
        plain = f'<path d="{path}" fill="{colour}"/>'
        filled = f'{plain}<path d="{path}" fill="url(#hatching)"'
        if self.style == "linocut":
            return plain if colour == self.ground else f"{filled}/>"
        return f'{filled} stroke="{mix(colour, "#14110f", 0.18)}" stroke-width="1.6" stroke-dasharray="5 2"/>'

    def stroke(self, path: str, colour: Colour, width: float = 2.0) -> str:
        """A line with round ends."""
        shown = self.main if self.style == "ink" and colour in (self.ground, self.line) else colour
        width = min(width, 2.2) if self.style == "ink" else width
        return (
            f'<path d="{path}" fill="none" stroke="{shown}" stroke-width="{width}"'
            ' stroke-linecap="round" stroke-linejoin="round"/>'
        )

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> str:
        return self.paint(circle(x, y, radius), colour)


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def points(pairs: Iterable[Point]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in pairs)


def polygon(corners: Sequence[Point]) -> str:
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in corners) + "Z"


def circle(x: float, y: float, radius: float) -> str:
    return ellipse(x, y, radius, radius)


def ellipse(x: float, y: float, across: float, down: float) -> str:
    a, b = number(across), number(down)
    left, right = f"{number(x - across)},{number(y)}", f"{number(x + across)},{number(y)}"
    return f"M{left}A{a},{b} 0 1 1 {right}A{a},{b} 0 1 1 {left}Z"


def smooth(corners: Sequence[Point], *, closed: bool = True, tension: float = 1.0) -> str:
    """A soft curve through the points (Catmull-Rom, as Bezier curves)."""
    count = len(corners)
    spans = count if closed else count - 1

    def at(index: int) -> Point:
        return corners[index % count] if closed else corners[min(count - 1, max(0, index))]

    parts = [f"M{number(corners[0][0])},{number(corners[0][1])}"]
    for index in range(spans):
        before, start, end, after = (at(index + step) for step in (-1, 0, 1, 2))
        first = (start[0] + (end[0] - before[0]) * tension / 6, start[1] + (end[1] - before[1]) * tension / 6)
        second = (end[0] - (after[0] - start[0]) * tension / 6, end[1] - (after[1] - start[1]) * tension / 6)
        parts.append("C" + points([first, second, end]))
    return "".join(parts) + ("Z" if closed else "")


def around(angle: float, radius: float, x: float = 0, y: float = 0) -> Point:
    """The point at an angle in degrees, 0 upwards and clockwise."""
    turn = math.radians(angle - 90)
    return x + radius * math.cos(turn), y + radius * math.sin(turn)


def blade(x: float, y: float, angle: float, length: float, width: float, *, belly: float = 0.45) -> str:
    """A leaf from its foot at (x, y), pointing at an angle; `belly` is where it is widest."""
    turn = math.radians(angle)
    along, across = (math.sin(turn), -math.cos(turn)), (math.cos(turn), math.sin(turn))

    def spot(forward: float, side: float) -> Point:
        return (
            x + along[0] * forward * length + across[0] * side * width,
            y + along[1] * forward * length + across[1] * side * width,
        )

    tip = points([spot(1, 0)])
    right = points([spot(belly * 0.35, 0.62), spot(belly * 1.35, 0.66)])
    left = points([spot(belly * 1.35, -0.66), spot(belly * 0.35, -0.62)])
    return f"M{number(x)},{number(y)}C{right} {tip}C{left} {number(x)},{number(y)}Z"


def petal(angle: float, reach: float, width: float, *, foot: float = 0.0, x: float = 0, y: float = 0) -> str:
    """A round petal around (x, y): narrow at its foot, broad near its end."""
    turn = math.radians(angle)
    along, across = (math.sin(turn), -math.cos(turn)), (math.cos(turn), math.sin(turn))

    def spot(forward: float, side: float) -> Point:
        return (
            x + along[0] * forward + across[0] * side * width,
            y + along[1] * forward + across[1] * side * width,
        )

    right = points(
        [spot(foot + (reach - foot) * 0.3, 0.28), spot(reach * 0.72, 0.62), spot(reach * 0.93, 0.34)]
    )
    top = points([spot(reach * 1.02, 0.18), spot(reach * 1.02, -0.18), spot(reach * 0.93, -0.34)])
    left = points([spot(reach * 0.72, -0.62), spot(foot + (reach - foot) * 0.3, -0.28), spot(foot, 0)])
    return f"M{points([spot(foot, 0)])}C{right}C{top}C{left}Z"


def moved(
    content: str, x: float = 0, y: float = 0, angle: float = 0, scale: float = 1, *, flip: bool = False
) -> str:
    """The drawing in another place, size and direction."""
    sizes = f"{-scale if flip else scale:.4f} {scale:.4f}"
    return f'<g transform="translate({x:.3f} {y:.3f}) rotate({angle:.2f}) scale({sizes})">{content}</g>'


def dark(inks: Inks) -> str:
    """What eyes and noses are drawn in."""
    return mix(inks.main, "#14110f", 0.78)
