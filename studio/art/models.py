"""How the models draw: one table of manners in which the same sheet is drawn, and the hands that draw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from studio.art import colour as colours
from studio.art.colour import Colour
from studio.art.inks import Point
from studio.art.outlines import (
    Outline,
    Waver,
    area,
    closed,
    hatches,
    inside,
    outlines,
    resampled,
    segments_of,
)
from studio.art.scene import Scene, Segment, Shape, read_scene, write_svg
from studio.art.sheet import Sheet
from studio.design import DEFAULT_MODEL


@dataclass(frozen=True)
class Manner:
    """How a model draws. `style` is what drawings are made in for it; None: what the prompt asks for."""

    style: str | None
    draw: Callable[[str, Sheet], str]


def as_it_is(svg: str, sheet: Sheet) -> str:
    return svg


def linocut(svg: str, sheet: Sheet) -> str:
    """Two blocks of lino: faceted edges, gouged lines of light, and a second block that is a little off."""
    scene = read_scene(svg)
    palette = sheet.recipe.palette
    key, second = _key_and_second(palette.ground, palette.inks)
    knife = Waver.of(sheet.recipe.seed & 0xFFFF, scene.width, scene.height, length=34, size=2.1)
    blocks = (palette.ground, key, second)
    shapes = [scene.shapes[0]]
    for shape in _cut_out(scene.shapes[1:], blocks):
        shapes += _carved(shape, blocks, knife, scene)
    return write_svg(replace(scene, shapes=tuple(shapes)))


def _key_and_second(ground: Colour, inks: tuple[Colour, ...]) -> tuple[Colour, Colour]:
    """The leading ink prints the key block, unless it is hard to see; the most different of the rest the other."""
    key = (
        inks[0]
        if colours.distance(inks[0], ground) > 0.25
        else max(inks[:4], key=lambda one: colours.distance(one, ground))
    )
    rest = [ink for ink in inks[:4] if ink != key]
    return key, max(rest, key=lambda ink: min(colours.distance(ink, key), colours.distance(ink, ground)))


def _cut_out(shapes: Sequence[Shape], blocks: tuple[Colour, Colour, Colour]) -> Iterator[Shape]:
    """The shapes in the blocks' colours; a detail of the block that it lies on is cut out of it."""
    below: list[tuple[Shape, Colour, Outline]] = []
    for shape in shapes:
        if shape.order == 0:
            below.clear()
        outline = np.vstack(outlines(shape.path))
        ink = shape.fill or shape.stroke or blocks[0]
        block = _nearest(ink, blocks, shape.fill_opacity if shape.fill else shape.stroke_opacity)
        under = next((one for one in reversed(below) if inside(outline.mean(axis=0), one[2])), None)
        if under and under[1] == block != blocks[0] and _is_detail(shape, outline, under[0], under[2]):
            block = blocks[0]
        if shape.fill:
            below.append((shape, block, outline))
        yield replace(
            shape,
            fill=block if shape.fill else None,
            stroke=block if shape.stroke else None,
            fill_opacity=1.0,
            stroke_opacity=1.0,
        )


def _is_detail(shape: Shape, outline: Outline, under: Shape, under_outline: Outline) -> bool:
    """Whether a shape is seen on the one under it: in another colour, and smaller."""
    ink = shape.fill or shape.stroke
    differs = ink is not None and under.fill is not None and colours.distance(ink, under.fill) > 0.03
    return differs and (shape.fill is None or area(outline) < 0.6 * area(under_outline))


def _carved(
    shape: Shape, blocks: tuple[Colour, Colour, Colour], knife: Waver, scene: Scene
) -> Iterator[Shape]:
    off = np.array([2.6, -2.2])
    fill = shape.fill
    moved = off if (fill or shape.stroke) == blocks[2] else 0.0
    close = closed(shape.path)
    cut = [knife.moved(resampled(one, 8.5, close=close) + moved) for one in outlines(shape.path)]
    path = tuple(one for outline in cut for one in segments_of(outline, close=close))
    yield replace(shape, path=path, width=max(shape.width, 2.2))
    if fill is not None and fill != blocks[0] and sum(map(area, cut)) > 700:
        yield from _gouges(shape, cut, blocks[0], knife, scene)


