"""The pictures that rows name as references: read once, by path or address, and known by their bytes from then on."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from patternmill.catalog.extras import Picture, unreadable
from patternmill.catalog.problems import Problem
from patternmill.catalog.read_limits import Reading
from patternmill.catalog.remote import file_path, is_remote, shown_address, source_bytes, stable_bytes
from patternmill.errors import PatternmillError
from patternmill.text import duration, plain, shown

#: Bytes of all pictures of a catalog together: they are held until they are uploaded.
MOST_TOGETHER = 256 << 20
#: Of reading all of them; what is not read by then is refused.
TIME_TOGETHER = timedelta(minutes=10)
#: Of one of them.
_MOST, _TIME = 20 << 20, timedelta(seconds=30)
_WEB = ("http://", "https://")
_WRITE = "name a PNG, JPEG or WebP picture by its path from the catalog's folder, or by an http(s) address"


@dataclass(frozen=True)
class ReferencePlace:
    """Where a catalog's references may be."""

    #: The catalog's own; None where it has an address.
    folder: Path | None
    #: Raises PatternmillError for a path that may not be read.
    require_allowed: Callable[[Path], None] = field(default=lambda path: None)
    #: Addresses are of the public internet, or of this host.
    public_only: bool = False
    host: str | None = None


def read_references(
    cells: Iterable[str], place: ReferencePlace, *, clock: Callable[[], float] = time.monotonic
) -> dict[str, Picture | Problem]:
    """Each picture, or why it cannot be used; nothing is raised for one of them."""
    found: dict[str, Picture | Problem] = {}
    pictures: dict[str, Picture] = {}
    ends = clock() + TIME_TOGETHER.total_seconds()
    for cell in sorted(cells):
        one = _read(cell, place) if clock() < ends else _TOO_SLOW
        if isinstance(one, Picture):
            # Equal pictures are held once.
            one = pictures.setdefault(one.sha256, one)
            if sum(len(picture.raw) for picture in pictures.values()) > MOST_TOGETHER:
                del pictures[one.sha256]
                one = _TOO_LARGE
        found[cell] = one
    return found


_DIVIDE = "use fewer or smaller pictures, or divide the catalog into several"
_TOO_SLOW = unreadable(
    f"the references of this catalog were not read within {duration(TIME_TOGETHER)}", _DIVIDE
)
_TOO_LARGE = unreadable(
    f"the references of this catalog have more than {MOST_TOGETHER >> 20} MiB together", _DIVIDE
)


def _read(cell: str, place: ReferencePlace) -> Picture | Problem:
    reading = Reading(plain(shown_address(cell), 300), _MOST, time=_TIME, noun="a reference")
    try:
        raw = reading.in_time(lambda: _bytes(cell, place, reading))
    except PatternmillError as error:
        return unreadable(error.message.rstrip("."), error.remedy.rstrip(".") or _WRITE)
    except (OSError, ValueError) as error:
        return unreadable(f"{shown(shown_address(cell))} cannot be read ({type(error).__name__})", _WRITE)
    if not is_picture(raw):
        return unreadable(f"{shown(shown_address(cell))} is no PNG, JPEG or WebP picture", _WRITE)
    return Picture(hashlib.sha256(raw).hexdigest(), raw)


def _bytes(cell: str, place: ReferencePlace, reading: Reading) -> bytes:
    if is_remote(cell):
        _require_web(cell, place)
        return source_bytes(cell, reading)
    path = file_path(cell)
    if not path.is_absolute():
        if place.folder is None:
            raise PatternmillError(
                f"{shown(cell)} is a path, and the catalog has an address", code="reference", remedy=_WRITE
            )
        path = place.folder / path
    place.require_allowed(path)
    return stable_bytes(path, reading)


def _require_web(cell: str, place: ReferencePlace) -> None:
    if not cell.lower().startswith(_WEB):
        raise PatternmillError(
            f"{shown(shown_address(cell))} is no http(s) address", code="reference", remedy=_WRITE
        )
    host = urlsplit(cell).hostname or ""
    if place.public_only and host != place.host and not _is_public(host):
        raise PatternmillError(
            f"{shown(host)} is not a host of the public internet",
            code="reference",
            remedy="put the picture next to the catalog, or import the catalog with the command line",
        )


def _is_public(host: str) -> bool:
    """Whether every address that the host has now is one of the public internet.

    A host with `%` is none: what opens the address decodes it, and what resolves it does not.
    """
    if "%" in host:
        return False
    addresses = {ip_address(str(entry[4][0])) for entry in socket.getaddrinfo(host, None)}
    return bool(addresses) and all(map(is_routable, addresses))


#: What is given to hosts of IPv6, and in it what leads to an IPv4 address: Teredo and 6to4. NAT64 is outside.
_UNICAST = ip_network("2000::/3")
_TUNNELS = (ip_network("2001::/32"), ip_network("2002::/16"))


def is_routable(address: IPv4Address | IPv6Address) -> bool:
    """Whether it is a host's own on the public internet, and leads to no other address."""
    if not address.is_global or address.is_multicast:
        return False
    return address.version == 4 or (address in _UNICAST and not any(address in tunnel for tunnel in _TUNNELS))


def is_picture(raw: bytes) -> bool:
    """By how the bytes begin: PNG, JPEG, WebP."""
    web_p = raw[:4] == b"RIFF" and raw[8:12] == b"WEBP"
    return web_p or raw.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"))
