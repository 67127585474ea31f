"""Addresses: which ones can be opened, how they are shown, and which ones name the same service."""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = "localhost"
#: Schemes of the stores that fsspec opens; `memory` is within this process.
STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"})
_BUCKET_AND_PATH = re.compile(r"[\w.-]+(/[\w.,=+ ()-]+)*", re.ASCII)
#: The separator of an address inside another one, as fsspec writes it.
_CHAIN = re.compile(r"::(?=[\w+.-]+:/)")


def is_remote(address: str) -> bool:
    """Return whether this is an address (https://, s3://, ...) rather than a path."""
    return "://" in address and not address.startswith("file://")


def file_path(address: str) -> Path:
    """Return the path that an address names, with or without file://."""
    return Path(address.removeprefix("file://"))


def scheme_of(address: str) -> str:
    """Return what stands before `://`, in lower case."""
    return address.partition("://")[0].lower()


def is_chained(address: str) -> bool:
    """Return whether there is an address inside the address (`zip://a.csv::https://...`)."""
    return _CHAIN.search(address) is not None


def shown_address(address: str) -> str:
    """Return the address without what may be secret in it: user, password, query, fragment."""
    if not is_remote(address):
        return address
    try:
        parts = urlsplit(_CHAIN.split(address)[0])
    except ValueError:
        return f"{scheme_of(address)}://…"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def source_name(address: str) -> str:
    """Return the name of the file at a path or an address."""
    path = unquote(urlsplit(address).path) if is_remote(address) else address
    return posixpath.basename(path.rstrip("/")) or "source"


def checked_place(place: str) -> str:
    """Return where results go: a path as it is, or a store's address. Raises ValueError, which never shows it."""
    # `s3:/...` is an address too: it went through Path, which drops a slash.
    if "://" not in place and not re.match(r"\w{2,}:/", place):
        return place
    scheme, slashes, rest = place.partition("://")
    if not slashes or scheme not in STORES:
        raise ValueError("must be a path, or an address that begins with s3://, gs://, az:// or abfs://")
    rest = rest.rstrip("/")
    if not _BUCKET_AND_PATH.fullmatch(rest) or {".", ".."} & set(rest.split("/")):
        raise ValueError("must be a bucket and a path alone, without user, password, query, dots or signs")
    return f"{scheme}://{rest}"


def is_below(address: str, prefix: str) -> bool:
    """Return whether a store's address equals a prefix or is below it."""
    return f"{address}/".startswith(f"{prefix.rstrip('/')}/")


def checked_url(url: str) -> str:
    """Return the address without a slash at its end. Raises ValueError, which never shows the address."""
    if any(character.isspace() or not character.isprintable() for character in url):
        raise ValueError("contains a space, a line break or another character that no address has")
    parts = _parts(url)
    if parts is None or not is_web_address(url):
        raise ValueError("must be an http:// or https:// address")
    if parts.username or parts.password:
        raise ValueError("must not contain a user name or password; the key goes into PATTERNMILL_API_KEY")
    if parts.query or parts.fragment:
        raise ValueError("must end with its path, without ? or #")
    return url.rstrip("/")


def service_identity(url: str) -> str:
    """Return what all addresses of one service share: host, path, and the port where it is not the default.

    All names of this machine count as one. Case and a final dot of the host, http or https, and a final slash of the
    path do not matter; the path's case and percent-encoding do.
    """
    parts = urlsplit(url)
    port = parts.port
    shown = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    return f"{_host(parts.hostname or '')}{shown}{parts.path.rstrip('/')}"


def is_unencrypted(url: str) -> bool:
    """Return whether a key sent to this address can be read on the network."""
    return urlsplit(url).scheme == "http" and not is_loopback(url)


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine: `localhost` or a loopback IP, as other names need a name server."""
    return _host(urlsplit(url).hostname or "") == _LOOPBACK


def is_web_address(url: str) -> bool:
    """Return whether a browser can open it."""
    parts = _parts(url)
    return parts is not None and parts.scheme in _DEFAULT_PORTS and bool(parts.hostname)


def _parts(url: str) -> SplitResult | None:
    """Return an address's parts, or None if it cannot be parsed: Python's error message would show the address."""
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else None
    except ValueError:
        return None


def _host(name: str) -> str:
    name = name.lower().rstrip(".")
    if name == _LOOPBACK:
        return _LOOPBACK
    try:
        address = ip_address(name)
    except ValueError:
        with suppress(UnicodeError):
            return name.encode("idna").decode("ascii")
        return name
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    address = mapped or address
    return _LOOPBACK if address.is_loopback else address.compressed