def _nearest(ink: Colour, blocks: tuple[Colour, Colour, Colour], opacity: float) -> Colour:
    seen = colours.mix(blocks[0], ink, opacity) if opacity < 1 else ink
    return min(blocks, key=lambda block: colours.distance(seen, block))


def _gouges(
    shape: Shape,
    cut: list[Outline],
    light: Colour,
    knife: Waver,
    scene: Scene,
) -> Iterator[Shape]:
    """Tapering cuts from one side, in one of four directions; how far each goes changes along the tile."""
    across, down = ((97, 31), (31, 97), (83, -59), (59, 83))[shape.order % 4]
    scale = (scene.width / 1000, scene.height / 1000)
    path: list[Segment] = []
    for start, end in hatches(
        cut, round(across * scale[0]), round(down * scale[1]), scene.width, scene.height
    ):
        length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
        swing = float(knife.shift(np.array([start]))[0, 0]) / knife.size
        share = min(0.55, max(0.0, 0.26 + 0.16 * swing))
        if length * share > 7:
            path += _sliver(start, end, 2.5 / length, share, 1.5)
    if path:
        yield Shape(tuple(path), light, order=shape.order, clip=shape.clip)


def _sliver(start: Point, end: Point, first: float, share: float, half: float) -> list[Segment]:
    along = np.array(end) - np.array(start)
    across = np.array([-along[1], along[0]]) / np.hypot(*along) * half
    foot, tip = np.array(start) + along * first, np.array(start) + along * share
    corners = np.array(
        [foot + across * 0.3, foot + (tip - foot) * 0.3 + across, tip, foot + (tip - foot) * 0.3 - across]
    )
    return list(segments_of(corners, close=True))


def watercolour(svg: str, sheet: Sheet) -> str:
    """Washes laid over one another with edges that run, pigment that gathers at them, and blooms."""
    scene = read_scene(svg)
    seed = sheet.recipe.seed & 0xFFFF
    hands = [
        Waver.of(seed + step, scene.width, scene.height, length=length, size=size)
        for step, (length, size) in enumerate(((95, 3.4), (60, 4.2), (38, 2.6)))
    ]
    ground = sheet.recipe.palette.ground
    shapes = [scene.shapes[0], *_blooms(scene, sheet)]
    for shape in scene.shapes[1:]:
        shapes += _washes(shape, hands, ground)
    return write_svg(replace(scene, shapes=tuple(shapes)))


def _washes(shape: Shape, hands: list[Waver], ground: Colour) -> Iterator[Shape]:
    close = closed(shape.path)
    parts = [resampled(one, 6.0, close=close) for one in outlines(shape.path)]
    light = shape.fill is not None and colours.distance(shape.fill, ground) < 0.04
    opacities = (0.5, 0.42, 0.4) if light else (0.4, 0.34, 0.3)
    for hand, opacity in zip(hands, opacities, strict=True):
        path = tuple(one for part in parts for one in segments_of(hand.moved(part), close=close))
        if shape.fill is not None:
            yield replace(shape, path=path, stroke=None, fill_opacity=opacity * shape.fill_opacity)
        elif hand is hands[0]:
            yield replace(shape, path=path, stroke_opacity=0.7 * shape.stroke_opacity)
    if shape.fill is not None and not light:
        edge = colours.shift(shape.fill, lighter=-0.07, chroma=1.1)
        path = tuple(one for part in parts for one in segments_of(hands[0].moved(part), close=close))
        yield replace(shape, path=path, fill=None, stroke=edge, width=1.5, stroke_opacity=0.4)


