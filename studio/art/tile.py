"""From a recipe to the tile: SVG first, then pixels, periodic in both directions at every step."""

from __future__ import annotations

import io

import numpy as np
import resvg_py
from numpy.typing import NDArray
from PIL import Image

from studio.art import fields, layout, motifs
from studio.art.cloth import Cloth
from studio.art.colour import mix
from studio.art.inks import Inks, blade
from studio.art.layout import TILE, UNIT, Placement, Wish
from studio.art.recipe import Dice, Recipe, recipe_for

#: Side of the finished tile in pixels, and how much larger it is drawn before it is averaged down.
SIDE = 512
OVERSAMPLING = 2
#: Round drawings, which may stand on a centre of rotation.
ROUND = frozenset(
    {"daisy", "citrus", "sun", "starburst", "snowflake", "sparkle", "star", "blossom", "poppy", "sunflower"}
)


def tile_image(prompt: str) -> Image.Image:
    """The tile of a prompt."""
    return render(recipe_for(prompt))


def render(recipe: Recipe, *, side: int = SIDE, shift: tuple[int, int] = (0, 0)) -> Image.Image:
    """The tile of a recipe. `shift` moves the drawing by whole pixels of the finished tile, around the edges."""
    moved = (shift[0] * TILE / side, shift[1] * TILE / side)
    drawn = rasterise(to_svg(recipe, moved), side * OVERSAMPLING)
    return _textured(drawn.convert("RGB").reduce(OVERSAMPLING), recipe, shift)


def rasterise(svg: str, width: int) -> Image.Image:
    png = resvg_py.svg_to_bytes(svg_string=svg, width=width, skip_system_fonts=True)
    return Image.open(io.BytesIO(png))


def to_svg(recipe: Recipe, shift: tuple[float, float] = (0.0, 0.0)) -> str:
    """The whole tile as SVG, moved by `shift`. What crosses an edge is drawn again on the other side."""
    dice = Dice(recipe.seed ^ 0x7A11E)
    content = _field(recipe, dice, shift) + _standing(recipe, dice, shift)
    ground = f'<rect width="1000" height="1000" fill="{recipe.palette.ground}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000">{ground}{content}</svg>'


def _field(recipe: Recipe, dice: Dice, shift: tuple[float, float]) -> str:
    if recipe.field is None:
        return ""
    palette = recipe.palette
    inks = palette.inks
    if recipe.subjects:
        inks = tuple(mix(palette.ground, ink, 0.22) for ink in inks)
    content = fields.FIELDS[recipe.field](Cloth(palette.ground, inks, recipe.scale, dice))
    clip = '<clipPath id="tile"><rect width="1000" height="1000"/></clipPath>'
    places = [(x, y) for x in around_edges(shift[0]) for y in around_edges(shift[1])]
    whole = f'<g clip-path="url(#tile)">{content}</g>'
    return clip + "".join(f'<g transform="translate({x} {y})">{whole}</g>' for x, y in places)


def around_edges(step: float) -> list[float]:
    """Where whole tiles are needed to cover one that has moved."""
    return [step % TILE - TILE, step % TILE] if step % TILE else [0.0]


def _standing(recipe: Recipe, dice: Dice, shift: tuple[float, float]) -> str:
    if not recipe.subjects:
        return ""
    drawings = [motifs.DRAWINGS[subject.name](subject.inks) for subject in recipe.subjects]
    drawings.append(_filler(recipe, dice))
    placements = layout.arrange(recipe.layout, recipe.scale, _wishes(recipe), dice)
    return "".join(_uses(drawings[placement.role], placement, shift) for placement in placements)


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
    return [*wishes, Wish(-1, 15 * size, 0, count=round(room * 2.2))]


def _orbit_wishes(recipe: Recipe) -> list[Wish]:
    scale, many = recipe.scale, len(recipe.subjects) > 1
    turning = recipe.layout in ("p4", "p4m", "p3", "p6")
    lead = Wish(0, 400, 1, _tilt(recipe, 0), recipe.subjects[0].name in ROUND, 1.04 if turning else 0.84)
    roles = [*range(1, len(recipe.subjects))] or [0]
    sizes = (132, 104, 82, 60) if many else (92, 70, 52)
    others = [
        Wish(role, size * scale, 20 * scale, _tilt(recipe, role), recipe.subjects[role].name in ROUND, 0.96)
        for role, size in zip([*roles, *roles, *roles, *roles], sizes, strict=False)
    ]
    return [lead, *others, Wish(-1, 16 * scale, 8 * scale, whole_turns=True, ease=0.6, count=4)]


