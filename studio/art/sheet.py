"""What lies where on one tile of any size: drawings, loose pieces and parts of a ground, all on a torus."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.art import fields, layout, motifs, strewn
from studio.art.cloth import Cloth
from studio.art.colour import mix
from studio.art.inks import Inks, blade, number
from studio.art.layout import TILE, UNIT, Motion, Placement, Wish
from studio.art.raster import rasterise
from studio.art.recipe import Dice, Recipe

#: Round drawings, which may stand on a centre of rotation.
ROUND = frozenset(
    {"daisy", "citrus", "sun", "starburst", "snowflake", "sparkle", "star", "blossom", "poppy", "sunflower"}
)
#: The role of the small things in the gaps.
FILLER = -1


@dataclass(frozen=True)
class Loose:
    """A loose piece of the ground: which one of its field, and where it lies."""

    index: int
    x: float
    y: float


@dataclass(frozen=True)
class Patch:
    """A rectangle of the field's own tile, where it is laid on the sheet, and whether it is mirrored there."""

    left: float
    top: float
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    flip_x: bool = False
    flip_y: bool = False


@dataclass(frozen=True)
class Sheet:
    """One tile, `width` by `height` drawing units: what is on it, and the recipe that says how that looks."""

    recipe: Recipe
    width: float = TILE
    height: float = TILE
    filler: str = "dot"
    placements: tuple[Placement, ...] = ()
    loose: tuple[Loose, ...] = ()
    patches: tuple[Patch, ...] = ()


def sheet_for(recipe: Recipe) -> Sheet:
    """The sheet of a recipe that nothing was done to yet."""
    dice = _dice(recipe)
    loose: tuple[Loose, ...] = ()
    patches: tuple[Patch, ...] = ()
    if recipe.field is not None and recipe.field in strewn.PIECES:
        pieces = strewn.PIECES[recipe.field](_cloth(recipe, dice))
        loose = tuple(Loose(index, piece.x, piece.y) for index, piece in enumerate(pieces))
    elif recipe.field is not None:
        fields.FIELDS[recipe.field](_cloth(recipe, dice))
        patches = (Patch(0, 0, TILE, TILE),)
    if not recipe.subjects:
        return Sheet(recipe, loose=loose, patches=patches)
    filler = dice.pick(("dot", "dot", "leaf", "cross", "ring", "trio"))
    placements = layout.arrange(recipe.layout, recipe.scale, _wishes(recipe), dice)
    return Sheet(recipe, TILE, TILE, filler, tuple(placements), loose, patches)


def to_svg(sheet: Sheet, shift: tuple[float, float] = (0.0, 0.0)) -> str:
    """The whole tile as SVG, moved by `shift`. What crosses an edge is drawn again on the other side."""
    content = "".join(_ground(sheet, shift)) + "".join(_drawn(sheet, shift))
    size = f'width="{number(sheet.width)}" height="{number(sheet.height)}"'
    ground = f'<rect {size} fill="{sheet.recipe.palette.ground}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{ground}{content}</svg>'


def _dice(recipe: Recipe) -> Dice:
    return Dice(recipe.seed ^ 0x7A11E)


def _cloth(recipe: Recipe, dice: Dice) -> Cloth:
    palette = recipe.palette
    inks = palette.inks
    if recipe.subjects:
        inks = tuple(mix(palette.ground, ink, 0.22) for ink in inks)
    return Cloth(palette.ground, inks, recipe.scale, dice)


