"""Print-ready files: boxes, vectors and profile of the PDF, resolution and memory of the PNG, and the same bytes."""

from __future__ import annotations

import asyncio
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pikepdf
import pytest
from PIL import Image

from studio.design import Crop, Design, Extend
from studio.pictures import PictureFault, PictureOrder, Pictures
from studio.print_ready import BLEED_MM, POINTS, write_print

HERONS = Design(prompt="blue herons on cream")
CUT = Design(
    prompt="bees on gingham",
    changes=(Crop(x=0.1, y=0.1, width=0.5, height=0.4), Extend(columns=2, rows=1)),
)


@pytest.mark.parametrize("design", [HERONS, CUT], ids=["plain", "changed"])
@pytest.mark.parametrize("ending", ["pdf", "png"])
def test_same_design_has_the_same_bytes(tmp_path: Path, design: Design, ending: str) -> None:
    one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
    write_print(design, (), 120, 90, one)
    write_print(design, (), 120, 90, other)

    assert one.read_bytes() == other.read_bytes()


def test_pdf_has_boxes_vectors_and_a_profile(tmp_path: Path) -> None:
    """3 mm of bleed around the trimmed size; no picture in it, no date."""
    path = tmp_path / "print.pdf"
    write_print(HERONS, (), 300, 200, path)

    with pikepdf.open(path) as pdf:
        page = pdf.pages[0]
        media, trim = ([float(one) for one in box] for box in (page.mediabox, page.trimbox))
        pattern = page.obj.Resources.Pattern.P0
        operators = {str(one.operator) for one in pikepdf.parse_content_stream(pattern)}
        assert [float(one) for one in page.obj.BleedBox] == media
        assert trim == pytest.approx([one * POINTS for one in (BLEED_MM, BLEED_MM, 303, 203)], abs=0.001)
        assert media == pytest.approx([0, 0, 306 * POINTS, 206 * POINTS], abs=0.001)
        assert {"m", "c", "f"} <= operators
        assert "Do" not in operators
        assert pattern.Resources.ColorSpace.sRGB[0] == "/ICCBased"
        assert not pdf.docinfo.get("/CreationDate")


def test_png_has_resolution_profile_and_repeat(tmp_path: Path) -> None:
    """150 dpi in sRGB; the autocorrelation of its rows and columns has its peak at the repeat."""
    path = tmp_path / "print.png"
    write_print(HERONS, (), 500, 450, path)
    with Image.open(path) as image:
        assert image.size == (2953, 2657)
        assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)
        assert "sRGB".encode("utf-16-be") in image.info["icc_profile"]
        grey = np.asarray(image.convert("L"), dtype=np.float64)
    repeat = round(200 / 25.4 * 150)
    for rows in (grey[::40], grey.T[::40]):
        varied = rows - rows.mean()
        lags = range(repeat - 60, repeat + 61)
        strength = [float((varied[:, :-lag] * varied[:, lag:]).mean()) for lag in lags]
        assert lags[int(np.argmax(strength))] == repeat
        assert np.array_equal(rows[:, :-repeat], rows[:, repeat:])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
def test_memory_does_not_grow_with_the_print(tmp_path: Path) -> None:
    """A roll of wallpaper, in a process of its own: its pixels alone are more than the process ever holds."""
    path = tmp_path / "roll.png"
    program = (
        "import sys; from pathlib import Path; from studio.design import Design;"
        "from studio.print_ready import write_print;"
        "write_print(Design(prompt='blue herons on cream'), (), 680, 4500, Path(sys.argv[1]));"
        "print(Path('/proc/self/status').read_text())"
    )
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)

    with path.open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    # Not ru_maxrss, in which a process begins with the peak of the one that started it.
    peak = int(ended.stdout.split("VmHWM:")[1].split()[0]) * 1024
    assert peak < width * height * 3 * 0.75


def test_pictures_are_made_by_processes_of_their_own(tmp_path: Path) -> None:
    """A print file, a pattern that an uploaded picture guides, and one whose picture is lost."""
    Image.new("RGB", (64, 64), (200, 54, 47)).save(tmp_path / "kept.png")

    async def made() -> tuple[Path, Path]:
        pictures = Pictures(tmp_path / "pictures", tmp_path)
        try:
            printed = await pictures.print_file(PictureOrder(HERONS), 100, 80, "pdf")
            with pytest.raises(PictureFault, match="FileNotFoundError"):
                await pictures.path(PictureOrder(Design(prompt="swallows", references=("lost",))), 128)
            guided = PictureOrder(Design(prompt="swallows", references=("kept",)))
            return printed, await pictures.path(guided, 128)
        finally:
            await pictures.close()

    printed, guided = asyncio.run(made())
    with pikepdf.open(printed) as pdf:
        assert len(pdf.pages) == 1
    with Image.open(guided) as image:
        red, _, blue = np.asarray(image.convert("RGB"), dtype=float).reshape(-1, 3).mean(axis=0)
        assert red > blue + 60
