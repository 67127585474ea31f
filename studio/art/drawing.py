"""The drawing process: reads orders from standard input, one JSON object a line, and writes pictures as files.

It answers each order with one line, and ends when its input does, so that it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from PIL import Image

from studio.art.products import product_image
from studio.art.tile import tile_image


def picture(prompt: str, category: str | None, selections: Mapping[str, str], width: int) -> Image.Image:
    """The picture of a pattern, or of a product when a category is given."""
    if category is not None:
        return product_image(prompt, category, selections, width)
    whole = tile_image(prompt)
    return whole if whole.width == width else whole.resize((width, width), Image.Resampling.BOX)


def save(image: Image.Image, path: Path) -> None:
    """Write the file whole: it appears under its name when it is complete."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    image.save(part, "PNG")
    part.replace(path)


def serve(orders: IO[str], answers: IO[str]) -> None:
    for line in orders:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


def _answer(order: dict[str, object]) -> dict[str, str]:
    """One bad order must not end the process: whatever goes wrong is said to who asked."""
    category, selections = order["category"], order["selections"]
    assert isinstance(selections, dict)
    try:
        image = picture(
            str(order["prompt"]),
            None if category is None else str(category),
            selections,
            int(str(order["width"])),
        )
        save(image, Path(str(order["path"])))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {}


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
