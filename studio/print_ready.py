"""Print-ready files of a pattern: a PDF of vectors with TrimBox and bleed, and a PNG at 150 dpi, both in sRGB.

Both are the drawing alone: the grain of the screen's picture is left to the paper or cloth that is printed on.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import IO

import numpy as np
import pikepdf
from numpy.typing import NDArray
from PIL import Image, ImageCms

from studio.art import models
from studio.art.changes import sheet_of
from studio.art.layout import TILE
from studio.art.raster import rasterise
from studio.art.references import Traits
from studio.art.scene import Scene, Shape, read_scene
from studio.art.sheet import to_svg
from studio.design import Design

#: How wide a regular tile of 1000 drawing units is in print.
TILE_MM = 200.0
BLEED_MM = 3.0
DPI = 150
POINTS = 72 / 25.4
#: Pixels that are drawn at once: a strip of the tile, and rows of the file.
STRIP = 2_000_000
#: A tile of so many bytes is drawn once for all its repeats; a larger one again for each.
KEPT = 24_000_000
#: The longest side of a print in millimetres: a roll of wallpaper.
LONGEST_MM = 12_000.0
Rows = NDArray[np.uint8]


def write_print(
    design: Design, references: tuple[Traits, ...], width_mm: float, height_mm: float, path: Path
) -> None:
    """Write the print of a design at this size: a PDF or a PNG, by the path's ending. The file appears whole.

    Raises ValueError for a size that nothing is printed in.
    """
    if not (10 <= width_mm <= LONGEST_MM and 10 <= height_mm <= LONGEST_MM):
        raise ValueError(f"prints are 10 to {LONGEST_MM:.0f} mm wide and high")
    sheet = sheet_of(design, references)
    svg = models.MANNERS[design.model].draw(to_svg(sheet), sheet)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    if path.suffix == ".pdf":
        write_pdf(svg, width_mm, height_mm, part)
    else:
        with part.open("wb") as file:
            write_png(svg, (sheet.width, sheet.height), width_mm, height_mm, file)
    part.replace(path)


def write_pdf(svg: str, width_mm: float, height_mm: float, path: Path) -> None:
    """A page of the trim size and 3 mm around it, covered by a tiling pattern of vectors. Equal input, equal bytes."""
    scene = read_scene(svg)
    bleed, width, height = (one * POINTS for one in (BLEED_MM, width_mm, height_mm))
    media = [0, 0, width + 2 * bleed, height + 2 * bleed]
    pdf = pikepdf.new()
    profile = _profile_stream(pdf)
    page = pdf.add_blank_page(page_size=(media[2], media[3])).obj
    page.MediaBox = page.BleedBox = page.CropBox = pikepdf.Array([_rounded(one) for one in media])
    trim = (bleed, bleed, bleed + width, bleed + height)
    page.TrimBox = page.ArtBox = pikepdf.Array([_rounded(one) for one in trim])
    pattern = _pattern(pdf, scene, profile, top=bleed + height, left=bleed)
    page.Resources = pikepdf.Dictionary(Pattern=pikepdf.Dictionary(P0=pattern))
    cover = f"/Pattern cs /P0 scn 0 0 {media[2]:.3f} {media[3]:.3f} re f"
    page.Contents = pdf.make_stream(cover.encode())
    pdf.Root.OutputIntents = pikepdf.Array([_intent(pdf, profile)])
    pdf.save(path, deterministic_id=True, compress_streams=True)


def _profile_stream(pdf: pikepdf.Pdf) -> pikepdf.Stream:
    profile = pdf.make_stream(srgb_profile())
    profile.N = 3
    return profile


def _intent(pdf: pikepdf.Pdf, profile: pikepdf.Stream) -> pikepdf.Object:
    return pdf.make_indirect(
        pikepdf.Dictionary(
            Type=pikepdf.Name.OutputIntent,
            S=pikepdf.Name.GTS_PDFX,
            OutputConditionIdentifier=pikepdf.String("sRGB IEC61966-2.1"),
            RegistryName=pikepdf.String("http://www.color.org"),
            Info=pikepdf.String("sRGB IEC61966-2.1"),
            DestOutputProfile=profile,
        )
    )


def _pattern(
    pdf: pikepdf.Pdf, scene: Scene, profile: pikepdf.Stream, *, top: float, left: float
) -> pikepdf.Stream:
    """The tile as a tiling pattern; its upper left corner lies at that of the trimmed page."""
    unit = TILE_MM / TILE * POINTS
    states: dict[tuple[float, float], str] = {}
    pattern = pdf.make_stream("\n".join(_operators(scene, states)).encode())
    pattern.Type = pikepdf.Name.Pattern
    pattern.PatternType, pattern.PaintType, pattern.TilingType = 1, 1, 1
    # A hair more than the step: no viewer shows a line between two tiles.
    over = 0.05
    box = [-over, -over, scene.width + over, scene.height + over]
    pattern.BBox = pikepdf.Array([_rounded(one) for one in box])
    pattern.XStep, pattern.YStep = _rounded(scene.width), _rounded(scene.height)
    pattern.Matrix = pikepdf.Array([_rounded(one) for one in (unit, 0, 0, -unit, left, top)])
    graphics = {
        name: pikepdf.Dictionary(Type=pikepdf.Name.ExtGState, ca=_rounded(fill), CA=_rounded(stroke))
        for (fill, stroke), name in states.items()
    }
    space = pikepdf.Array([pikepdf.Name.ICCBased, profile])
    pattern.Resources = pikepdf.Dictionary(
        ExtGState=pikepdf.Dictionary({f"/{name}": one for name, one in graphics.items()}),
        ColorSpace=pikepdf.Dictionary(sRGB=space),
    )
    return pattern


def _operators(scene: Scene, states: dict[tuple[float, float], str]) -> Iterator[str]:
    yield "/sRGB cs /sRGB CS 1 J 1 j"
    for shape in scene.shapes:
        opacities = (round(shape.fill_opacity, 3), round(shape.stroke_opacity, 3))
        name = states.setdefault(opacities, f"G{len(states)}")
        drawn = f"/{name} gs {_paint(shape)}"
        yield f"q {_clip(shape)}{drawn} Q" if shape.clip else drawn


def _clip(shape: Shape) -> str:
    assert shape.clip is not None
    return " ".join(f"{one:.3f}" for one in shape.clip) + " re W n "


def _paint(shape: Shape) -> str:
    fill = f"{_components(shape.fill)} scn " if shape.fill else ""
    stroke = f"{_components(shape.stroke)} SCN {shape.width:.3f} w " if shape.stroke else ""
    end = {(True, True): "B", (True, False): "f", (False, True): "S", (False, False): "n"}
    path = " ".join(
        " ".join(f"{x:.2f} {y:.2f}" for x, y in at) + f" {_OPERATORS[op]}" for op, at in shape.path
    )
    return f"{fill}{stroke}{path} {end[bool(fill), bool(stroke)]}"


_OPERATORS = {"M": "m", "L": "l", "C": "c", "Z": "h"}


def _components(colour: str) -> str:
    return " ".join(f"{int(colour[at : at + 2], 16) / 255:.4f}" for at in (1, 3, 5))


def _rounded(value: float) -> float:
    return round(value, 4)


def write_png(
    svg: str, units: tuple[float, float], width_mm: float, height_mm: float, file: IO[bytes]
) -> None:
    """The trimmed size at 150 dpi with an sRGB profile, strip by strip: a roll of wallpaper takes no more memory."""
    width, height = (max(1, round(one / 25.4 * DPI)) for one in (width_mm, height_mm))
    file.write(b"\x89PNG\r\n\x1a\n")
    _chunk(file, b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    _chunk(file, b"iCCP", b"sRGB\0\0" + zlib.compress(srgb_profile(), 9))
    _chunk(file, b"pHYs", struct.pack(">IIB", *[round(DPI / 0.0254)] * 2, 1))
    packer = zlib.compressobj(4)
    for strip in _rows(svg, units, width, height):
        packed = packer.compress(strip.tobytes())
        if packed:
            _chunk(file, b"IDAT", packed)
    _chunk(file, b"IDAT", packer.flush())
    _chunk(file, b"IEND", b"")


def _rows(svg: str, units: tuple[float, float], width: int, height: int) -> Iterator[Rows]:
    """The picture's rows in strips, each row with its filter byte."""
    across, down = (max(1, round(one * TILE_MM / TILE / 25.4 * DPI)) for one in units)
    step = max(1, STRIP // max(across, width))
    strip = partial(_strip, svg, units[1], (across, down))
    drawn = lru_cache(KEPT // (step * across * 3) if across * down * 3 <= KEPT else 1)(strip)
    done = 0
    while done < height:
        first = done % down - done % down % step
        tile = drawn(first, min(step, down - first))[done % down - first :][: height - done]
        wide = np.tile(tile, (1, math.ceil(width / across), 1))[:, :width]
        yield np.hstack([np.zeros((len(wide), 1), np.uint8), wide.reshape(len(wide), -1)])
        done += len(wide)


def _strip(svg: str, units: float, size: tuple[int, int], first: int, count: int) -> Rows:
    """Some rows of the tile, `first` to `first + count`."""
    across, down = size
    top, rows = first * units / down, count * units / down
    drawn: Image.Image = rasterise(svg, across, count, top, rows)
    return np.asarray(drawn.convert("RGB"))


def _chunk(file: IO[bytes], kind: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


@lru_cache(1)
def srgb_profile() -> bytes:
    """The sRGB profile of Little CMS, without the moment of its making."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)
    profile[84:100] = bytes(16)
    return bytes(profile)
