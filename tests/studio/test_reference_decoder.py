"""Uploaded pictures: drawn anew from their pixels, within bounds."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from studio.errors import Refusal
from studio.reference_decoder import NotUsable, decode
from studio.reference_reading import read_reference
from studio.requests import REFERENCE_LIMIT


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def bomb(side: int) -> bytes:
    """Return a PNG of a few bytes that would have so many pixels on each side."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_pictures_are_read_by_their_contents(kind: str) -> None:
    assert decode(encoded(Image.new("RGB", (30, 20), "teal"), kind)).size == (30, 20)


def test_metadata_is_dropped_and_the_picture_upright(tmp_path: Path) -> None:
    """Nothing about position, camera or comments is in the file that is kept."""
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by a quarter
    exif[0x010F] = "canary-camera"
    raw = encoded(Image.new("RGB", (40, 20), "teal"), "JPEG", exif=exif, comment=b"canary-comment")
    assert raw.count(b"canary") == 2

    picture = read_reference(base64.b64encode(raw).decode(), tmp_path)

    kept = (tmp_path / f"{picture.sha256}.png").read_bytes()
    assert (picture.width, picture.height) == (20, 40)
    assert b"canary" not in kept
    assert Image.open(io.BytesIO(kept)).info == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"GIF89a" + bytes(50),
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        encoded(Image.new("RGB", (9, 9)), "GIF"),
        encoded(Image.new("RGB", (99, 99)), "PNG")[:-40],
        bomb(100_000),
        bomb(7_000),
    ],
)
def test_other_files_are_refused(raw: bytes) -> None:
    with pytest.raises(NotUsable):
        decode(raw)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ("no base64!", 422),
        (base64.b64encode(bomb(60_000)).decode(), 422),
        (base64.b64encode(bytes(REFERENCE_LIMIT + 1)).decode(), 413),
    ],
)
def test_uploads_that_cannot_be_used_are_refused(tmp_path: Path, data: str, status: int) -> None:
    """They leave no file."""
    with pytest.raises(Refusal) as refused:
        read_reference(data, tmp_path)

    assert refused.value.status == status
    assert list(tmp_path.iterdir()) == []
