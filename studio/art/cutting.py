"""Crop and extend: a part of a sheet becomes a tile of its own, or the tile goes on over more of its size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from studio.art import fields, motifs, strewn
from studio.art.cloth import Cloth
from studio.art.layout import TILE, Motion, Placement, compose
from studio.art.recipe import Dice
from studio.art.sheet import FILLER, Loose, Patch, Sheet, pixels_of, upright
from studio.design import Crop, Extend

#: No tile grows beyond so many drawing units a side, and no ground into more parts.
LARGEST = 3 * TILE
MOST_PATCHES = 400
#: Drawings may come so near to one another after a cut, as a part of the sum of their radii.
NEAREST = 0.82
FLIP: Motion = (-1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
#: Side of the picture in which a ground's own repeat is looked for, and how finely tiles are divided.
MEASURED = 24
FINEST = 24


def cropped(sheet: Sheet, crop: Crop) -> Sheet:
    """The area as a tile that is seamless again.

    Drawings whose middle lies in it are kept whole and wrapped; of two that would meet at the new edges, the smaller
    goes. A regular ground is cut at its own repeat, so that the area may grow or shrink by part of one; a ground
    without one is mirrored; where that would make the tile too large, nothing is cut.
    """
    width, height = crop.width * sheet.width, crop.height * sheet.height
    left, top = crop.x * sheet.width, crop.y * sheet.height
    mirror = False
    if sheet.patches:
        across, down = _repeat(sheet)
        mirror = across > width or down > height
        if not mirror:
            width, height = _snapped(width, across, sheet.width), _snapped(height, down, sheet.height)
    area = (left, top, width, height)
    cut = replace(
        sheet,
        width=width,
        height=height,
        placements=tuple(_kept(sheet, area)),
        loose=tuple(_kept_loose(sheet, area)),
        patches=tuple(_cut(sheet.patches, area, sheet.width, sheet.height)),
    )
    if not mirror:
        return cut
    too_large = 2 * max(width, height) > LARGEST or len(cut.patches) * 4 > MOST_PATCHES
    return sheet if too_large else _mirrored(cut)


def _snapped(length: float, period: float, most: float) -> float:
    """The nearest whole number of repeats, at least one."""
    return min(most, max(1, round(length / period)) * period)


def _repeat(sheet: Sheet) -> tuple[float, float]:
    """The ground's own repeat across and down; the sheet's, when it was mirrored or is irregular."""
    whole = all(patch.width == TILE == patch.height for patch in sheet.patches)
    straight = not any(patch.flip_x or patch.flip_y for patch in sheet.patches)
    regular = field_repeat(str(sheet.recipe.field), sheet.recipe.scale)
    across, down = TILE / regular[0], TILE / regular[1]
    fits = all(
        abs(one / part - round(one / part)) < 1e-6
        for one, part in ((sheet.width, across), (sheet.height, down))
    )
    return (across, down) if straight and (whole or fits) else (sheet.width, sheet.height)


@lru_cache(256)
def field_repeat(field: str, scale: float) -> tuple[int, int]:
    """How often a ground repeats itself across and down its tile."""
    inks = ("#c00000", "#00a000", "#0000c0", "#808000", "#008080", "#800080")
    dice = Dice(1)
    content = fields.FIELDS[field](Cloth("#ffffff", inks, scale, dice))

    def repeats(count: int, axis: int) -> bool:
        side = count * MEASURED
        drawn = pixels_of(content, side)
        gap = np.abs(drawn - np.roll(drawn, MEASURED, axis=axis))
        return float((gap > 40).mean()) < 0.001

    def most(axis: int) -> int:
        return next((count for count in range(FINEST, 1, -1) if repeats(count, axis)), 1)

    return most(1), most(0)


def _kept(sheet: Sheet, area: tuple[float, float, float, float]) -> list[Placement]:
    """Drawings with their middle in the area, largest first where room is short, in their old order."""
    left, top, width, height = area
    inside: list[tuple[int, Placement]] = []
    for index, one in enumerate(sheet.placements):
        x, y = (one.motion[4] - left) % sheet.width, (one.motion[5] - top) % sheet.height
        if x < width and y < height:
            radius = min(one.radius, 0.47 * min(width, height))
            inside.append((index, Placement(one.role, (*one.motion[:4], x, y), radius)))
    chosen: list[tuple[int, Placement]] = []
    for index, one in sorted(inside, key=lambda pair: (-pair[1].radius, pair[0])):
        if all(_can_stay(one, other, width, height) for _, other in chosen):
            chosen.append((index, one))
    return [one for _, one in sorted(chosen, key=lambda pair: pair[0])]


def _can_stay(one: Placement, other: Placement, width: float, height: float) -> bool:
    """Whether two drawings do not meet around the edges; those that met before may."""
    gaps = [abs(a - b) for a, b in zip(one.centre, other.centre, strict=True)]
    around = math.hypot(min(gaps[0], width - gaps[0]), min(gaps[1], height - gaps[1]))
    return around >= math.hypot(*gaps) - 1e-6 or around >= NEAREST * (one.radius + other.radius)


def _kept_loose(sheet: Sheet, area: tuple[float, float, float, float]) -> list[Loose]:
    left, top, width, height = area
    moved = (
        Loose(one.index, (one.x - left) % sheet.width, (one.y - top) % sheet.height) for one in sheet.loose
    )
    return [one for one in moved if one.x < width and one.y < height]


def _cut(
    patches: Sequence[Patch], area: tuple[float, float, float, float], across: float, down: float
) -> Iterator[Patch]:
    left, top, width, height = area
    for patch in patches:
        for x in (patch.x - left - across, patch.x - left, patch.x - left + across):
            for y in (patch.y - top - down, patch.y - top, patch.y - top + down):
                low_x, high_x = max(0.0, x), min(width, x + patch.width)
                low_y, high_y = max(0.0, y), min(height, y + patch.height)
                if high_x - low_x > 1e-6 and high_y - low_y > 1e-6:
                    yield _part(patch, low_x - x, low_y - y, high_x - low_x, high_y - low_y, low_x, low_y)


def _part(patch: Patch, left: float, top: float, width: float, height: float, x: float, y: float) -> Patch:
    """A part of a patch, `left` and `top` from its corner as it lies."""
    from_left = patch.width - left - width if patch.flip_x else left
    from_top = patch.height - top - height if patch.flip_y else top
    return replace(
        patch, left=patch.left + from_left, top=patch.top + from_top, width=width, height=height, x=x, y=y
    )


def _mirrored(sheet: Sheet) -> Sheet:
    """The tile, its mirror images next to it: twice as wide and high. Drawings are repeated, not mirrored."""
    patches = [
        replace(
            one,
            x=2 * sheet.width - one.x - one.width if flip_x else one.x,
            y=2 * sheet.height - one.y - one.height if flip_y else one.y,
            flip_x=one.flip_x != flip_x,
            flip_y=one.flip_y != flip_y,
        )
        for one in sheet.patches
        for flip_x in (False, True)
        for flip_y in (False, True)
    ]
    placements = [
        _at(one, x * sheet.width, y * sheet.height)
        for one in sheet.placements
        for x in (0, 1)
        for y in (0, 1)
    ]
    return replace(
        sheet,
        width=2 * sheet.width,
        height=2 * sheet.height,
        patches=tuple(patches),
        placements=tuple(placements),
    )


def _at(one: Placement, right: float, low: float) -> Placement:
    x, y = one.centre
    return Placement(one.role, (*one.motion[:4], x + right, y + low), one.radius)


def extended(sheet: Sheet, extend: Extend) -> Sheet:
    """The tile over more of its size: what can be seen in the old area stays, beyond it drawings vary.

    There they are mirrored, change places with one another, and some small ones are left out; the places stay.
    """
    columns = max(1, min(extend.columns, int(LARGEST // sheet.width)))
    rows = max(1, min(extend.rows, int(LARGEST // sheet.height)))
    while columns * rows * len(sheet.patches) > MOST_PATCHES and columns * rows > 1:
        columns, rows = max(1, columns - 1), max(1, rows - 1)
    dice = Dice(sheet.recipe.seed ^ columns * 31 ^ rows * 17 ^ len(sheet.placements))
    places = [(column * sheet.width, row * sheet.height) for column in range(columns) for row in range(rows)]
    wide = replace(sheet, width=columns * sheet.width, height=rows * sheet.height)
    placements = [
        new for one in sheet.placements for place in places for new in _varied(one, place, sheet, wide, dice)
    ]
    loose = [
        new for one in sheet.loose for place in places for new in _varied_loose(one, place, sheet, wide, dice)
    ]
    patches = tuple(replace(one, x=one.x + x, y=one.y + y) for one in sheet.patches for x, y in places)
    return replace(wide, placements=tuple(placements), loose=tuple(loose), patches=patches)


def _varied(
    one: Placement, place: tuple[float, float], sheet: Sheet, wide: Sheet, dice: Dice
) -> Iterator[Placement]:
    new = _at(one, *place)
    flips, leaves, swaps = dice.chance(0.5), dice.chance(0.25), dice.chance(0.4)
    if _touches_old(new.centre, one.radius * 1.3, sheet, wide):
        yield new
    elif one.role == FILLER:
        if not leaves:
            yield new
    else:
        role = (one.role + 1) % len(sheet.recipe.subjects) if swaps else one.role
        varied = Placement(role, compose(new.motion, FLIP) if flips else new.motion, one.radius)
        stands = role != one.role and sheet.recipe.subjects[role].name in motifs.UPRIGHT
        yield upright(varied) if stands else varied


def _varied_loose(
    one: Loose, place: tuple[float, float], sheet: Sheet, wide: Sheet, dice: Dice
) -> Iterator[Loose]:
    reaches = piece_reaches(sheet)
    other = dice.pick(
        [index for index, reach in enumerate(reaches) if abs(reach - reaches[one.index]) < 1e-6]
    )
    spot = (one.x + place[0], one.y + place[1])
    yield Loose(one.index if _touches_old(spot, reaches[one.index], sheet, wide) else other, *spot)


@lru_cache(16)
def _reaches(field: str, scale: float, seed: int) -> tuple[float, ...]:
    pieces = strewn.PIECES[field](Cloth("#ffffff", ("#000000",), scale, Dice(seed ^ 0x7A11E)))
    return tuple(piece.reach for piece in pieces)


def piece_reaches(sheet: Sheet) -> tuple[float, ...]:
    """How far each loose piece of the sheet's ground reaches."""
    return _reaches(str(sheet.recipe.field), sheet.recipe.scale, sheet.recipe.seed)


def _touches_old(spot: tuple[float, float], reach: float, sheet: Sheet, wide: Sheet) -> bool:
    """Whether something there is seen in the old area, which lies at the upper left of the torus."""
    return all(
        place - reach < old or place + reach > new
        for place, old, new in zip(spot, (sheet.width, sheet.height), (wide.width, wide.height), strict=True)
    )
