"""Draws pictures and keeps them as files, and reads uploaded ones, in processes of its own."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from studio.art.products import product_image
from studio.art.tile import tile_image
from studio.design import Design, NotUsable

#: The formats that are recognised by their contents; names and stated types do not count.
FORMATS = ("PNG", "JPEG", "WEBP")
PIXELS_LIMIT = 40_000_000
#: The most pixels on a side: a reference only guides, and more would guide no better.
SIDE_LIMIT = 2048


def draw(order: Mapping[str, Any], width: int, path: Path) -> None:
    """Draw a picture and keep it as this file."""
    keep(picture(order, width), path, compress_level=2)  # level 6 takes four times as long and saves a fifth


def picture(order: Mapping[str, Any], width: int) -> Image.Image:
    """Return the picture of a pattern, or of a product when a category is given."""
    design = Design.model_validate(order["design"])
    if order["category"] is None:
        return tile_image(design, width)
    return product_image(_tile(design), order["category"], order["selections"], width)


#: The number of patterns that are kept: products of a catalog come in groups that share one.
_tile = lru_cache(32)(tile_image)


def read_reference(raw: bytes, path: Path) -> dict[str, Any]:
    """Keep what an uploaded picture shows, and return its digest, size and colours. Raises NotUsable.

    It is drawn anew from the pixels: nothing else of the file is left, no metadata, no colour profile, nothing after
    the end of the picture.
    """
    image = decode(raw)
    sha256 = keep(Image.frombytes("RGB", image.size, image.tobytes()), path)
    return {"sha256": sha256, "width": image.width, "height": image.height, "colours": colours_of(image)}


def decode(raw: bytes) -> Image.Image:
    """Return the picture upright, on white where it is transparent. Raises NotUsable."""
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(raw), formats=FORMATS) as image:
            if image.width * image.height > PIXELS_LIMIT:
                raise NotUsable(f"has {image.width} x {image.height} pixels; at most {PIXELS_LIMIT} are read")
            image.draft("RGB", (SIDE_LIMIT, SIDE_LIMIT))
            upright = ImageOps.exif_transpose(image)
            upright.thumbnail((SIDE_LIMIT, SIDE_LIMIT))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise NotUsable("is no PNG, JPEG or WebP picture that can be read") from error
    seen = upright.convert("RGBA")
    plain = Image.new("RGB", seen.size, "white")
    plain.paste(seen, mask=seen.getchannel("A"))
    return plain


def colours_of(reference: Image.Image) -> tuple[str, ...]:
    """Return the colours of a reference picture, the largest share first."""
    small = reference.convert("RGB").resize((96, 96), Image.Resampling.BOX)
    found = small.quantize(6, Image.Quantize.MAXCOVERAGE).convert("RGB").getcolors() or []
    largest = (rgb for _, rgb in sorted(found, reverse=True) if isinstance(rgb, tuple))
    return tuple("#{:02x}{:02x}{:02x}".format(*rgb) for rgb in largest)


def keep(image: Image.Image, path: Path, **options: Any) -> str:
    """Write the file, which appears under its name when it is complete; return the SHA-256 of its bytes."""
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(file.getvalue())
    part.replace(path)
    return hashlib.sha256(file.getvalue()).hexdigest()
