"""A tile in the making: drawings stamped on a torus, so that the tile repeats without a seam."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np

from studio.art.colour import Colour
from studio.art.pen import Pen, moved
from studio.art.recipe import Recipe

#: The side of a tile in drawing units.
SIDE = 1000.0
#: A position and a radius.
Spot = tuple[float, float, float]


class Sheet:
    """One tile of a recipe; its drawings are added from back to front."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.palette = recipe, recipe.palette
        self.pen = Pen(recipe.palette.ground, recipe.style)
        self.dice = Random(recipe.seed)  # noqa: S311  nothing is secret here
        self.spots: list[Spot] = []
        self._parts: list[str] = []
        self._names: dict[str, str] = {}
        self._motifs: dict[tuple[str, str, Colour | None], str] = {}

    def motif(self, name: str, thing: str | None = None, main: Colour | None = None) -> str:
        """Return a hand-drawn motif in the colours of a thing, by default its own; `main` is another main colour."""
        key = name, thing or name, main
        if key not in self._motifs:
            inks = self.palette.parts(thing or name, main)
            self._motifs[key] = self.pen.motif(name, inks, self.recipe.motifs[0])
        return self._motifs[key]

    def lay(self, *shapes: str) -> None:
        """Add shapes that repeat by themselves."""
        self._parts.extend(shapes)

    def stamp(
        self, drawing: str, spot: Spot, angle: float = 0, scale: float = 1, *, flip: bool = False
    ) -> None:
        """Add a drawing, which reaches at most half over its spot's radius. What crosses an edge continues opposite."""
        name = self._names.setdefault(drawing, f"d{len(self._names)}")
        for x in _images(spot[0], 1.5 * spot[2]):
            for y in _images(spot[1], 1.5 * spot[2]):
                self._parts.append(moved(f'<use href="#{name}"/>', x, y, angle, scale, flip=flip))

    def scatter(self, radii: Iterable[float]) -> list[Spot]:
        """Return a spot for each radius, as far from all before it as can be found; none where there is no room."""
        before = len(self.spots)
        for radius in radii:
            xy = np.array([[self.dice.uniform(0, SIDE), self.dice.uniform(0, SIDE)] for _ in range(60)])
            taken = np.array(self.spots or [(0.0, 0.0, -SIDE)])
            gap = np.abs(xy[:, None] - taken[None, :, :2])
            room = (np.hypot(*np.moveaxis(np.minimum(gap, SIDE - gap), 2, 0)) - taken[:, 2]).min(axis=1)
            best = int(room.argmax())
            if room[best] >= radius:
                self.spots.append((float(xy[best, 0]), float(xy[best, 1]), radius))
        return self.spots[before:]

    def svg(self) -> str:
        """Return the whole tile."""
        size = f'width="{SIDE:.0f}" height="{SIDE:.0f}"'
        drawings = "".join(f'<g id="{name}">{drawing}</g>' for drawing, name in self._names.items())
        defs = f"<defs>{''.join(self.pen.defs.values())}{drawings}</defs>"
        ground = f'<rect {size} fill="{self.palette.ground}"/>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{defs}{ground}{"".join(self._parts)}</svg>'


def _images(place: float, reach: float) -> list[float]:
    """Return the places along one side at which a drawing touches the tile."""
    images = (place % SIDE + step for step in (-SIDE, 0.0, SIDE))
    return [image for image in images if -reach < image < SIDE + reach]