def _ground(sheet: Sheet, shift: tuple[float, float]) -> Iterable[str]:
    field = sheet.recipe.field
    if field is None:
        return
    cloth = _cloth(sheet.recipe, _dice(sheet.recipe))
    if field in strewn.PIECES:
        size = f'width="{number(sheet.width)}" height="{number(sheet.height)}"'
        yield f'<clipPath id="tile"><rect {size}/></clipPath><g clip-path="url(#tile)">'
        pieces = strewn.PIECES[field](cloth)
        for loose in sheet.loose:
            piece = pieces[loose.index]
            at = ((loose.x + shift[0]) % sheet.width, (loose.y + shift[1]) % sheet.height)
            yield strewn.wrapped(strewn.Piece(piece.shape, *at, piece.reach), sheet.width, sheet.height)
        yield "</g>"
        return
    content = fields.FIELDS[field](cloth)
    whole = sheet.patches == (Patch(0, 0, TILE, TILE),)
    for index, patch in enumerate(sheet.patches):
        yield from _laid(patch, index, content, sheet, shift, 0.0 if whole else 0.25)


def _laid(
    patch: Patch, index: int, content: str, sheet: Sheet, shift: tuple[float, float], overlap: float
) -> Iterable[str]:
    """A patch where it lies. `overlap` hides the hairline between two clipped edges."""
    name = "tile" if index == 0 else f"tile{index}"
    left, top = number(patch.left - overlap), number(patch.top - overlap)
    wide, high = number(patch.width + 2 * overlap), number(patch.height + 2 * overlap)
    at = f'x="{left}" y="{top}" ' if overlap else ""
    yield f'<clipPath id="{name}"><rect {at}width="{wide}" height="{high}"/></clipPath>'
    clipped = f'<g clip-path="url(#{name})">{content}</g>'
    for x in _covering(patch.x + shift[0], patch.width, sheet.width):
        for y in _covering(patch.y + shift[1], patch.height, sheet.height):
            yield f'<g transform="{_patch_transform(patch, x, y)}">{clipped}</g>'


def _patch_transform(patch: Patch, x: float, y: float) -> str:
    across = x + patch.left + patch.width if patch.flip_x else x - patch.left
    down = y + patch.top + patch.height if patch.flip_y else y - patch.top
    if patch.flip_x or patch.flip_y:
        return f"matrix({-1 if patch.flip_x else 1} 0 0 {-1 if patch.flip_y else 1} {across} {down})"
    return f"translate({across} {down})"


def _covering(start: float, length: float, period: float) -> list[float]:
    """Where something of this length, that starts here, is seen on the tile."""
    first = start % period
    return [step for step in (first - period, first) if step + length > 1e-9 and step < period]


def _drawn(sheet: Sheet, shift: tuple[float, float]) -> Iterable[str]:
    if not sheet.recipe.subjects:
        return
    drawings = {
        role: motifs.DRAWINGS[subject.name](subject.inks)
        for role, subject in enumerate(sheet.recipe.subjects)
    }
    drawings[FILLER] = _filler(sheet)
    for placement in sheet.placements:
        a, b, c, d, x, y = placement.motion
        size = placement.radius / UNIT
        turned = " ".join(f"{one * size:.5f}" for one in (a, b, c, d))
        for across in images(x + shift[0], placement.radius, sheet.width):
            for down in images(y + shift[1], placement.radius, sheet.height):
                yield f'<g transform="matrix({turned} {across:.5f} {down:.5f})">{drawings[placement.role]}</g>'


def images(place: float, radius: float, period: float) -> list[float]:
    """The places of a drawing that touch the tile: drawings reach a little over their radius."""
    reach = radius * 1.3
    many = math.ceil(reach / period)
    steps = (place % period + step * period for step in range(-many, many + 1))
    return [image for image in steps if -reach < image < period + reach]


