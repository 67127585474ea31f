"""A proxy to PostgreSQL that can be frozen: connections stay open and are acknowledged, and nothing comes through."""

from __future__ import annotations

import selectors
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_LOOK = 0.02


class Frost:
    """Forwards to the server of an address; `url` is that address through this proxy. Not frozen at first."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        port = self._listening.getsockname()[1]
        self.url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
        self.is_frozen = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._forward, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(5)

    def _forward(self) -> None:
        pairs: dict[socket.socket, socket.socket] = {}
        with selectors.DefaultSelector() as ready, self._listening:
            ready.register(self._listening, selectors.EVENT_READ)
            while not self._ended.is_set():
                if self.is_frozen.is_set():
                    self._ended.wait(_LOOK)
                    continue
                for key, _ in ready.select(_LOOK):
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    if source is self._listening:
                        client, server = self._listening.accept()[0], socket.create_connection(self._server)
                        pairs |= {client: server, server: client}
                        for end in (client, server):
                            ready.register(end, selectors.EVENT_READ)
                    elif source in pairs and not self._pass_on(source, pairs[source]):
                        for end in (source, pairs.pop(source)):
                            pairs.pop(end, None)
                            ready.unregister(end)
                            end.close()
            for end in pairs:
                end.close()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> bool:
        """Returns whether the connection is still of use."""
        try:
            data = source.recv(1 << 16)
            target.sendall(data)
        except OSError:
            return False
        return bool(data)
