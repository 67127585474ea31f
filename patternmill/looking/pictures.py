"""Pictures of patterns: asked of the service as a page comes near them, and kept beside the catalog's results."""

import asyncio
import ipaddress
import re
import socket
import time
from pathlib import Path
from typing import Any

import httpx

from patternmill.contract import Picture
from patternmill.errors import Refusal
from patternmill.files import write_whole
from patternmill.service.client import Client

#: In bytes and seconds: the most that is read of a picture, how long that may take, and when it is tried again.
_MOST_BYTES, _PATIENCE, _AGAIN_AFTER = 5_000_000, 20.0, 60.0
_AT_ONCE = 6
#: What files of pictures begin with. Those that can hold scripts are not shown.
_KINDS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
_LOOPBACK = {f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")}


class Pictures:
    """The pictures of a catalog, in a folder. Without a client or a place to ask there are only those that are kept."""

    def __init__(
        self, folder: Path, client: Client | None, where: Picture | None, service: str, transport: Any = None
    ) -> None:
        self._folder, self._client, self._where = folder, client, where
        #: How far inside the network a picture may be: as far as the service itself.
        self._inside = _depth(httpx.URL(service).host)
        self._http = httpx.AsyncClient(timeout=_PATIENCE, mounts=_LOOPBACK, transport=transport)
        self._asking: dict[str, asyncio.Task[bytes | None]] = {}
        self._tried: dict[str, float] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def find(self, pattern_id: str) -> bytes | None:
        """Return the picture of a pattern by the service's ID, or None where there is none for now."""
        if not re.fullmatch(r"\w[\w.-]{0,150}", pattern_id, re.ASCII):
            return None
        path = self._folder / f"{pattern_id}.png"
        if path.exists():
            return path.read_bytes()
        if time.monotonic() - self._tried.get(pattern_id, -_AGAIN_AFTER) < _AGAIN_AFTER:
            return None
        if pattern_id not in self._asking:
            self._asking[pattern_id] = asyncio.create_task(self._fetch(pattern_id, path))
        return await asyncio.shield(self._asking[pattern_id])

    async def _fetch(self, pattern_id: str, path: Path) -> bytes | None:
        try:
            async with self._slots, asyncio.timeout(_PATIENCE):
                content = await self._asked(pattern_id)
            if content:
                self._folder.mkdir(parents=True, exist_ok=True)
                write_whole(path, content)
                return content
        except (Refusal, httpx.HTTPError, httpx.InvalidURL, OSError):  # a timeout is an OSError too
            pass
        finally:
            self._asking.pop(pattern_id, None)
        self._tried[pattern_id] = time.monotonic()
        return None

    async def _asked(self, pattern_id: str) -> bytes | None:
        if not self._client or not self._where:
            return None
        answer = await self._client.read(self._where.path, {"patternId": pattern_id})
        address = answer.get(self._where.field) if isinstance(answer, dict) else None
        if not isinstance(address, str) or not await self._may_be_asked(httpx.URL(address)):
            return None
        read = bytearray()
        async with self._http.stream("GET", address) as response:
            if response.status_code != 200 or not response.headers.get("content-type", "").startswith(
                "image/"
            ):
                return None
            async for part in response.aiter_bytes():
                read += part
                if len(read) > _MOST_BYTES:
                    return None
        return bytes(read) if kind_of(read) else None

    async def _may_be_asked(self, url: httpx.URL) -> bool:
        """Return whether a picture may be fetched from there: never from deeper inside than the service itself is."""
        return url.scheme in ("http", "https") and await asyncio.to_thread(_depth, url.host) <= self._inside

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()
        await self._http.aclose()


def kind_of(content: bytes | bytearray) -> str:
    """Return the content type of a picture by its first bytes; empty for anything else."""
    return next((kind for start, kind in _KINDS.items() if content.startswith(start)), "")


def _depth(host: str) -> int:
    """Return how far inside a host is: 0 for the public network, 1 for a private one, 2 for this machine."""
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return 0  # a proxy may know it
    return max(map(_depth_of, map(ipaddress.ip_address, found)), default=0)


def _depth_of(address: Any) -> int:
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback or address.is_link_local or address.is_unspecified:
        return 2
    return 0 if address.is_global else 1
