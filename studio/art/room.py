"""Furniture around the products, as SVG in a 1000 x 1000 field."""

from __future__ import annotations

from studio.art.colour import Colour, shift
from studio.art.inks import around, blade, ellipse


def skirting_and_floor(wall: Colour) -> str:
    boards = "".join(
        f'<path d="M{x},1000L{500 + (x - 500) * 0.72:.0f},850" stroke="#8f6a45" stroke-width="2.4"/>'
        for x in range(-300, 1400, 130)
    )
    return (
        f'<rect y="850" width="1000" height="150" fill="#b78d62"/>{boards}'
        f'<rect y="800" width="1000" height="52" fill="{shift(wall, lighter=0.04)}"/>'
        f'<rect y="812" width="1000" height="3" fill="{shift(wall, lighter=-0.1)}"/>'
    )


def sideboard() -> str:
    legs = "".join(
        f'<path d="M{x},830L{x + lean},940h-16L{x - 26},830Z" fill="#5c3f28"/>'
        for x, lean in ((170, -16), (575, 16))
    )
    doors = "".join(
        f'<rect x="{x}" y="672" width="148" height="146" rx="4" fill="#a9764a"/><circle '
        f'cx="{x + 130}" cy="745" r="6" fill="#e3c28f"/>'
        for x in (134, 290, 446)
    )
    books = "".join(
        f'<rect x="{x}" y="{650 - height}" width="17" height="{height}" rx="2" fill="{colour}"/>'
        for x, height, colour in (
            (440, 84, "#3f5a6b"),
            (459, 96, "#c9a35a"),
            (478, 76, "#a5503f"),
            (497, 90, "#e6dccb"),
            (516, 82, "#6f7f5f"),
        )
    )
    return (
        f'{legs}{books}<rect x="118" y="648" width="492" height="186" rx="9" fill="#8f5f3a"/>'
        f'<rect x="118" y="648" width="492" height="14" rx="6" fill="#b98456"/>{doors}'
    )


def lamp(x: float, y: float) -> str:
    return (
        f'<path d="M{x - 16},{y + 90}C{x - 44},{y + 40} {x - 30},{y + 10} '
        f'{x},{y + 6}C{x + 30},{y + 10} {x + 44},{y + 40} {x + 16},{y + 90}Z" fill="#e9e2d4"/>'
        f'<path d="M{x - 6},{y + 8}V{y - 30}h12V{y + 8}Z" fill="#b99a5b"/>'
        f'<path d="M{x - 48},{y - 128}H{x + 48}L{x + 76},{y - 26}H{x - 76}Z" fill="#f7efdc"/>'
        f'<path d="M{x - 76},{y - 26}H{x + 76}" stroke="#e4d6b8" stroke-width="4"/>'
    )


#: Of a plant's leaves: direction, length, colour; back to front.
LEAVES = (
    (-64, 170, "#3f6a50"),
    (62, 165, "#37604a"),
    (-34, 235, "#4b7a5a"),
    (36, 240, "#446f54"),
    (2, 280, "#548663"),
)


def plant(x: float, y: float) -> str:
    leaves = "".join(_big_leaf(x, y - 120, turn, length, colour) for turn, length, colour in LEAVES)
    return (
        f'{leaves}<path d="M{x - 62},{y - 130}H{x + 62}L{x + 46},{y}H{x - 46}Z" '
        f'fill="#d9d0c1"/><path d="M{x - 66},{y - 134}h132v22h-132Z" fill="#e6ded0"/>'
    )


def ellipse_svg(x: float, y: float, across: float, down: float, colour: Colour = "#000000") -> str:
    return f'<path d="{ellipse(x, y, across, down)}" fill="{colour}"/>'


def _big_leaf(x: float, y: float, turn: float, length: float, colour: Colour) -> str:
    tip_x, tip_y = around(turn, length * 0.8, x, y)
    rib = f'<path d="M{x},{y}L{tip_x:.0f},{tip_y:.0f}" stroke="#2c4a38" stroke-width="2.4"/>'
    return f'<path d="{blade(x, y, turn, length, 62, belly=0.6)}" fill="{colour}"/>{rib}'
