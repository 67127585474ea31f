"""`python -m benchmarks.house.one_row FILE OUT`: imports a file in this process and writes what of our code ran.

The longest chain crosses tasks and threads: each remembers the frames that created it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
from contextvars import ContextVar, copy_context
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.house.source import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
#: Made once each time that a CSV is parsed.
PARSED = "patternmill.sheets.csv_reader:CatalogFile.__init__"
REQUEST = "patternmill.service.client:StudioClient.post"
PATTERN_OPERATION = "patterns/create"
LEDGER_FILE = "ledger.sqlite3"

_PREFIXES = tuple(f"{ROOT / package}/" for package in PACKAGES)
_CO_OPTIMIZED = 1  # of functions, not of modules and class bodies
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

_creators: ContextVar[tuple[str, ...]] = ContextVar("_creators", default=())


@dataclass
class OneRow:
    """What an import of one row took."""

    exit_code: int
    #: Files of which a function ran.
    files: list[str]
    parsed: int
    ledger_connections: int
    #: From the verb to the request that creates the pattern; `file:function`.
    chain: list[str]


class Watch:
    """Counts calls of our functions from `start` on, in all threads."""

    def __init__(self) -> None:
        #: Files of which a function ran.
        self.ran: set[str] = set()
        self.parsed = 0
        self.connections = 0
        self.chain: tuple[str, ...] = ()
        self._threads: dict[threading.Thread, tuple[str, ...]] = {}

    def start(self) -> None:
        self._request, self._parsed = function_code(REQUEST), function_code(PARSED)
        sys.addaudithook(self._audit)
        self._remember_creators()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect" and LEDGER_FILE in str(arguments[0]):
            self.connections += 1

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        self.parsed += frame.f_code is self._parsed
        if _is_ours(frame.f_code) and frame.f_code.co_filename not in self.ran and not _is_imported(frame):
            self.ran.add(frame.f_code.co_filename)
        if frame.f_code is self._request and PATTERN_OPERATION in frame.f_locals.values():
            self.chain = max(self.chain, self._chain_to(frame), key=len)

    def _remember_creators(self) -> None:
        """A task gets the chain of its creator with its context, a thread with its start."""
        create_task, start = asyncio.BaseEventLoop.create_task, threading.Thread.start
        watch = self

        def creating(loop: Any, coroutine: Any, *, context: Any = None, **more: Any) -> Any:
            context = context or copy_context()
            context.run(_creators.set, watch._chain_to(sys._getframe(1)))
            return create_task(loop, coroutine, context=context, **more)

        def starting(thread: threading.Thread) -> None:
            watch._threads[thread] = watch._chain_to(sys._getframe(1))
            start(thread)

        asyncio.BaseEventLoop.create_task = creating  # type: ignore[method-assign,assignment]
        threading.Thread.start = starting  # type: ignore[method-assign,assignment]

    def _chain_to(self, frame: FrameType | None) -> tuple[str, ...]:
        """Our frames down to this one, those that created its task or thread included."""
        chain: list[str] = []
        while frame is not None and frame.f_code is not asyncio.Handle._run.__code__:
            if _is_ours(frame.f_code):
                path = Path(frame.f_code.co_filename).relative_to(ROOT)
                chain.append(f"{path}:{frame.f_code.co_qualname}")
            frame = frame.f_back
        created_by = _creators.get() or self._threads.get(threading.current_thread(), ())
        return (*created_by, *reversed(chain))


def _is_imported(frame: FrameType | None) -> bool:
    """Whether a function runs because a module of ours is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(_PREFIXES):
            return True
        frame = frame.f_back
    return False


def _is_ours(code: CodeType) -> bool:
    return (
        code.co_filename.startswith(_PREFIXES)
        and bool(code.co_flags & _CO_OPTIMIZED)
        and code.co_name not in _COMPREHENSIONS
    )


def function_code(name: str) -> CodeType:
    """The code of `module:function` or `module:Class.method`. Raises SystemExit when it is called otherwise now."""
    module, _, path = name.partition(":")
    try:
        function = attrgetter(path)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"{name} is gone ({error}): name its successor in {__file__}") from None
    code: CodeType = function.__code__
    return code


def main() -> None:
    file, out = sys.argv[1:]
    watch = Watch()
    watch.start()
    from cli.main import run

    code = run(["import", file, "--catalog", "one-row", "--out", "results"])
    watch.stop()
    found = OneRow(
        exit_code=code,
        files=sorted(str(Path(path).relative_to(ROOT)) for path in watch.ran),
        parsed=watch.parsed,
        ledger_connections=watch.connections,
        chain=list(watch.chain),
    )
    Path(out).write_text(json.dumps(asdict(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
