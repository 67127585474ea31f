"""Addresses: which can be opened, which can be the service's, and which two of them name the same service."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = "localhost"


def checked_url(url: str) -> str:
    """The address without a slash at its end. Raises ValueError, which never shows the address."""
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
    """What two addresses of one service have in common: host, port where it is not the default, and path.

    This machine's own names are one; case and a dot at the end of the host, http or https, and a slash at the end of
    the path do not matter. The path's own case and percent-encoding do.
    """
    parts = urlsplit(url)
    port = parts.port
    shown = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    return f"{_host(parts.hostname or '')}{shown}{parts.path.rstrip('/')}"


def is_unencrypted(url: str) -> bool:
    """Whether a key sent to this address can be read on the network."""
    return urlsplit(url).scheme == "http" and not is_loopback(url)


def is_loopback(url: str) -> bool:
    """Whether it is on this machine: `localhost` itself, or a loopback address; other names ask a name server."""
    return _host(urlsplit(url).hostname or "") == _LOOPBACK


def is_web_address(url: str) -> bool:
    """Whether a browser can open it."""
    parts = _parts(url)
    return parts is not None and parts.scheme in _DEFAULT_PORTS and bool(parts.hostname)


def _parts(url: str) -> SplitResult | None:
    """None where the address cannot be parsed; Python's message would show it."""
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
