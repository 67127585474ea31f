"""Pictures on demand: drawn by processes of their own when first asked for, then kept on disk.

Drawing holds Python's interpreter lock for a tenth of a second, and a file from outside may be made to exhaust what
parses it: so neither happens in the service's own process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import os
import resource
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

from studio.design import NotUsable
from studio.records import Subject

#: The widths in pixels in which a picture can be requested, and the one that pages show.
WIDTHS = (128, 256, 512)
PAGE_WIDTH = 256
#: Part of every file name. Raise it when the drawing changes, so that no outdated picture is served.
DRAWING = 6
#: Drawings at the same time; each takes a core and some hundred megabytes.
MOST_DRAWERS = 8
#: The most bytes of address space of a drawing process, libraries included, and seconds that a picture takes.
MEMORY_LIMIT, SECONDS = 4 << 30, 120


class PictureFault(Exception):
    """A picture could not be drawn."""


class Pictures:
    """The pictures of one home, and the processes that draw them, each started when all before it are busy."""

    def __init__(self, home: Path) -> None:
        self._drawn, self._references = home / "pictures", home / "references"
        for folder in (self._drawn, self._references):
            folder.mkdir(parents=True, exist_ok=True)
        self._pool: ProcessPoolExecutor | None = None

    async def path(self, subject: Subject, width: int) -> Path:
        """Return the PNG that shows this, drawn if need be. Raises PictureFault."""
        article = subject.article
        order = {
            "design": subject.design.model_dump(mode="json"),
            "category": None if article is None else article.category_key,
            "selections": {} if article is None else article.selections,
        }
        what = json.dumps([DRAWING, order], sort_keys=True)
        path = self._drawn / f"{hashlib.sha256(what.encode()).hexdigest()[:32]}-{width}.png"
        if not path.exists():
            await self._done("draw", order, width, path)
        return path

    async def read_reference(self, raw: bytes, picture_id: str) -> dict[str, Any]:
        """Keep an uploaded picture; return its digest, size and colours. Raises NotUsable and PictureFault."""
        found: dict[str, Any] = await self._done("read_reference", raw, self.reference(picture_id))
        return found

    def reference(self, picture_id: str) -> Path:
        """Return where an uploaded picture is kept."""
        return self._references / f"{picture_id}.png"

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _done(self, work: str, *values: object) -> Any:
        """Have a function of `studio.art.drawing` called in a drawing process, once more if one died meanwhile."""
        for _ in range(2):
            pool = self._pool = self._pool or _pool()
            try:
                return await asyncio.get_running_loop().run_in_executor(pool, _do, work, *values)
            except BrokenProcessPool:
                self._pool = None if self._pool is pool else self._pool
            except NotUsable:
                raise
            except Exception as error:
                raise PictureFault(f"The picture could not be drawn: {error}") from error
        raise PictureFault("The picture could not be drawn: it takes too much time or memory.")


def _pool() -> ProcessPoolExecutor:
    workers = min(os.cpu_count() or 1, MOST_DRAWERS)
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin)


# What follows is done in the drawing processes, which alone load the art.


def _begin() -> None:
    """Limit a drawing process, let all others go first, and end it with its parent, however that ends."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    os.nice(5)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(0)


def _do(name: str, *values: object) -> Any:
    from studio.art import drawing

    signal.alarm(SECONDS)  # which ends this process
    try:
        return getattr(drawing, name)(*values)
    finally:
        signal.alarm(0)
