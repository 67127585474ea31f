"""A proxy to PostgreSQL that can be frozen: connections stay open and are acknowledged, and nothing comes through."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from urllib.parse import urlsplit


class Frost:
    """Forwards to the server of an address; `url` is that address through this proxy. Not frozen at first."""

    def __init__(self, url: str, listening: socket.socket) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listening = listening
        self.url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{listening.getsockname()[1]}").geturl()
        self.flows = Event()
        self.flows.set()

    def accept(self) -> None:
        """Forward each connection both ways, until nobody listens any more."""
        with suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                server = socket.create_connection(self._server)
                for ends in ((client, server), (server, client)):
                    Thread(target=self._forward, args=ends, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with source, suppress(OSError):
            while data := source.recv(1 << 16):
                self.flows.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


@contextmanager
def frost_over(url: str) -> Iterator[Frost]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        frost = Frost(url, listening)
        Thread(target=frost.accept, daemon=True).start()
        yield frost
        frost.flows.set()
        listening.shutdown(socket.SHUT_RDWR)