def _blooms(scene: Scene, sheet: Sheet) -> Iterator[Shape]:
    """Pale stains of the inks in the paper, drawn again across the edges."""
    generator = np.random.Generator(np.random.PCG64(sheet.recipe.seed & 0xFFFFFF))
    turns = np.linspace(0, 2 * np.pi, 28, endpoint=False)
    for number in range(round(9 * scene.width * scene.height / 1e6) + 2):
        ink = sheet.recipe.palette.inks[number % 4]
        x, y = generator.uniform(0, scene.width), generator.uniform(0, scene.height)
        size = generator.uniform(60, 170) * min(1.0, scene.width / 500, scene.height / 500)
        reach = size * (1 + 0.18 * np.sin(3 * turns + x) + 0.1 * np.sin(5 * turns + y))
        blob = np.column_stack([x + reach * np.cos(turns), y + reach * np.sin(turns)])
        for across in (-scene.width, 0.0, scene.width):
            for down in (-scene.height, 0.0, scene.height):
                for part in (1.0, 0.86, 0.7):
                    centre = np.array([x + across, y + down])
                    at = centre + (blob - np.array([x, y])) * part
                    yield Shape(segments_of(at, close=True), ink, fill_opacity=0.03)


def embroidery(svg: str, sheet: Sheet) -> str:
    """Satin stitch: each shape is filled with threads in a direction of its own, on cloth."""
    scene = read_scene(svg)
    hand = Waver.of(sheet.recipe.seed & 0xFFFF, scene.width, scene.height, length=23, size=1.3)
    shapes = [scene.shapes[0]]
    for shape in scene.shapes[1:]:
        shapes += _stitched(shape, hand, scene)
    return write_svg(replace(scene, shapes=tuple(shapes)))


#: How often the threads' lines cross the tile's width and height: about five units apart, in six directions.
_THREADS = ((181, 37), (37, 181), (137, 127), (137, -127), (173, -71), (71, 173))


def _stitched(shape: Shape, hand: Waver, scene: Scene) -> Iterator[Shape]:
    if shape.stroke is not None:
        yield replace(shape, fill=None, stroke=shape.stroke, width=max(2.4, shape.width))
        light = colours.shift(shape.stroke, lighter=0.08)
        yield replace(shape, fill=None, stroke=light, width=max(1.0, shape.width * 0.35))
    if shape.fill is None:
        return
    parts = outlines(shape.path)
    shadow = colours.shift(shape.fill, lighter=-0.09, chroma=0.95)
    yield replace(shape, fill=shadow, stroke=shadow, width=2.0)
    across, down = _THREADS[shape.order % 6]
    rate = scene.width / 1000, scene.height / 1000
    threads: tuple[list[Segment], list[Segment]] = ([], [])
    for start, end in hatches(
        parts, round(across * rate[0]), round(down * rate[1]), scene.width, scene.height
    ):
        pulls = hand.shift(np.array([start, end]))
        ends = [
            (start[0] + pulls[0, 0], start[1] + pulls[0, 1]),
            (end[0] + pulls[1, 0], end[1] + pulls[1, 1]),
        ]
        tone = 0 if pulls[0, 1] > 0 else 1
        threads[tone].extend([("M", (ends[0],)), ("L", (ends[1],))])
    for path, lighter in zip(threads, (0.0, 0.055), strict=True):
        if path:
            ink = colours.shift(shape.fill, lighter=lighter)
            yield replace(
                shape, path=tuple(path), fill=None, stroke=ink, width=3.6, stroke_opacity=shape.fill_opacity
            )


#: By the ID of the model.
MANNERS: MappingProxyType[str, Manner] = MappingProxyType(
    {
        DEFAULT_MODEL: Manner(None, as_it_is),
        "linocut": Manner("flat", linocut),
        "watercolour": Manner("flat", watercolour),
        "embroidery": Manner("flat", embroidery),
    }
)
