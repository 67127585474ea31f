"""The first pictures of a run as one small picture, for a page that shows no more."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from patternmill.looking.kept_pictures import draw_few, picture_name
from patternmill.looking.pictures import Pictures
from patternmill.settings import Settings

#: Pictures, those of a line, and the width of each in points.
MOST, _IN_LINE, _WIDTH = 12, 6, 160
_GAP = 6


def contact_sheet(urls: Sequence[str], settings: Settings) -> str | None:
    """A data address of a JPEG of some 100 kB; None where no picture is at hand. Fetches or draws what it lacks."""
    pictures = Pictures(settings.home, settings.studio_url)
    if settings.embedded and settings.studio_url is not None:
        draw_few(urls[:MOST], settings.home, settings.studio_url)
    pictures.fetch(urls[:MOST])
    paths = [path for url in urls[:MOST] if (path := pictures.path(picture_name(url))) is not None]
    return _joined(paths) if paths else None


def _joined(paths: Sequence[Path]) -> str:
    columns = min(len(paths), _IN_LINE)
    lines = -(-len(paths) // columns)
    step = _WIDTH + _GAP
    sheet = Image.new("RGB", (columns * step - _GAP, lines * step - _GAP), "white")
    for number, path in enumerate(paths):
        with Image.open(path) as picture:
            small = picture.convert("RGB").resize((_WIDTH, _WIDTH))
        sheet.paste(small, (number % columns * step, number // columns * step))
    stream = io.BytesIO()
    sheet.save(stream, "JPEG", quality=75)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"
