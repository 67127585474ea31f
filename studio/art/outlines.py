"""Outlines as points, and what hands do to them: waver, be hatched, all periodic in the tile."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.art.inks import Point
from studio.art.scene import Segment

Outline = NDArray[np.float64]
_STEPS = np.linspace(0, 1, 9)[1:, None]


def outlines(path: Sequence[Segment]) -> list[Outline]:
    """The path's parts as points, curves cut into eight."""
    parts: list[list[Outline]] = []
    for op, at in path:
        if op == "M":
            parts.append([np.array([at[0]])])
        elif op == "L":
            parts[-1].append(np.array([at[0]]))
        elif op == "C":
            start, (first, second, end) = parts[-1][-1][-1], at
            rest = 1 - _STEPS
            parts[-1].append(
                rest**3 * start
                + 3 * rest**2 * _STEPS * np.array(first)
                + 3 * rest * _STEPS**2 * np.array(second)
                + _STEPS**3 * np.array(end)
            )
    return [np.vstack(part) for part in parts]


def closed(path: Sequence[Segment]) -> bool:
    return path[-1][0] == "Z"


def resampled(outline: Outline, step: float, *, close: bool) -> Outline:
    """Points about `step` apart along the outline."""
    whole = np.vstack([outline, outline[:1]]) if close else outline
    lengths = np.hypot(*np.diff(whole, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    count = max(3 if close else 1, round(along[-1] / step))
    at = np.linspace(0, along[-1], count + 1)[: count if close else count + 1]
    return np.column_stack([np.interp(at, along, whole[:, axis]) for axis in (0, 1)])


def area(outline: Outline) -> float:
    x, y = outline[:, 0], outline[:, 1]
    return abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2


def inside(point: NDArray[np.float64], outline: Outline) -> bool:
    """Whether the point lies in the outline (even-odd)."""
    x, y = outline[:, 0], outline[:, 1]
    after_x, after_y = np.roll(x, -1), np.roll(y, -1)
    cut = (y > point[1]) != (after_y > point[1])
    at = x[cut] + (point[1] - y[cut]) / (after_y[cut] - y[cut]) * (after_x[cut] - x[cut])
    return bool((at > point[0]).sum() % 2)


def segments_of(outline: Outline, *, close: bool) -> tuple[Segment, ...]:
    """The points as lines."""
    pairs = [(float(x), float(y)) for x, y in outline]
    lines: list[Segment] = [("L", (pair,)) for pair in pairs[1:]]
    return (("M", (pairs[0],)), *lines, *([("Z", ())] if close else []))


@dataclass(frozen=True)
class Waver:
    """A field of small shifts that repeats with the tile: whole waves in some directions."""

    waves: NDArray[np.float64]  # x and y frequency in radians a unit, phase, shift in x and in y
    size: float

    @staticmethod
    def of(seed: int, width: float, height: float, *, length: float, size: float) -> Waver:
        """`length` is about the waves' length, `size` the typical shift, in drawing units."""
        generator = np.random.Generator(np.random.PCG64(seed))
        rows = []
        for _ in range(14):
            angle = generator.uniform(0, math.tau)
            reach = generator.uniform(0.7, 1.5) / length
            across, down = round(math.cos(angle) * reach * width), round(math.sin(angle) * reach * height)
            turn = generator.uniform(0, math.tau)
            phase = generator.uniform(0, math.tau)
            frequency = (math.tau * across / width, math.tau * down / height)
            rows.append([*frequency, phase, math.cos(turn), math.sin(turn)])
        return Waver(np.array(rows), size * math.sqrt(2 / 14))

    def shift(self, at: Outline) -> Outline:
        """How far each point is moved."""
        waves = np.sin(at @ self.waves[:, :2].T + self.waves[:, 2])
        moved: Outline = self.size * waves @ self.waves[:, 3:]
        return moved

    def moved(self, at: Outline) -> Outline:
        moved: Outline = at + self.shift(at)
        return moved


def hatches(
    shape: Sequence[Outline], across: int, down: int, width: float, height: float
) -> Iterator[tuple[Point, Point]]:
    """Where parallel lines lie inside a shape (even-odd), start and end of each.

    The lines cross the tile's width `across` times and its height `down` times, so that they repeat with it.
    """
    starts = np.vstack(shape)
    ends = np.vstack([np.roll(one, -1, axis=0) for one in shape])
    normal = np.array([across / width, down / height])
    low, high = starts @ normal, ends @ normal
    for line in range(math.ceil(min(low)), math.floor(max(low)) + 1):
        cut = (low <= line) != (high <= line)
        share = (line - low[cut]) / (high[cut] - low[cut])
        at = starts[cut] + share[:, None] * (ends[cut] - starts[cut])
        along = at @ np.array([-normal[1], normal[0]])
        at = at[np.argsort(along)]
        for first, second in zip(at[::2], at[1::2], strict=False):
            yield (float(first[0]), float(first[1])), (float(second[0]), float(second[1]))
