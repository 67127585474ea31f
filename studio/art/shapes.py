"""Patterns of plain shapes: arches, fans, confetti, and the plain tile of a prompt that names nothing known."""

from __future__ import annotations

from itertools import product

from studio.art.colour import Colour
from studio.art.pen import circle, fill, line, moved
from studio.art.sheet import SIDE, Sheet


def draw_arches(sheet: Sheet) -> None:
    """Draw arches within arches, in rows that stand straight or like bricks."""
    dice = sheet.dice
    columns = max(2, round(dice.choice((3, 4, 5)) / sheet.recipe.size))
    rows = max(2, 2 * round(columns * dice.choice((0.5, 0.65))))
    brick, (down, across) = dice.choice((0.0, 0.5)), dice.choice(((1, 0), (0, 1), (1, 1)))
    width, height, first = SIDE / columns, SIDE / rows, dice.choice((0, 1, 2))
    steps = (7 if columns < 4 else 5) + dice.uniform(0.3, 0.95)
    arches = [_arches(sheet, (width * 0.47, height * 0.47), steps, start) for start in range(3)]
    for row, column in product(range(-1, rows + 2), range(-1, columns + 1)):
        kind = (first + row % rows * down + column % columns * across) % 3
        sheet.lay(moved(arches[kind], (column + 0.5 + row % 2 * brick) * width, (row + 0.5) * height))


def _arches(sheet: Sheet, half: tuple[float, float], steps: float, start: int) -> str:
    """Draw one arch within another, each narrower by one of so many steps; `half` is half the width and height."""
    inks, drawn = [*sheet.palette.inks[start:3], *sheet.palette.inks[:start]], ""
    for band in range(int(steps)):
        reach = half[0] * (1 - band / steps)
        path = f"M{-reach:.1f},{half[1]:.1f}V{half[0] * 0.05 + reach * 0.2:.1f}"
        path += f"a{reach:.1f},{reach:.1f} 0 0 1 {2 * reach:.1f},0V{half[1]:.1f}Z"
        drawn += sheet.pen.paint(path, sheet.palette.ground if band % 2 else inks[band // 2 % 3])
    return drawn


def draw_fans(sheet: Sheet) -> None:
    """Draw fans of fine lines, in rows that each cover the foot of the one above (seigaiha)."""
    dice, palette = sheet.dice, sheet.palette
    columns, rings = max(3, round(dice.choice((5, 6, 7)) / sheet.recipe.size)), dice.choice((4, 5, 6))
    radius, rows, pale = SIDE / columns / 2, 2 * columns, palette.tint(palette.inks[0], 0.18)
    tones = [*[palette.inks[0]] * 5, palette.inks[2], pale, pale]
    plan = [(dice.choice(tones), dice.choice((rings,) * 7 + (2,))) for _ in range(columns * rows)]
    for row, column in product(range(-1, rows + 3), range(-1, columns + 1)):
        x, y = (column + row % 2 * 0.5 + 0.5) * 2 * radius, row * SIDE / rows
        tone, drawn = plan[row % rows * columns + column % columns]
        edge = circle(x, y, radius)
        circles = "".join(circle(x, y, radius * (1 - ring / rings)) for ring in range(1, drawn))
        sheet.lay(fill(edge, tone), line(edge, palette.ground, 5), line(circles, palette.ground, 3.4))


def draw_confetti(sheet: Sheet) -> None:
    """Throw triangles or dots about, with small things between them."""
    dice, size = sheet.dice, sheet.recipe.size * sheet.dice.choice((0.8, 1.0, 1.2))
    for number, spot in enumerate(sheet.scatter([82 * size] * 10 + [58 * size] * 18 + [36 * size] * 26)):
        name = f"{sheet.recipe.motifs[0]}-{(0, 0, 1, 2)[number % 4]}"
        piece = sheet.motif(name, main=sheet.palette.inks[number % 3])
        sheet.stamp(piece, spot, dice.uniform(0, 360), spot[2] / 50)
    for spot in sheet.scatter([30 * size] * 24 + [13 * size] * 50):
        small = sheet.motif(dice.choice(("squiggle", "cross", "bead", "bead")))
        sheet.stamp(small, spot, dice.uniform(0, 360), spot[2] / 24)


def draw_plain(sheet: Sheet) -> None:
    """Draw a mosaic of quarter circles and leaves, mirrored both ways."""
    dice, inks = sheet.dice, sheet.palette.inks
    half = dice.choice((2, 3, 4))
    cell = SIDE / half / 2
    for row, column in product(range(half), range(half)):
        shape = _mosaic(
            dice.choice(inks), dice.choice(inks), dice.choice(("quarter", "quarter", "ring", "leaf"))
        )
        turned = f'<g transform="rotate({90 * dice.choice(range(4))} .5 .5)">{shape}</g>'
        for right, low in product((0, 1), (0, 1)):
            x, y = (2 * half - column if right else column) * cell, (2 * half - row if low else row) * cell
            sizes = f"{cell - 2 * right * cell:.2f} {cell - 2 * low * cell:.2f}"
            sheet.lay(f'<g transform="translate({x:.2f} {y:.2f}) scale({sizes})">{turned}</g>')


def _mosaic(ink: Colour, inner: Colour, kind: str) -> str:
    """Draw a cell one unit wide; its edge is drawn too, so that no line shows between two of a colour."""
    path = "M0,0A1,1 0 0 1 1,1A1,1 0 0 1 0,0Z" if kind == "leaf" else "M0,0H1A1,1 0 0 1 0,1Z"
    ring = fill("M0,0H.5A.5,.5 0 0 1 0,.5Z", inner) if kind == "ring" else ""
    return fill(path, ink, f'stroke="{ink}" stroke-width=".012"') + ring
