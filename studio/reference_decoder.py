"""The decoding process of one uploaded picture: a file on standard input, a plain PNG on standard output.

A file from outside may be made to exhaust or break what parses it. So it is parsed here, in a process that may use
little time and memory and may write no file. What it writes is drawn anew from the pixels: nothing else of the
file is left, no metadata, no colour profile, nothing after the end of the picture.
"""

from __future__ import annotations

import io
import json
import resource
import sys
import warnings
from contextlib import suppress

from PIL import Image, ImageOps

#: The formats that are recognised by their contents; names and stated types do not count.
FORMATS = ("PNG", "JPEG", "WEBP")
PIXELS_LIMIT = 40_000_000
MEMORY_LIMIT = 1_000_000_000
CPU_SECONDS = 10
#: The most pixels on a side: a reference only guides, and more would guide no better.
SIDE_LIMIT = 2048


class NotUsable(Exception):
    """The file is no picture that can be used; the message says why."""


def decode(raw: bytes) -> Image.Image:
    """Return the picture upright, on white where it is transparent. Raises NotUsable."""
    try:
        with Image.open(io.BytesIO(raw), formats=FORMATS) as image:
            if image.width * image.height > PIXELS_LIMIT:
                raise NotUsable(f"has {image.width} x {image.height} pixels; at most {PIXELS_LIMIT} are read")
            image.draft("RGB", (SIDE_LIMIT, SIDE_LIMIT))
            image.load()
            return _plain(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise NotUsable("is no PNG, JPEG or WebP picture that can be read") from error


def _plain(image: Image.Image) -> Image.Image:
    upright = ImageOps.exif_transpose(image)
    upright.thumbnail((SIDE_LIMIT, SIDE_LIMIT))
    seen = upright.convert("RGBA")
    plain = Image.new("RGB", seen.size, "white")
    plain.paste(seen, mask=seen.getchannel("A"))
    return plain


def limit_resources() -> None:
    """Limit what this process may take. Where a system does not know a limit, the others hold."""
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_LIMIT),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def main() -> int:
    """Write one line of JSON, with the size or the reason, then the PNG."""
    limit_resources()
    warnings.simplefilter("ignore")  # Pillow's, about pictures that are large or odd
    try:
        image = decode(sys.stdin.buffer.read())
    except NotUsable as reason:
        print(json.dumps({"error": str(reason)}))
        return 0
    png = io.BytesIO()
    Image.frombytes("RGB", image.size, image.tobytes()).save(png, "PNG")
    sys.stdout.buffer.write(json.dumps({"width": image.width, "height": image.height}).encode() + b"\n")
    sys.stdout.buffer.write(png.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
