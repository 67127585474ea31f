"""What lies where on one tile: a ground and drawings on a torus, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from studio.art import fields, layout, motifs
from studio.art.cloth import Cloth
from studio.art.colour import mix
from studio.art.inks import Inks, blade, number
from studio.art.layout import TILE, UNIT, Placement, Wish
from studio.art.recipe import Dice, Recipe

#: Round drawings, which may stand on a centre of rotation.
ROUND = frozenset(
    {"daisy", "citrus", "sun", "starburst", "snowflake", "sparkle", "star", "blossom", "poppy", "sunflower"}
)
#: The role of the small things in the gaps.
FILLER = -1


@dataclass(frozen=True)
class Sheet:
    """One tile of 1000 by 1000 drawing units: the SVG of its ground, and what stands on it."""

    recipe: Recipe
    ground: str = ""
    filler: str = "dot"
    placements: tuple[Placement, ...] = ()


def sheet_for(recipe: Recipe) -> Sheet:
    """The sheet of a recipe: everything that is thrown by dice is settled here."""
    dice = Dice(recipe.seed ^ 0x7A11E)
    ground = "" if recipe.field is None else fields.FIELDS[recipe.field](_cloth(recipe, dice))
    if not recipe.subjects:
        return Sheet(recipe, ground)
    filler = dice.pick(("dot", "dot", "leaf", "cross", "ring", "trio"))
    placements = layout.arrange(recipe.layout, recipe.scale, _wishes(recipe), dice)
    return Sheet(recipe, ground, filler, tuple(placements))


def to_svg(sheet: Sheet) -> str:
    """The whole tile as SVG. What crosses an edge is drawn again on the other side."""
    size = f'width="{number(TILE)}" height="{number(TILE)}"'
    ground = f'<rect {size} fill="{sheet.recipe.palette.ground}"/>{sheet.ground}'
    content = "".join(_drawn(sheet))
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{hatching(sheet.recipe)}{ground}{content}</svg>'


#: Lines within each shape, by style: how far apart, how wide, how plain to see, and their angle.
HATCHINGS = {"linocut": (17, 1.7, 0.85, 24), "embroidery": (4.4, 1.5, 0.3, 62)}


def hatching(recipe: Recipe) -> str:
    """The pattern of gouges or threads that a style fills its shapes with; it turns with each drawing."""
    if recipe.style not in HATCHINGS:
        return ""
    step, width, opacity, angle = HATCHINGS[recipe.style]
    colour = recipe.palette.ground if recipe.style == "linocut" else "#ffffff"
    return (
        f'<pattern id="hatching" width="{step}" height="{4 * step}" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate({angle})"><path d="M{step / 2},{step / 3}V{3 * step}" stroke="{colour}" '
        f'stroke-width="{width}" stroke-opacity="{opacity}" stroke-linecap="round"/></pattern>'
    )


def _cloth(recipe: Recipe, dice: Dice) -> Cloth:
    palette = recipe.palette
    inks = palette.inks
    if recipe.subjects:
        inks = tuple(mix(palette.ground, ink, 0.22) for ink in inks)
    return Cloth(palette.ground, inks, recipe.scale, dice)


def _drawn(sheet: Sheet) -> Iterable[str]:
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
        for across in images(x, placement.radius):
            for down in images(y, placement.radius):
                yield f'<g transform="matrix({turned} {across:.5f} {down:.5f})">{drawings[placement.role]}</g>'


def images(place: float, radius: float) -> list[float]:
    """The places of a drawing that touch the tile: drawings reach a little over their radius."""
    reach = radius * 1.3
    many = math.ceil(reach / TILE)
    steps = (place % TILE + step * TILE for step in range(-many, many + 1))
    return [image for image in steps if -reach < image < TILE + reach]


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
    lead = Wish(0, 400, 1, _tilt(recipe, 0), recipe.subjects[0].name in ROUND, 1.04 if turning else 0.84)
    roles = [*range(1, len(recipe.subjects))] or [0]
    sizes = (132, 104, 82, 60) if many else (92, 70, 52)
    others = [
        Wish(
            role,
            size * scale,
            20 * scale,
            _tilt(recipe, role),
            recipe.subjects[role].name in ROUND,
            0.96,
        )
        for role, size in zip([*roles, *roles, *roles, *roles], sizes, strict=False)
    ]
    return [lead, *others, Wish(FILLER, 16 * scale, 8 * scale, whole_turns=True, ease=0.6, count=4)]


def _tilt(recipe: Recipe, role: int) -> tuple[float, float]:
    """How far a drawing may lean: those with a right way up hardly do."""
    tossed = recipe.layout == "toss"
    if recipe.subjects[role].name in motifs.UPRIGHT:
        return (-9.0, 9.0) if tossed else (0.0, 0.0)
    if recipe.layout in ("grid", "pmm", "half_drop", "brick") and role == 0:
        return (-20.0, 20.0)
    return (0.0, 360.0)
