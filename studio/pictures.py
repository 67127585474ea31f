"""Pictures on demand: drawn by processes of their own when first asked for, then kept on disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

from studio.store.records import Subject

#: The widths in pixels in which a picture can be requested, and the one that pages show.
WIDTHS = (128, 256, 512)
PAGE_WIDTH = 256
#: Part of every file name. Raise it when the drawing changes, so that no outdated picture is served.
DRAWING = 5
#: Drawings at the same time; each takes a core and some hundred megabytes.
MOST_DRAWERS = 8
#: Seconds after which a drawing is given up and its process is ended.
DRAWING_LIMIT = 120.0


class PictureFault(Exception):
    """A picture could not be drawn."""


class Pictures:
    """The pictures of one home, and the processes that draw them, each started when all before it are busy."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "pictures"
        self._references = home / "references"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._drawers = [_Drawer() for _ in range(min(os.cpu_count() or 1, MOST_DRAWERS))]
        self._idle: asyncio.LifoQueue[_Drawer] = asyncio.LifoQueue()
        for drawer in reversed(self._drawers):
            self._idle.put_nowait(drawer)

    async def path(self, subject: Subject, width: int) -> Path:
        """Return the PNG that shows this, drawn if need be. Raises PictureFault."""
        order = _order(subject)
        path = self._directory / f"{_name(order)}-{width}.png"
        if path.exists():
            return path
        references = [str(self._references / f"{digest}.png") for digest in subject.design.references]
        drawn = {**order, "references": references, "width": width, "path": str(path)}
        drawer = await self._idle.get()
        try:
            if not path.exists():  # drawn meanwhile, for somebody else
                await drawer.draw(json.dumps(drawn))
        finally:
            self._idle.put_nowait(drawer)
        return path

    async def close(self) -> None:
        for drawer in self._drawers:
            await drawer.close()


class _Drawer:
    """A process that does one order at a time. Drawing holds Python's interpreter lock for a tenth of a second, so it
    never happens in the service's own process. The process reads orders from its standard input and ends with it,
    however the service ends.
    """

    _process: Process | None = None

    async def draw(self, line: str) -> None:
        """Have an order drawn, once more if the process died of it. Raises PictureFault."""
        answer = await self._ask(line) or await self._ask(line)
        if not answer:
            raise PictureFault("The drawing process ended without an answer.")
        error = json.loads(answer).get("error")
        if error:
            raise PictureFault(f"The picture could not be drawn: {error}")

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            await process.wait()

    async def _ask(self, line: str) -> bytes:
        """Return the drawing process's answer, or nothing when it died. Raises PictureFault when it takes too long."""
        process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
            return await asyncio.wait_for(process.stdout.readline(), DRAWING_LIMIT)
        except (BrokenPipeError, ConnectionResetError):
            return b""
        except TimeoutError:
            self._process = None
            process.kill()
            await process.wait()
            raise PictureFault(f"The drawing took longer than {DRAWING_LIMIT:.0f} s.") from None

    async def _started(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "studio.art.drawing", stdin=PIPE, stdout=PIPE
            )
        return self._process


def _order(subject: Subject) -> dict[str, Any]:
    """Return what is drawn: a pattern alone, or on a product."""
    article = subject.article
    return {
        "design": subject.design.model_dump(mode="json"),
        "category": None if article is None else article.category_key,
        "selections": {} if article is None else article.selections,
    }


def _name(order: dict[str, Any]) -> str:
    """Return a name that is the same for the same picture, whichever job asks for it."""
    what = json.dumps([DRAWING, order], sort_keys=True)
    return hashlib.sha256(what.encode()).hexdigest()[:32]
