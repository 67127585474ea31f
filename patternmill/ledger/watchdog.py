"""An end to every wait for a database server."""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

_LOOK = 0.5


class Watchdog:
    """Shuts a connection's socket down when an answer is overdue; libpq then finds the connection lost.

    A statement has no deadline on the client's side, and a server that is frozen still acknowledges what it is sent:
    neither psycopg nor keepalives would ever end the wait.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self._until: float | None = None
        self._ended = threading.Event()
        #: Whether an answer was overdue.
        self.has_fired = False
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
        self._until = None

    def end(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        with self._socket:
            while not self._ended.wait(_LOOK):
                until = self._until
                if until is not None and time.monotonic() > until:
                    self.has_fired = True
                    try:
                        self._socket.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        return
