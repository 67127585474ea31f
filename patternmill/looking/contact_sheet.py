"""One small picture of a run's first pictures, for its page in the Prefect UI."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from patternmill.looking.pictures import Pictures, source_of
from patternmill.settings import Settings

#: The most pictures, the number of them in a line, and the width of each in pixels.
MOST, _IN_LINE, _WIDTH = 12, 6, 160
_GAP = 6


def contact_sheet(urls: Sequence[str], settings: Settings) -> str | None:
    """Return a JPEG of about 100 kB as a data URL; None if no picture is available."""
    paths = Pictures(settings.home, source_of(settings)).get_all(urls[:MOST])
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
