"""One raw client for the tests of the hostile service: it sees what a socket sees."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Seen:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def post(url: str, key: str, operation: str, body: object, *, timeout: float = 5.0) -> Seen:
    """One request on a connection of its own; ConnectionResetError, TimeoutError as they come."""
    parts = urlsplit(url)
    content = json.dumps(body).encode()
    head = (
        f"POST {parts.path}/{operation} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nUser-Agent: test/1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=timeout) as sock:
        sock.sendall(head.encode() + content)
        raw = b""
        while piece := sock.recv(65536):
            raw += piece
    return _seen(raw)


def _seen(raw: bytes) -> Seen:
    if not raw:
        return Seen(0, {}, b"")
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return Seen(int(lines[0].split()[1]), headers, body)
