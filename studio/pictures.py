"""Pictures on demand: drawn by processes of their own when first asked for, then kept on disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from studio.design import Design

#: The widths in pixels that a picture can be asked in; the first for lists, the last is the default.
WIDTHS = (128, 256, 512)
#: Part of every file name: raise it when the drawing changes, so that no old picture is served for a new one.
DRAWING = 5
#: Each takes a core, and some hundred megabytes.
MOST_DRAWERS = 8
#: A drawing that takes longer is given up, its process ended, in seconds.
DRAWING_LIMIT = 120.0


class PictureFault(Exception):
    """A picture could not be drawn."""


@dataclass(frozen=True)
class PictureOrder:
    """What a picture shows: a pattern alone, or on a product."""

    design: Design
    category: str | None = None
    selections: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        return {**asdict(self), "design": self.design.model_dump(mode="json")}


class _Drawer:
    """A process that does one order at a time. Drawing holds Python's interpreter lock for a tenth of a second, so it
    never happens in the service's own process. The process reads orders from its standard input and ends with it,
    however the service ends.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._one_at_a_time = asyncio.Lock()
        self._process: Process | None = None

    async def draw(self, order: Mapping[str, Any], path: Path) -> None:
        """Have the order's file drawn, unless it is there already. Raises PictureFault."""
        async with self._one_at_a_time:
            if _is_there(path):
                return
            line = json.dumps(order)
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
        """The drawing process's answer, or nothing when it died. Raises PictureFault when it takes too long."""
        process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
            return await asyncio.wait_for(process.stdout.readline(), self._limit)
        except (BrokenPipeError, ConnectionResetError):
            return b""
        except TimeoutError:
            self._process = None
            process.kill()
            await process.wait()
            raise PictureFault(f"The drawing took longer than {self._limit:.0f} s.") from None

    async def _started(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "studio.art.drawing", stdin=PIPE, stdout=PIPE
            )
        return self._process


class _Drawers:
    """Several drawing processes, each started when all before it are busy."""

    def __init__(self, count: int, limit: float) -> None:
        self._all = [_Drawer(limit) for _ in range(count)]
        self._idle: asyncio.LifoQueue[_Drawer] = asyncio.LifoQueue()
        for drawer in reversed(self._all):
            self._idle.put_nowait(drawer)

    async def draw(self, order: Mapping[str, Any], path: Path) -> None:
        """As one of them does it. Raises PictureFault."""
        drawer = await self._idle.get()
        try:
            await drawer.draw(order, path)
        finally:
            self._idle.put_nowait(drawer)

    async def close(self) -> None:
        for drawer in self._all:
            await drawer.close()


def _is_there(path: Path) -> bool:
    return path.exists()


class Pictures:
    """The pictures in one directory, and the processes that draw them.

    `references` is where uploaded pictures are kept, by their digests; unless it is named, next to the directory.
    """

    def __init__(self, directory: Path, references: Path | None = None) -> None:
        self._directory = directory
        self._references = references or directory.with_name("references")
        self._directory.mkdir(parents=True, exist_ok=True)
        self._drawers = _Drawers(min(os.cpu_count() or 1, MOST_DRAWERS), DRAWING_LIMIT)

    async def path(self, order: PictureOrder, width: int) -> Path:
        """The PNG of this picture, drawn if need be. Raises PictureFault."""
        path = self._directory / f"{name(order)}-{width}.png"
        if not path.exists():
            references = [str(self._references / f"{digest}.png") for digest in order.design.references]
            asked = {**order.body(), "references": references, "width": width, "path": str(path)}
            await self._drawers.draw(asked, path)
        return path

    async def close(self) -> None:
        await self._drawers.close()


def name(order: PictureOrder) -> str:
    """The same for the same picture, whichever job asks for it."""
    what = json.dumps([DRAWING, order.body()], sort_keys=True)
    return hashlib.sha256(what.encode()).hexdigest()[:32]
