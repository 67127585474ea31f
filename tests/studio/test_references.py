"""Uploaded pictures: drawn anew from their pixels, within bounds."""

import io
import struct
import zlib

import pytest
from PIL import Image

from studio.art.drawing import decode, read_reference
from studio.design import NotUsable


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def bomb(side):
    """Return a PNG of a few bytes that would have so many pixels on each side."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    parts = {
        b"IHDR": struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(b""),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in parts.items())


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_pictures_are_read_by_their_contents(kind):
    assert decode(encoded(Image.new("RGB", (30, 20), "teal"), kind)).size == (30, 20)


def test_metadata_is_dropped_and_the_picture_upright(tmp_path):
    """Nothing about position, camera or comments is in the file that is kept."""
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by a quarter
    exif[0x010F] = "canary-camera"
    raw = encoded(Image.new("RGB", (40, 20), "teal"), "JPEG", exif=exif, comment=b"canary-comment")
    assert raw.count(b"canary") == 2

    found = read_reference(raw, tmp_path / "kept.png")

    kept = (tmp_path / "kept.png").read_bytes()
    assert (found["width"], found["height"], found["colours"]) == (20, 40, ("#008083",))  # of a JPEG
    assert b"canary" not in kept
    assert Image.open(io.BytesIO(kept)).info == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"GIF89a" + bytes(50), b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        encoded(Image.new("RGB", (9, 9)), "GIF"), encoded(Image.new("RGB", (99, 99)), "PNG")[:-40], bomb(100_000),
        bomb(7_000),
    ],
)  # fmt: skip
def test_other_files_are_refused_and_leave_nothing(tmp_path, raw):
    with pytest.raises(NotUsable):
        read_reference(raw, tmp_path / "kept.png")
    assert not list(tmp_path.iterdir())
