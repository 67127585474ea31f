"""What a connection to a database server needs beside SQL: an end to every wait, and the server's own clock."""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

_LOOK = 0.5
_MEASURE_EVERY = 30.0
#: A measurement that took longer says too little of the server's clock.
_LONGEST_ROUND = 1.0


class Watchdog:
    """Shuts a connection's socket down when an answer is overdue; libpq then finds the connection lost.

    A statement has no deadline on the client's side, and a server that is frozen still acknowledges what it is sent:
    neither psycopg nor keepalives would ever end the wait.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self._until: float | None = None
        self._ended = threading.Event()
        #: Whether it had to.
        self.bitten = False
        weakref.finalize(connection, self._ended.set)
        threading.Thread(target=self._watch, name="ledger-watchdog", daemon=True).start()

    @contextmanager
    def awaiting(self, seconds: float) -> Iterator[None]:
        """An answer is due within so many seconds."""
        self.expect(seconds)
        try:
            yield
        finally:
            self.rest()

    def expect(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def rest(self) -> None:
        """Nothing is waited for just now."""
        self._until = None

    def end(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        with self._socket:
            while not self._ended.wait(_LOOK):
                until = self._until
                if until is not None and time.monotonic() > until:
                    self.bitten = True
                    try:
                        self._socket.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        return


class ServerClock:
    """The server's clock, kept between measurements by a local one that nobody sets."""

    def __init__(self, local: Callable[[], float] | None = None) -> None:
        self._local = local or _uptime
        self._offset = 0.0
        self._measured: float | None = None

    def __call__(self) -> float:
        """Unix seconds. Measured at least once before."""
        return self._local() + self._offset

    def is_due(self) -> bool:
        return self._measured is None or self._local() - self._measured >= _MEASURE_EVERY

    def measure(self, ask: Callable[[], float]) -> None:
        """`ask` asks the server for its time; the answer is taken to be of the middle of the round."""
        sent = self._local()
        told = float(ask())
        took = self._local() - sent
        if self._measured is None or took <= _LONGEST_ROUND:
            self._offset = told - (sent + took / 2)
        self._measured = self._local()


def _uptime() -> float:
    """Seconds since boot, those of a suspension too where the system counts them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
