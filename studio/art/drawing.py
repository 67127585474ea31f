"""The drawing process: reads orders from standard input, one JSON object a line, and writes pictures as files.

It answers each order with one line, and ends when its input does, so that it never outlives its parent.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from PIL import Image

from studio.art.products import product_image
from studio.art.tile import tile_image
from studio.design import Design

Order = Mapping[str, Any]
#: The most bytes of address space, libraries and their threads included.
MOST_MEMORY = 4 << 30


def serve(orders: IO[str], answers: IO[str]) -> None:
    """Draw each order and answer it, in its turn."""
    for line in orders:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


def _answer(order: Order) -> dict[str, str]:
    """Draw an order, and report whatever goes wrong to the caller: one bad order must not end the process."""
    try:
        save(picture(order), Path(order["path"]))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {}


def picture(order: Order) -> Image.Image:
    """Return the picture of a pattern, or of a product when a category is given."""
    design, width = Design.model_validate(order["design"]), int(order["width"])
    references = tuple(colours_of(Image.open(path)) for path in order["references"])
    if order["category"] is None:
        return tile_image(design, references, width)
    return product_image(_tile(design, references), order["category"], order["selections"], width)


#: The number of patterns that are kept: products of a catalog come in groups that share one.
_tile = lru_cache(32)(tile_image)


def colours_of(reference: Image.Image) -> tuple[str, ...]:
    """Return the colours of a reference picture, the largest share first."""
    small = reference.convert("RGB").resize((96, 96), Image.Resampling.BOX)
    found = small.quantize(6, Image.Quantize.MAXCOVERAGE).convert("RGB").getcolors() or []
    largest = (rgb for _, rgb in sorted(found, reverse=True) if isinstance(rgb, tuple))
    return tuple("#{:02x}{:02x}{:02x}".format(*rgb) for rgb in largest)


def save(image: Image.Image, path: Path) -> None:
    """Write the file whole: it appears under its name when it is complete."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    # Level 6 takes four times as long and saves a fifth.
    image.save(part, "PNG", compress_level=2)
    part.replace(path)


def _bound() -> None:
    """Limit this process's memory: a stranger's picture may make it fail, but not take the machine down."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    _bound()
    # New work goes first; its pictures are drawn meanwhile.
    os.nice(5)
    serve(sys.stdin, sys.stdout)