def _filler(sheet: Sheet) -> str:
    """Something small for the gaps, in the quieter colours."""
    palette = sheet.recipe.palette
    quiet = mix(palette.inks[2], palette.ground, 0.2)
    style = sheet.recipe.style
    inks = Inks(palette.ground, quiet, palette.inks[1], palette.inks[-1], quiet, palette.ground, style)
    if sheet.filler == "leaf":
        return inks.paint(blade(0, 44, 0, 88, 46), inks.main, edge=5)
    if sheet.filler == "cross":
        return f'<path d="M-30,0H30M0,-30V30" stroke="{quiet}" stroke-width="15" stroke-linecap="round"/>'
    if sheet.filler == "ring":
        return f'<circle r="26" fill="none" stroke="{quiet}" stroke-width="14"/>'
    if sheet.filler == "trio":
        return "".join(
            f'<circle cx="{x}" cy="{y}" r="15" fill="{quiet}"/>' for x, y in ((0, -26), (-23, 15), (23, 15))
        )
    return f'<circle r="25" fill="{quiet}"/>'


def pixels_of(content: str, side: int) -> NDArray[np.float64]:
    """A square tile's content on white as pixels: red, green and blue as numbers."""
    ground = '<rect width="1000" height="1000" fill="#ffffff"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000">{ground}{content}</svg>'
    return np.asarray(rasterise(svg, side).convert("RGB"), dtype=np.float64)


def upright(placement: Placement) -> Placement:
    """The placement, turned back to stand the right way up."""
    a, b, _, _, x, y = placement.motion
    size = math.hypot(a, b)
    motion: Motion = (size, 0.0, 0.0, size, x, y)
    return Placement(placement.role, motion, placement.radius)


def _wishes(recipe: Recipe) -> list[Wish]:
    """What is to be placed: leading drawing, companions, fillers."""
    return _toss_wishes(recipe) if recipe.layout == "toss" else _orbit_wishes(recipe)


def _toss_wishes(recipe: Recipe) -> list[Wish]:
    columns, _ = layout.cells("toss", recipe.scale)
    size = min(recipe.scale * columns, 2.0) / columns
    room = (TILE / columns / (118 * size)) ** 2 / 3.14
    many = len(recipe.subjects) > 1
    wishes = [Wish(0, 118 * size, 0, _tilt(recipe, 0), count=round(room * (0.34 if many else 0.42)))]
    for role in range(1, len(recipe.subjects)):
        wishes += [
            Wish(role, part * size, 0, _tilt(recipe, role), count=round(room * share))
            for part, share in ((90, 0.22), (66, 0.4), (46, 0.5))
        ]
    if not many:
        wishes += [Wish(0, part * size, 0, _tilt(recipe, 0), count=round(room * 0.4)) for part in (74, 50)]
    return [*wishes, Wish(FILLER, 15 * size, 0, count=round(room * 2.2))]


def _orbit_wishes(recipe: Recipe) -> list[Wish]:
    scale, many = recipe.scale, len(recipe.subjects) > 1
    turning = recipe.layout in ("p4", "p4m", "p3", "p6")
    special = recipe.layout not in layout.MIRRORED
    lead = Wish(
        0, 400, 1, _tilt(recipe, 0), special and recipe.subjects[0].name in ROUND, 1.04 if turning else 0.84
    )
    roles = [*range(1, len(recipe.subjects))] or [0]
    sizes = (132, 104, 82, 60) if many else (92, 70, 52)
    others = [
        Wish(
            role,
            size * scale,
            20 * scale,
            _tilt(recipe, role),
            special and recipe.subjects[role].name in ROUND,
            0.96,
        )
        for role, size in zip([*roles, *roles, *roles, *roles], sizes, strict=False)
    ]
    return [lead, *others, Wish(FILLER, 16 * scale, 8 * scale, whole_turns=special, ease=0.6, count=4)]


def _tilt(recipe: Recipe, role: int) -> tuple[float, float]:
    """How far a drawing may lean: those with a right way up hardly do."""
    tossed = recipe.layout == "toss"
    if recipe.subjects[role].name in motifs.UPRIGHT:
        return (-9.0, 9.0) if tossed else (0.0, 0.0)
    if recipe.layout in ("grid", "pmm", "half_drop", "brick") and role == 0:
        return (-20.0, 20.0)
    return (0.0, 360.0)
