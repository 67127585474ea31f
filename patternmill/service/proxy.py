"""The proxy that the machine's environment sets for an address."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.request import getproxies, proxy_bypass

import httpx


def proxy_for(base_url: str) -> httpx.Proxy | None:
    """The proxy that the environment names for `base_url`; loopback is always reached directly."""
    url = httpx.URL(base_url)
    if _is_loopback(url.host) or proxy_bypass(url.netloc.decode("ascii")):
        return None
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    return httpx.Proxy(address if "://" in address else f"http://{address}") if address else None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
