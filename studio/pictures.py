"""Pictures on demand: drawn by a process of their own when first asked for, then kept on disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from studio.service import PictureOrder

#: The widths in pixels that a picture can be asked in; the first for lists, the last is the default.
WIDTHS = (128, 256, 512)
#: Part of every file name: raise it when the drawing changes, so that no old picture is served for a new one.
DRAWING = 1


class PictureFault(Exception):
    """A picture could not be drawn."""


class Pictures:
    """The pictures in one directory, and the process that draws them.

    Drawing holds Python's interpreter lock for a good part of a second, so it never happens in the service's
    own process. The drawing process reads orders from its standard input and ends with it, however the
    service ends.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._directory.mkdir(parents=True, exist_ok=True)
        self._one_at_a_time = asyncio.Lock()
        self._process: Process | None = None

    async def path(self, order: PictureOrder, width: int) -> Path:
        """The file of this picture. Raises PictureFault."""
        path = self._directory / f"{name(order)}-{width}.png"
        if not path.exists():
            async with self._one_at_a_time:
                if not path.exists():
                    await self._draw(order, width, path)
        return path

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            await process.wait()

    async def _draw(self, order: PictureOrder, width: int, path: Path) -> None:
        line = json.dumps(
            {
                "prompt": order.prompt,
                "category": order.category,
                "selections": order.selections,
                "width": width,
                "path": str(path),
            }
        )
        answer = await self._ask(line) or await self._ask(line)
        if not answer:
            raise PictureFault("The drawing process ended without an answer.")
        said = json.loads(answer)
        if said.get("error"):
            raise PictureFault(f"The picture could not be drawn: {said['error']}")

    async def _ask(self, line: str) -> bytes:
        """The drawing process's answer, or nothing when it died."""
        process = await self._drawing_process()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
            return await process.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            return b""

    async def _drawing_process(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "studio.art.drawing", stdin=PIPE, stdout=PIPE
            )
        return self._process


def name(order: PictureOrder) -> str:
    """The same for the same picture, whichever job asks for it."""
    what = [DRAWING, order.prompt, order.category, sorted(order.selections.items())]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]
