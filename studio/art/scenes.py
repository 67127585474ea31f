"""The families of hand-drawn motifs: herons by the water, the garden with its fruit and flowers, and foliage."""

from __future__ import annotations

from studio.art.colour import shift
from studio.art.pen import fill, line
from studio.art.sheet import SIDE, Sheet

#: Motifs that hang on a branch with leaves.
ON_BRANCHES = ("lemon", "orange", "cherry")


def draw_waterside(sheet: Sheet) -> None:
    """Draw rows of herons and clumps of reeds by turns, or of reeds alone; a second row may look the other way."""
    dice, lead = sheet.dice, sheet.motif(sheet.recipe.motifs[0])
    rows = max(2, 2 * round(dice.choice((2, 2, 4)) / sheet.recipe.size / 2))
    columns = round(rows * dice.choice((0.75, 0.9, 1.1)))
    phase, mirrored, scale = dice.uniform(0, 1), dice.choice((True, True, False)), SIDE / rows / 250
    for row in range(rows):
        y, shifted = (row + 0.5) * SIDE / rows, row % 2 * 0.5 + dice.uniform(-0.06, 0.06)
        _band(sheet, y + 80 * scale, SIDE / rows * 0.24)
        for column in range(columns):
            x = (column + shifted + phase) * SIDE / columns
            beside, low = x + SIDE / columns / 2, y + dice.uniform(20, 50) * scale
            clump = (beside, low, 150 * scale)
            sheet.stamp(
                sheet.motif("reeds"), clump, dice.uniform(-5, 5), scale, flip=dice.choice((True, False))
            )
            sheet.stamp(sheet.motif("ripples"), (x, y, 110 * scale), 0, scale)
            sheet.stamp(lead, (x, y, 150 * scale), 0, scale, flip=mirrored and row % 2 == 1)


def _band(sheet: Sheet, top: float, depth: float) -> None:
    """Lay a soft band of water across the tile, whose ends meet."""
    for y in (top - SIDE, top):
        edge = f"M-20,{y:.0f}C180,{y - 26:.0f} 320,{y + 30:.0f} 500,{y:.0f}S820,{y + 26:.0f} 1020,{y:.0f}"
        ink = sheet.palette.tint(sheet.palette.inks[1], 0.35)
        sheet.lay(fill(f"{edge}V{y + depth:.0f}H-20Z", ink, 'fill-opacity=".3"'))


def draw_garden(sheet: Sheet) -> None:
    """Draw the leading motif in a half drop or tossed, with all others and what goes with them in between."""
    dice, (lead, *others) = sheet.dice, sheet.recipe.motifs
    branched, size = lead in ON_BRANCHES, sheet.recipe.size
    fillers = [name for name in others or ("flower", "twig") if name != lead] + ["twig"] * branched
    drawing, wanted = sheet.motif("branch" if branched else lead, lead), 200 if branched else 74
    _leads(sheet, drawing, 145 if branched else 58, wanted * size * dice.choice((0.88, 1.0, 1.16)))
    radii = [62 * size] * (14 if others else 6) + [44 * size] * 18 + [30 * size] * 20
    for number, spot in enumerate(sheet.scatter(radii)):
        name = fillers[number % len(fillers)]
        filler = sheet.motif(name, lead if name == "flower" else name)
        sheet.stamp(filler, spot, dice.uniform(-50, 50), spot[2] / 52)
    for spot in sheet.scatter([12 * size] * 70):
        sheet.stamp(sheet.motif("bead"), spot, 0, 0.5)


def _leads(sheet: Sheet, drawing: str, reach: float, wanted: float) -> None:
    """Stamp the leading drawing, which is `reach` in radius, at the radius wanted."""
    dice, layout = sheet.dice, sheet.recipe.layout
    if layout == "tossed" or (layout is None and dice.choice((True, False, False))):
        turn = 180 if reach > 100 else 35
        for spot in sheet.scatter([wanted] * round(105_000 / wanted**2)):
            sheet.stamp(
                drawing, spot, dice.uniform(-turn, turn), wanted / reach, flip=dice.choice((True, False))
            )
        return
    columns, lean = 2 * max(1, round(SIDE / wanted / 5)), dice.uniform(-14, 14)
    rows, left, top = round(columns * 0.9), dice.uniform(0, SIDE), dice.uniform(0, SIDE)
    for place in range(columns * rows):
        column, row = divmod(place, rows)
        x, y = left + column * SIDE / columns, top + (row + column % 2 / 2) * SIDE / rows
        sheet.spots.append((x % SIDE, y % SIDE, wanted))
        sheet.stamp(
            drawing, sheet.spots[-1], lean - 2 * lean * (column % 2), wanted / reach, flip=column % 2 == 1
        )


def draw_foliage(sheet: Sheet) -> None:
    """Draw sprigs in stripes, and leaves over one another in three layers, the last one in front and plain to see."""
    if sheet.recipe.layout == "stripes" or sheet.recipe.motifs[0] == "lavender":
        _stripes(sheet)
        return
    dice, size, names = sheet.dice, sheet.recipe.size, sheet.recipe.motifs
    main = sheet.palette.of(names[0])
    for share, count, radius in ((0.72, 16, 95 * size), (0.42, 13, 105 * size), (0.0, 11, 118 * size)):
        inks = [sheet.palette.tint(shift(main, lighter), share) for lighter in (0.0, -0.07, 0.03)]
        turn = dice.uniform(0, 360)
        sheet.spots.clear()
        for number, (x, y, _) in enumerate(sheet.scatter([radius * 0.86] * round(count / size / size))):
            plant = sheet.motif(names[number % len(names)], main=inks[number % 3])
            lean = turn + dice.uniform(-70, 70) + 180 * (number % 2)
            sheet.stamp(plant, (x, y, radius), lean, radius / 80, flip=dice.choice((True, False)))


def _stripes(sheet: Sheet) -> None:
    """Let columns of plants grow upwards, by turns to the left and to the right, between fine lines."""
    dice, palette, lead = sheet.dice, sheet.palette, sheet.recipe.motifs[0]
    columns = 2 * max(1, round(dice.choice((4, 5, 6)) / sheet.recipe.size / 2))
    rows, lines = max(2, round(columns * dice.choice((0.6, 0.75)))), dice.choice((1, 2, 3))
    banded, drop = dice.choice((True, False)), dice.choice((0.5, 0.5, 0.0))
    width, scale, main = SIDE / columns, SIDE / rows / 212, palette.of(lead)
    for column in range(columns):
        left = column * width
        if banded and column % 2:
            sheet.lay(fill(f"M{left:.1f},-9h{width:.1f}V1009h{-width:.1f}Z", palette.tint(main, 0.86)))
        for number in range(lines):
            ink = palette.tint(main if number % 2 else palette.of("leaf", 1), 0.35)
            sheet.lay(
                line(f"M{left + 13 * (number - lines / 2 + 1):.1f},-20V1020", ink, 5 if number == 1 else 2.4)
            )
        for row in range(rows):
            spot = (left + width / 2, (row + 0.5 + column % 2 * drop) * SIDE / rows, 100 * scale)
            sheet.stamp(sheet.motif(lead), spot, 0, scale, flip=column % 2 == 1)
