"""Shared parts of every HTTP exchange: proxies, certificates, the IP addresses of hosts, and unpacked bodies."""

from __future__ import annotations

import os
import socket
import ssl
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from gzip import GzipFile
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.request import getproxies, proxy_bypass

import httpx

from patternmill.addresses import is_loopback
from patternmill.errors import ConfigurationError

IpAddress = IPv4Address | IPv6Address

#: The unicast addresses of IPv6, and the ranges in them that lead to IPv4 (Teredo and 6to4). NAT64 is outside them.
_UNICAST = ip_network("2000::/3")
_TUNNELS = (ip_network("2001::/32"), ip_network("2002::/16"))
#: Values of Content-Encoding that are unpacked here.
GZIP = frozenset({"gzip", "x-gzip"})


def proxy_for(address: str) -> httpx.Proxy | None:
    """Return the proxy that the environment names for an address; loopback is always reached directly.

    Raises ConfigurationError, which does not show the proxy's address: it may have a password.
    """
    url = httpx.URL(address)
    if is_loopback(address) or proxy_bypass(url.netloc.decode("ascii")):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    try:
        return httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}") if proxy else None
    except (ValueError, httpx.InvalidURL):
        raise ConfigurationError(
            "The proxy of the environment cannot be used: it is no address of a proxy.",
            remedy="Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY.",
        ) from None


def tls_context() -> ssl.SSLContext:
    """Return a context that trusts the authorities that the environment names, or else the usual ones.

    Raises ConfigurationError where they cannot be read.
    """
    file = os.environ.get("SSL_CERT_FILE")
    try:
        return _tls_context(file, os.environ.get("SSL_CERT_DIR"))
    except OSError as error:
        raise ConfigurationError(
            f"SSL_CERT_FILE ({file}) cannot be used: {error.strerror}.",
            remedy="Correct it, or unset it: the usual authorities are trusted then.",
        ) from None


@cache
def _tls_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Read the authorities once, as that takes some 20 ms."""
    return httpx.create_ssl_context()


def unpacked(content: bytes, encoding: str, most: int) -> bytes:
    """Unpack gzip, up to one byte more than `most`, as 1 kB can hold 1 MB; any other encoding is returned as it came.

    Raises httpx.DecodingError for an archive that is damaged or cut short.
    """
    if encoding.strip().lower() not in GZIP:
        return content
    try:
        return GzipFile(fileobj=BytesIO(content)).read(most + 1)
    except (OSError, EOFError, zlib.error):
        raise httpx.DecodingError("damaged, or cut short") from None


def resolve(host: str, port: int) -> list[IpAddress]:
    """Return the IP addresses that a host has now, the preferred one first. Raises OSError and UnicodeError."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(entry[4][0])) for entry in entries))


def is_routable(address: IpAddress) -> bool:
    """Return whether an address belongs to one host on the public internet, and leads to no other address."""
    if not address.is_global or address.is_multicast:
        return False
    return address.version == 4 or (address in _UNICAST and not any(address in tunnel for tunnel in _TUNNELS))


@dataclass(frozen=True)
class Network:
    """Name resolution, and the check for public addresses: passed in, so that a test can have its own network."""

    resolve: Callable[[str, int], Sequence[IpAddress]] = resolve
    is_routable: Callable[[IpAddress], bool] = is_routable
