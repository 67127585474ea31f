"""Crash points: every moment between two things that outlive the process, numbered, and what may happen there.

They are recorded where the program leaves Python, below all of its own functions, so that a write or a call that is
added later becomes a point by itself: commits of SQLite, fsync, rename and link of files, requests.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from httpx_aiohttp import AiohttpTransport

#: The things that may happen at a point: the call never returns, the process is killed, an error is raised.
DEEDS = ("hang", "kill", "raise")
LONG = 3600.0

#: The statements of SQLite that make nothing durable by themselves; any other one does outside of a transaction.
_QUIET = ("SELECT", "PRAGMA", "BEGIN", "ROLLBACK")


class Points:
    """Logs each point as it is passed, as in `before commit #3`, and carries out the deed at one of them."""

    def __init__(self, log: Path, at: str | None, do: str | None) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._at, self._do = at, do
        self._passed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reached(self, name: str) -> bool:
        """Log a point; return whether the deed is to be done here. A kill is carried out at once."""
        with self._lock:
            self._passed[name] += 1
            point = f"{name} #{self._passed[name]}"
            os.write(self._log, f"{point}\n".encode())
        if point != self._at:
            return False
        os.write(self._log, b"HERE\n")
        if self._do == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def passed(self, name: str, error: type[Exception]) -> None:
        if self.reached(name):
            if self._do == "hang":
                time.sleep(LONG)
            raise error(errno.EIO, "Input/output error")

    async def passed_in_the_loop(self, name: str) -> None:
        if self.reached(name):
            if self._do == "hang":
                await asyncio.sleep(LONG)
            raise OSError(errno.EIO, "Input/output error")


def watch(log: Path, *, at: str | None = None, do: str | None = None) -> None:
    """Count the points of this process from now on, and do something at one of them."""
    points = Points(log, at, do)
    _watch_sqlite(points)
    for name in ("fsync", "replace", "rename", "symlink"):
        setattr(os, name, _around(points, name, getattr(os, name)))
    _watch_requests(points)
    _watch_files(points)


def _around(points: Points, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def watched(*args: Any, **options: Any) -> Any:
        points.passed(f"before {name}", OSError)
        answer = call(*args, **options)
        points.passed(f"after {name}", OSError)
        return answer

    return watched


def _watch_sqlite(points: Points) -> None:
    def durable(connection: sqlite3.Connection, sql: str) -> bool:
        keyword = sql.split(None, 1)[0].upper()
        return keyword == "COMMIT" or (keyword not in _QUIET and not connection.in_transaction)

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:  # type: ignore[override]
            if not durable(self, sql):
                return super().execute(sql, *args)
            points.passed("before commit", sqlite3.OperationalError)
            answer = super().execute(sql, *args)
            points.passed("after commit", sqlite3.OperationalError)
            return answer

    connect = sqlite3.connect

    def watched(*args: Any, **options: Any) -> sqlite3.Connection:
        return connect(*args, **{"factory": Watched, **options})

    sqlite3.connect = watched  # type: ignore[assignment]


def _watch_requests(points: Points) -> None:
    handle = AiohttpTransport.handle_async_request

    async def watched(self: AiohttpTransport, request: httpx.Request) -> httpx.Response:
        operation = request.url.path.removeprefix("/v1/")
        await points.passed_in_the_loop(f"before {operation}")
        answer = await handle(self, request)
        await points.passed_in_the_loop(f"after {operation}")
        return answer

    AiohttpTransport.handle_async_request = watched  # type: ignore[method-assign]


def _watch_files(points: Points) -> None:
    """Log the files that are opened for writing, so that one that does not appear by a rename is noticed."""
    written = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT

    def on_event(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str) and (args[2] or 0) & written:
            os.write(points._log, f"WRITES {args[0]}\n".encode())

    sys.addaudithook(on_event)
