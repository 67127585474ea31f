"""`python -m studio.render "blue herons on cream" heron.png`: draw a picture without a service."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studio.design import DEFAULT_MODEL, Design
from studio.models import MODELS
from studio.offer import CATEGORIES
from studio.pictures import WIDTHS


def main(argv: Sequence[str] | None = None) -> int:
    keys = [category.key for category in CATEGORIES]
    parser = argparse.ArgumentParser(
        prog="python -m studio.render", description="Draw a pattern or a product."
    )
    parser.add_argument("prompt")
    parser.add_argument("file", type=Path, help="the PNG to write")
    parser.add_argument("--model", choices=[model.model_id for model in MODELS], default=DEFAULT_MODEL)
    parser.add_argument("--seed", type=int, help="another drawing of the same prompt")
    parser.add_argument(
        "--palette", nargs="+", default=[], metavar="#RRGGBB", help="the ground, then the inks"
    )
    parser.add_argument("--category", choices=keys, help="show the pattern on this product")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="a selection")
    parser.add_argument("--width", type=int, choices=WIDTHS, default=max(WIDTHS))
    options = parser.parse_args(argv)
    from studio.art.drawing import picture  # the drawing libraries take a moment to load
    from studio.art.tile import save

    selections = dict(str(pair).split("=", 1) for pair in options.option)
    design = Design(
        prompt=options.prompt, model=options.model, seed=options.seed, palette=tuple(options.palette)
    )
    save(picture(design, options.category, selections, options.width), options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
