"""The SVG that tiles are written in, read back as plain shapes: curves in the tile's own coordinates, with their paint.

Exactly the subset that the drawings use: path, circle, rect, g with matrix, translate, rotate and scale, and clips
by a rectangle.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from xml.etree import ElementTree

from studio.art.inks import Point, circle, number, points
from studio.art.layout import Motion, compose

#: M and L with one point, C with three, Z with none.
Segment = tuple[str, tuple[Point, ...]]
Box = tuple[float, float, float, float]
STAY: Motion = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_TOKEN = re.compile(r"[A-Za-z]|-?\d*\.?\d+(?:e-?\d+)?")
_TRANSFORM = re.compile(r"(\w+)\(([^)]*)\)")
_TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Q": 4, "A": 7, "Z": 0}


@dataclass(frozen=True)
class Shape:
    """One painted path. `order` counts the shapes of one drawing; `clip` is left, top, width, height."""

    path: tuple[Segment, ...]
    fill: str | None
    stroke: str | None = None
    width: float = 1.0
    fill_opacity: float = 1.0
    stroke_opacity: float = 1.0
    order: int = 0
    clip: Box | None = None


@dataclass(frozen=True)
class Scene:
    """A whole tile: its size, and its shapes from the back to the front."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


def read_scene(svg: str) -> Scene:
    """The shapes of a tile's SVG."""
    root = ElementTree.fromstring(svg)  # noqa: S314  written by this program
    clips = {f"url(#{one.get('id')})": _box(one[0]) for one in root.iter() if one.tag.endswith("clipPath")}
    shapes = [shape for child in root for shape in _shapes(child, STAY, None, clips)]
    return Scene(float(root.get("width", 0)), float(root.get("height", 0)), tuple(shapes))


def write_svg(scene: Scene) -> str:
    """The shapes as SVG again; each is clipped by its box, if it has one."""
    size = f'width="{number(scene.width)}" height="{number(scene.height)}"'
    boxes = {shape.clip: f"c{place}" for place, shape in enumerate(scene.shapes) if shape.clip is not None}
    clips = "".join(
        f'<clipPath id="{name}"><rect x="{x}" y="{y}" width="{w}" height="{h}"/></clipPath>'
        for (x, y, w, h), name in boxes.items()
    )
    drawn = "".join(_written(shape, boxes) for shape in scene.shapes)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{clips}{drawn}</svg>'


def _written(shape: Shape, boxes: dict[Box, str]) -> str:
    paint = f'fill="{shape.fill or "none"}"'
    if shape.fill and shape.fill_opacity < 1:
        paint += f' fill-opacity="{shape.fill_opacity:.3f}"'
    if shape.stroke:
        paint += f' stroke="{shape.stroke}" stroke-width="{shape.width:.3f}" stroke-linecap="round"'
        paint += f' stroke-linejoin="round" stroke-opacity="{shape.stroke_opacity:.3f}"'
    if shape.clip:
        paint += f' clip-path="url(#{boxes[shape.clip]})"'
    data = "".join(op + points(at) for op, at in shape.path)
    return f'<path d="{data}" {paint}/>'


def _shapes(
    element: ElementTree.Element, motion: Motion, clip: Box | None, clips: dict[str, Box]
) -> Iterator[Shape]:
    name = element.tag.rpartition("}")[2]
    if name == "clipPath":
        return
    for transform in _transforms(element.get("transform", "")):
        motion = compose(motion, transform)
    clip = _moved_box(clips[element.get("clip-path", "")], motion) if element.get("clip-path") else clip
    if name != "g":
        yield _shape(element, name, motion, clip)
        return
    for order, shape in enumerate(one for child in element for one in _shapes(child, motion, clip, clips)):
        yield replace(shape, order=order)


def _shape(element: ElementTree.Element, name: str, motion: Motion, clip: Box | None) -> Shape:
    a, b, c, d, _, _ = motion
    fill, stroke = element.get("fill", "#000000"), element.get("stroke", "none")
    return Shape(
        path=tuple((op, tuple(_at(motion, one) for one in at)) for op, at in segments(_data(element, name))),
        fill=None if fill == "none" else fill,
        stroke=None if stroke == "none" else stroke,
        width=float(element.get("stroke-width", 1)) * math.sqrt(abs(a * d - b * c)),
        fill_opacity=float(element.get("fill-opacity", 1)),
        stroke_opacity=float(element.get("stroke-opacity", 1)),
        clip=clip,
    )


def _data(element: ElementTree.Element, name: str) -> str:
    if name == "path":
        return element.get("d", "")
    if name == "circle":
        x, y, radius = (float(element.get(key, 0)) for key in ("cx", "cy", "r"))
        return circle(x, y, radius)
    if name == "rect":
        x, y, width, height = _box(element)
        return f"M{x},{y}H{x + width}V{y + height}H{x}Z"
    raise ValueError(f"No drawing is made with <{name}>.")


def _box(element: ElementTree.Element) -> Box:
    x, y, width, height = (float(element.get(key, 0)) for key in ("x", "y", "width", "height"))
    return x, y, width, height


