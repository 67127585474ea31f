"""Signals that end this process, passed on to the runs in it and then to whoever handled them before."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from patternmill.halt import Halt


class Stops:
    """The signals that end this process, passed on to the runs in it and then to who handled them before."""

    def __init__(self) -> None:
        #: Whether the process is to end: no run begins any more.
        self.is_stopped = False
        #: Whether the process is a command of ours, which ends by itself.
        self.is_command = False
        self._halts: list[Callable[[], Any]] = []
        self._before: dict[int, Any] = {}

    @contextlib.contextmanager
    def watched(self, halt: Halt) -> Iterator[None]:
        """Let a first Ctrl-C or SIGTERM halt the run, and a second one end the process."""
        loop = asyncio.get_running_loop()
        stop: Callable[[], Any] = lambda: loop.call_soon_threadsafe(halt.stop)  # noqa: E731
        self._halts.append(stop)
        if len(self._halts) == 1 and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        try:
            yield
        finally:
            self._halts.remove(stop)
            if not self._halts:
                self._restore()

    def _stop(self, number: int, frame: Any) -> None:
        if self.is_stopped:
            os._exit(128 + number)
        self.is_stopped = True
        self.number = number
        for stop in self._halts:
            stop()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pass_on(self) -> None:
        """Tell who handled the signal before: a parent flow, a worker. A command of ours has nobody else."""
        handler = self._before.get(self.number) if self.is_stopped and not self._halts else None
        self._before = {}
        if callable(handler) and not self.is_command:
            handler(self.number, None)


stops = Stops()
