"""The drawing process: reads orders from standard input, one JSON object a line, and writes pictures as files.

It answers each order with one line, and ends when its input does, so that it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from PIL import Image

from studio.art.products import product_image
from studio.art.references import Traits, measure
from studio.art.tile import save, tile_image
from studio.design import Design

Order = Mapping[str, Any]
Answer = dict[str, object]
#: Bytes of address space, libraries and their threads among them.
MOST_MEMORY = 4 << 30


def picture(
    design: Design,
    category: str | None,
    selections: Mapping[str, str],
    width: int,
    references: tuple[Traits, ...] = (),
    kept_tile: Path | None = None,
) -> Image.Image:
    """The picture of a pattern, or of a product when a category is given; then `kept_tile` is as there."""
    if category is not None:
        return product_image(design, category, selections, width, references, kept_tile)
    whole = tile_image(design, references)
    height = max(1, round(whole.height * width / whole.width))
    return whole if whole.width == width else whole.resize((width, height), Image.Resampling.BOX)


def serve(orders: IO[str], answers: IO[str]) -> None:
    for line in orders:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


def _answer(order: Order) -> Answer:
    """One bad order must not end the process: whatever goes wrong is reported to who asked."""
    try:
        _draw(order)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {}


def _draw(order: Order) -> None:
    what = _design(order), order["category"], order["selections"], int(order["width"]), _traits(order)
    image = picture(*what, Path(order["tile"]))
    save(image, Path(order["path"]))


def _design(order: Order) -> Design:
    return Design.model_validate(order["design"])


def _traits(order: Order) -> tuple[Traits, ...]:
    return tuple(measure(Image.open(path)) for path in order["references"])


def _bound() -> None:
    """What strangers sent can make this process fail, but not take the machine's memory."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    _bound()
    # What is made goes first; its pictures are drawn meanwhile.
    os.nice(5)
    serve(sys.stdin, sys.stdout)