def _moved_box(box: Box, motion: Motion) -> Box:
    """The box where the motion carries it; clips are moved and mirrored, never turned."""
    one, other = _at(motion, (box[0], box[1])), _at(motion, (box[0] + box[2], box[1] + box[3]))
    left, top = min(one[0], other[0]), min(one[1], other[1])
    return left, top, abs(one[0] - other[0]), abs(one[1] - other[1])


def _transforms(text: str) -> Iterator[Motion]:
    for name, inner in _TRANSFORM.findall(text):
        parts = [float(part) for part in re.split(r"[ ,]+", inner.strip())]
        yield from _motions(name, parts)


def _motions(name: str, parts: list[float]) -> Iterable[Motion]:
    if name == "matrix":
        a, b, c, d, e, f = parts
        return [(a, b, c, d, e, f)]
    if name == "translate":
        return [(1.0, 0.0, 0.0, 1.0, parts[0], parts[1] if len(parts) > 1 else 0.0)]
    if name == "scale":
        return [(parts[0], 0.0, 0.0, parts[-1], 0.0, 0.0)]
    turn = math.radians(parts[0])
    x, y = parts[1:] if len(parts) == 3 else (0.0, 0.0)
    cos, sin = math.cos(turn), math.sin(turn)
    return [(cos, sin, -sin, cos, x - cos * x + sin * y, y - sin * x - cos * y)]


def _at(motion: Motion, point: Point) -> Point:
    a, b, c, d, e, f = motion
    return a * point[0] + c * point[1] + e, b * point[0] + d * point[1] + f


@lru_cache(4096)
def segments(data: str) -> tuple[Segment, ...]:
    """Path data as lines and cubic curves."""
    found: list[Segment] = []
    tokens = _TOKEN.findall(data)
    place, op = 0, "M"
    here = start = (0.0, 0.0)
    while place < len(tokens):
        if tokens[place].isalpha():
            op = tokens[place]
            place += 1
        upper = op.upper()
        args = [float(token) for token in tokens[place : place + _TAKES[upper]]]
        place += len(args)
        made = list(_segment(op, args, here, start))
        found += made
        here = made[-1][1][-1] if made[-1][1] else start
        start = here if upper == "M" else start
        if upper == "M":
            op = "L" if op == "M" else "l"
    return tuple(found)


def _segment(op: str, args: list[float], here: Point, start: Point) -> Iterable[Segment]:
    upper = op.upper()
    base = here if op.islower() else (0.0, 0.0)
    if upper == "Z":
        return [("Z", ())]
    if upper == "H":
        return [("L", ((args[0] + base[0], here[1]),))]
    if upper == "V":
        return [("L", ((here[0], args[0] + base[1]),))]
    if upper == "A":
        return arc(here, args[0], args[1], args[3:5], (args[5] + base[0], args[6] + base[1]))
    pairs = tuple((args[i] + base[0], args[i + 1] + base[1]) for i in range(0, len(args), 2))
    if upper == "Q":
        middle, end = pairs
        first = tuple(a + (b - a) * 2 / 3 for a, b in zip(here, middle, strict=True))
        second = tuple(a + (b - a) * 2 / 3 for a, b in zip(end, middle, strict=True))
        return [("C", ((first[0], first[1]), (second[0], second[1]), end))]
    return [(upper, pairs)]


def arc(here: Point, across: float, down: float, flags: list[float], end: Point) -> list[Segment]:
    """An upright elliptical arc as cubic curves of at most a quarter turn (SVG 1.1, appendix F.6)."""
    x, y = (here[0] - end[0]) / 2 / across, (here[1] - end[1]) / 2 / down
    length = x * x + y * y
    if length > 1:
        across, down = across * math.sqrt(length), down * math.sqrt(length)
        x, y, length = x / math.sqrt(length), y / math.sqrt(length), 1.0
    if length == 0:
        return [("L", (end,))]
    far = math.sqrt(max(0.0, 1 / length - 1)) * (1 if flags[0] != flags[1] else -1)
    middle = far * y, -far * x
    first = math.atan2(y - middle[1], x - middle[0])
    sweep = (math.atan2(-y - middle[1], -x - middle[0]) - first) % math.tau
    sweep -= 0 if flags[1] else math.tau
    centre = (here[0] + end[0]) / 2 + middle[0] * across, (here[1] + end[1]) / 2 + middle[1] * down
    count = max(1, math.ceil(abs(sweep) / (math.pi / 2) - 1e-9))
    return [_quarter(centre, across, down, first + sweep * i / count, sweep / count) for i in range(count)]


def _quarter(centre: Point, across: float, down: float, start: float, sweep: float) -> Segment:
    pull = 4 / 3 * math.tan(sweep / 4)
    end = start + sweep
    pairs = (
        (math.cos(start) - pull * math.sin(start), math.sin(start) + pull * math.cos(start)),
        (math.cos(end) + pull * math.sin(end), math.sin(end) - pull * math.cos(end)),
        (math.cos(end), math.sin(end)),
    )
    return "C", tuple((centre[0] + across * x, centre[1] + down * y) for x, y in pairs)