def _tilt(recipe: Recipe, role: int) -> tuple[float, float]:
    """How far a drawing may lean: those with a right way up hardly do."""
    tossed = recipe.layout == "toss"
    if recipe.subjects[role].name in motifs.UPRIGHT:
        return (-9.0, 9.0) if tossed else (0.0, 0.0)
    if recipe.layout in ("grid", "pmm", "half_drop", "brick") and role == 0:
        return (-20.0, 20.0)
    return (0.0, 360.0)


def _filler(recipe: Recipe, dice: Dice) -> str:
    """Something small for the gaps, in the quieter colours."""
    palette = recipe.palette
    quiet = mix(palette.inks[2], palette.ground, 0.2)
    inks = Inks(palette.ground, quiet, palette.inks[1], palette.inks[-1], quiet, palette.ground, recipe.style)
    kind = dice.pick(("dot", "dot", "leaf", "cross", "ring", "trio"))
    if kind == "leaf":
        return inks.paint(blade(0, 44, 0, 88, 46), inks.main, edge=5)
    if kind == "cross":
        return f'<path d="M-30,0H30M0,-30V30" stroke="{quiet}" stroke-width="15" stroke-linecap="round"/>'
    if kind == "ring":
        return f'<circle r="26" fill="none" stroke="{quiet}" stroke-width="14"/>'
    if kind == "trio":
        return "".join(
            f'<circle cx="{x}" cy="{y}" r="15" fill="{quiet}"/>' for x, y in ((0, -26), (-23, 15), (23, 15))
        )
    return f'<circle r="25" fill="{quiet}"/>'


def _uses(drawing: str, placement: Placement, shift: tuple[float, float]) -> str:
    a, b, c, d, x, y = placement.motion
    size = placement.radius / UNIT
    turned = " ".join(f"{one * size:.5f}" for one in (a, b, c, d))
    return "".join(
        f'<g transform="matrix({turned} {across:.5f} {down:.5f})">{drawing}</g>'
        for across in _images(x + shift[0], placement.radius)
        for down in _images(y + shift[1], placement.radius)
    )


def _images(place: float, radius: float) -> list[float]:
    """The places of a drawing that touch the tile: drawings reach a little over their radius."""
    reach = radius * 1.3
    images = (place % TILE + step for step in (-TILE, 0, TILE))
    return [image for image in images if -reach < image < TILE + reach]


def _textured(image: Image.Image, recipe: Recipe, shift: tuple[int, int]) -> Image.Image:
    if recipe.texture == "none":
        return image
    grain = np.roll(texture(recipe.texture, recipe.seed, image.width), (shift[1], shift[0]), axis=(0, 1))
    pixels = np.asarray(image, dtype=np.float32) * (1 + grain[:, :, None])
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8), "RGB")


def texture(name: str, seed: int, side: int = SIDE) -> NDArray[np.float32]:
    """How much lighter or darker each pixel is, as a part; periodic, since it is made from whole waves."""
    generator = np.random.Generator(np.random.PCG64(seed))
    if name == "linen":
        rows, columns = _noise(generator, side, 1.2, (1.0, 14.0)), _noise(generator, side, 1.2, (14.0, 1.0))
        return (0.026 * rows + 0.026 * columns).astype(np.float32)
    if name == "wash":
        return (
            0.02 * _noise(generator, side, 34.0)
            + 0.02 * _noise(generator, side, 9.0)
            + 0.012 * _noise(generator, side, 1.0)
        ).astype(np.float32)
    return (0.014 * _noise(generator, side, 1.0) + 0.01 * _noise(generator, side, 3.0)).astype(np.float32)


def _noise(
    generator: np.random.Generator, side: int, size: float, stretch: tuple[float, float] = (1.0, 1.0)
) -> NDArray[np.float64]:
    """Smooth noise of mean 0 and deviation 1 with features of about `size` pixels (rows, columns stretched)."""
    white = np.fft.fft2(generator.standard_normal((side, side)))
    down, across = np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None, :]
    reach = (down * size * stretch[0]) ** 2 + (across * size * stretch[1]) ** 2
    kept = np.fft.ifft2(white * np.exp(-2 * np.pi**2 * reach / 2)).real
    noise: NDArray[np.float64] = (kept - kept.mean()) / kept.std()
    return noise
