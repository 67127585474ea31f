"""Where drawings stand: wallpaper groups on a torus, and a packer that keeps their symmetry.

A group is a list of motions of its cell. Whatever is placed once is placed again by every motion, so that the pattern
has the whole symmetry; the packer puts each next drawing where the motions leave it most room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

#: Side of the tile in drawing units; it holds whole cells.
TILE = 1000.0
#: A drawing's own radius before it is scaled.
UNIT = 50.0

Motion = tuple[float, float, float, float, float, float]  # a b c d e f: x' = ax + cy + e, y' = bx + dy + f


class Choices(Protocol):
    """The dice of a recipe."""

    def between(self, least: float, most: float) -> float: ...


def _group(text: str) -> tuple[Motion, ...]:
    """Motions from `a b c d e f` lines."""
    lines = [tuple(float(part) for part in line.split()) for line in text.split(";")]
    return tuple((a, b, c, d, e, f) for a, b, c, d, e, f in lines)


STAY = "1 0 0 1 0 0"
CENTRED = f"{STAY}; 1 0 0 1 .5 .5"
CORNERED = f"{STAY}; -1 0 0 1 0 0; 1 0 0 -1 0 0; -1 0 0 -1 0 0"
TURNS = f"{STAY}; 0 1 -1 0 0 0; -1 0 0 -1 0 0; 0 -1 1 0 0 0"

GROUPS: MappingProxyType[str, tuple[Motion, ...]] = MappingProxyType(
    {
        "toss": _group(STAY),
        "grid": _group(STAY),
        "half_drop": _group(CENTRED),
        "brick": _group(CENTRED),
        "p2": _group(f"{STAY}; -1 0 0 -1 0 0"),
        "pg": _group(f"{STAY}; -1 0 0 1 0 .5"),
        "cm": _group(f"{CENTRED}; -1 0 0 1 0 0; -1 0 0 1 .5 .5"),
        "pgg": _group(f"{STAY}; -1 0 0 -1 0 0; 1 0 0 -1 .5 .5; -1 0 0 1 .5 .5"),
        "pmm": _group(CORNERED),
        "p4": _group(TURNS),
        "p4m": _group(f"{TURNS}; -1 0 0 1 0 0; 1 0 0 -1 0 0; 0 1 1 0 0 0; 0 -1 -1 0 0 0"),
        # Three- and sixfold turns; their cell is a rectangle of two rhombs, as high as it is wide times sqrt 3.
        "p3": (),
        "p6": (),
    }
)
NAMES = frozenset(GROUPS)
#: Nothing is turned in these, so that a drawing with a right way up keeps it.
UPRIGHT = frozenset({"toss", "grid", "half_drop", "brick", "pg", "cm"})
USUAL = ("toss", "toss", "half_drop", "p2", "pgg", "p4", "p4m", "p6", "p3", "cm", "pmm")
USUAL_UPRIGHT = ("half_drop", "half_drop", "pg", "brick", "toss", "cm")
#: Columns and rows of cells for drawings of regular size.
CELLS = MappingProxyType(
    {
        "toss": (1, 1), "grid": (3, 3), "half_drop": (2, 2), "brick": (2, 2.6), "p2": (2, 2), "pg": (2, 2),
        "cm": (1.4, 2), "pgg": (2, 2), "pmm": (1.6, 1.6), "p4": (2, 2), "p4m": (1.5, 1.5), "p3": (2, 1.2),
        "p6": (2, 1.2),
    }
)  # fmt: skip
#: How often a turn comes round in these.
HEXAGONAL = MappingProxyType({"p3": 3, "p6": 6})


@dataclass(frozen=True)
class Placement:
    """One drawing on the tile. `role` -1 is a filler."""

    role: int
    motion: Motion
    radius: float

    @property
    def centre(self) -> tuple[float, float]:
        return self.motion[4], self.motion[5]


@dataclass(frozen=True)
class Wish:
    """A drawing that wants a place: its role, how large it may and must be, and how it may be turned."""

    role: int
    most: float
    least: float
    tilt: tuple[float, float] = (0, 360)
    whole_turns: bool = False
    #: The part of the room that is taken, and how many of it are wanted.
    ease: float = 1.0
    count: int = 1


@dataclass
class Packer:
    """Places drawings one orbit at a time in one cell, and repeats the cell over the tile."""

    motions: tuple[Motion, ...]
    width: float
    height: float
    dice: Choices
    placed: list[tuple[int, Motion, float]] = field(default_factory=list)
    _rows: list[tuple[float, float, float]] = field(default_factory=list)

    def place(
        self, wish: Wish, *, spot: tuple[float, float] | None = None, angle: float | None = None
    ) -> bool:
        """Place the wish and its images where there is most room, or at the spot. False when there is too little."""
        spots = self._candidates(wish) if spot is None else np.array([spot])
        rooms = self._rooms(spots)
        best = int(np.argmax(rooms))
        radius = min(wish.most, float(rooms[best]) * wish.ease)
        if radius < wish.least:
            return False
        turn = self.dice.between(*wish.tilt) if angle is None else angle
        self._keep(wish.role, float(spots[best][0]), float(spots[best][1]), turn, radius)
        return True

    def toss(self, wish: Wish, tries: int) -> bool:
        """Place the wish at the loneliest of some random places, when it has room for its full size there."""
        spots = self._random_spots(tries)
        rooms = self._rooms(spots)
        best = int(np.argmax(rooms))
        if rooms[best] < wish.most:
            return False
        self._keep(
            wish.role, float(spots[best][0]), float(spots[best][1]), self.dice.between(*wish.tilt), wish.most
        )
        return True

    def images(self, spots: NDArray[np.float64]) -> NDArray[np.float64]:
        """The spots under each motion: motions, spots, xy."""
        linear = np.array([[[a, c], [b, d]] for a, b, c, d, _, _ in self.motions])
        steps = np.array([[e, f] for _, _, _, _, e, f in self.motions])
        moved: NDArray[np.float64] = np.einsum("mij,sj->msi", linear, spots) + steps[:, None, :]
        return moved

    def _rooms(self, spots: NDArray[np.float64]) -> NDArray[np.float64]:
        """How large a drawing can be at each spot: to its own images, and to what stands already."""
        images = self.images(spots)
        own = (
            self._distances(images[1:], spots[None])
            if len(self.motions) > 1
            else np.full((1, len(spots)), np.inf)
        )
        own = np.where(own < 1e-6, np.inf, own)
        rooms: NDArray[np.float64] = np.minimum(own.min(axis=0) / 2, min(self.width, self.height) / 2)
        if self._rows:
            others = np.array(self._rows)
            gaps = self._distances(spots[:, None], others[None, :, :2]) - others[None, :, 2]
            rooms = np.minimum(rooms, gaps.min(axis=1))
        return rooms

    def _distances(self, some: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
        period = np.array([self.width, self.height])
        gap = np.abs(some - others) % period
        distances: NDArray[np.float64] = np.linalg.norm(np.minimum(gap, period - gap), axis=-1)
        return distances

    def _candidates(self, wish: Wish) -> NDArray[np.float64]:
        spots = self._random_spots(260)
        if not wish.whole_turns:
            return spots
        halves = [
            (x * self.width, y * self.height) for x in (0, 0.25, 0.5, 0.75) for y in (0, 0.25, 0.5, 0.75)
        ]
        return np.vstack([np.array(halves), spots])

    def _random_spots(self, count: int) -> NDArray[np.float64]:
        pairs = [(self.dice.between(0, self.width), self.dice.between(0, self.height)) for _ in range(count)]
        return np.array(pairs)

    def _keep(self, role: int, x: float, y: float, angle: float, radius: float) -> None:
        turn = math.radians(angle)
        cos, sin = math.cos(turn), math.sin(turn)
        for motion in self.motions:
            image = compose(motion, (cos, sin, -sin, cos, x, y))
            place = (image[4] % self.width, image[5] % self.height)
            if self._is_free(place):
                self.placed.append((role, (*image[:4], *place), radius))
                self._rows.append((*place, radius))

    def _is_free(self, place: tuple[float, float]) -> bool:
        """Whether nothing stands exactly there: the images of a centre of rotation fall on one another."""
        if not self._rows:
            return True
        others = np.array(self._rows)[:, :2]
        return bool(self._distances(np.array([place]), others).min() > 1e-6)


def compose(outer: Motion, inner: Motion) -> Motion:
    """First `inner`, then `outer`."""
    a, b, c, d, e, f = outer
    p, q, r, s, t, u = inner
    return (
        a * p + c * q,
        b * p + d * q,
        a * r + c * s,
        b * r + d * s,
        a * t + c * u + e,
        b * t + d * u + f,
    )


def cells(name: str, scale: float) -> tuple[int, int]:
    """How many columns and rows of cells the tile has."""
    across, down = CELLS[name]
    columns = max(1, round(across / scale))
    if name == "toss":
        return columns, columns
    if name in HEXAGONAL:
        return columns, max(1, round(columns / math.sqrt(3)))
    return columns, max(1, round(down / scale))


def motions(name: str, width: float, height: float) -> tuple[Motion, ...]:
    """The motions of a group in a cell of this size."""
    if name in HEXAGONAL:
        return _turning(HEXAGONAL[name], width, height)
    stretch = width / height
    return tuple(
        (a, b / stretch if b else 0.0, c * stretch if c else 0.0, d, e * width, f * height)
        for a, b, c, d, e, f in GROUPS[name]
    )


def _turning(order: int, width: float, height: float) -> tuple[Motion, ...]:
    turns = [math.radians(360 / order * step) for step in range(order)]
    return tuple(
        (math.cos(turn), math.sin(turn), -math.sin(turn), math.cos(turn), x, y)
        for turn in turns
        for x, y in ((0.0, 0.0), (width / 2, height / 2))
    )


def arrange(name: str, scale: float, wishes: Sequence[Wish], dice: Choices) -> list[Placement]:
    """Placements of the wished drawings over the whole tile; the first wish leads."""
    columns, rows = cells(name, scale)
    width = TILE / columns
    height = width * math.sqrt(3) if name in HEXAGONAL else TILE / rows
    packer = Packer(motions(name, width, height), width, height, dice)
    if name == "toss":
        _toss(packer, wishes)
    else:
        _orbits(packer, name, wishes)
    squeeze = TILE / rows / height
    return [
        Placement(
            role, (a, b * squeeze, c, d * squeeze, x + column * width, (y + row * height) * squeeze), radius
        )
        for role, (a, b, c, d, x, y), radius in packer.placed
        for column in range(columns)
        for row in range(rows)
    ]


def _toss(packer: Packer, wishes: Sequence[Wish]) -> None:
    """Large drawings first, then smaller ones between them, as many as are wanted and find room."""
    for wish in wishes:
        for _ in range(wish.count):
            if not packer.toss(wish, 90):
                break


def _orbits(packer: Packer, name: str, wishes: Sequence[Wish]) -> None:
    lead, *others = wishes
    side = min(packer.width, packer.height)
    if name in ("p4", "p4m", "p6", "p3"):
        reach = {"p4": 0.25, "p4m": 0.27, "p6": 0.3, "p3": 0.26}[name] * side
        lean = 0.0 if name in ("p4m", "p6") else packer.dice.between(-30, 30)
        packer.place(lead, spot=(0.0, -reach), angle=lean)
    elif name in ("half_drop", "brick", "grid", "pg"):
        packer.place(lead, spot=(packer.width / 4, packer.height / 4))
    else:
        packer.place(lead)
    for wish in others:
        for _ in range(wish.count):
            if not packer.place(wish):
                break
