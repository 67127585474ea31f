"""A small HTTP/1.1 on raw sockets, so that resets, drips and cut bodies are the real thing."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", "Server: hostile"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.status != 204:
            lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, body, {"Content-Type": "application/json", **(headers or {})})


def refusal(status: int, code: str, message: str) -> Answer:
    return json_answer({"error": {"code": code, "message": message}}, status)


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request of a connection, or None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ", 2)
    pairs = (line.split(":", 1) for line in lines[1:] if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the peer sees a reset, not an orderly end."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
