"""Reads files at http(s) addresses: each redirect and each IP address is checked before it is asked."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from socket import gaierror
from urllib.parse import unquote

import httpx
from pydantic import SecretStr

from patternmill import __version__
from patternmill.errors import InputRefused
from patternmill.reading import FileCode, Reading, refusal
from patternmill.service.network import GZIP, IpAddress, Network, proxy_for, tls_context, unpacked
from patternmill.text import plain

MOST_REDIRECTS = 5
#: The most seconds to connect to one IP address, and the longest pause of the server.
_CONNECT_TIMEOUT, _PAUSE_TIMEOUT = 10.0, 30.0
_TIMEOUT = {"connect": _CONNECT_TIMEOUT, **dict.fromkeys(("read", "write", "pool"), _PAUSE_TIMEOUT)}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WHOLE = frozenset({200, 203})
_HEADERS = {"User-Agent": f"patternmill/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
_REMEDY = "Check the address, who may read it, and that its place answers."


@dataclass(frozen=True)
class Access:
    """The terms on which an address may be read."""

    #: The credential, sent to the origin of the address alone, as are the user and password that it contains.
    bearer: SecretStr | None = None
    redirects: int = MOST_REDIRECTS
    #: No host but `own_host` may have an IP address that is not of the public internet.
    public_only: bool = False
    own_host: str | None = None
    #: The seconds before an address that answered 5xx or dropped the connection is asked once more.
    pause: float = 1.0
    network: Network = field(default_factory=Network)


@dataclass(frozen=True)
class Page:
    """The last answer, after all redirects."""

    content: bytes = field(repr=False)
    host: str
    content_type: str

    @property
    def is_html(self) -> bool:
        """Return whether it is a page for a browser, whatever its address is called."""
        start = self.content[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return start.startswith((b"<!doctype html", b"<html")) or (
            start.startswith(b"<") and "html" in self.content_type.lower()
        )


class _ServerError(Exception):
    """An answer with a 5xx status, which may pass."""


_PASSING = (_ServerError, httpx.NetworkError, httpx.RemoteProtocolError, gaierror)


def read_page(address: str, reading: Reading, access: Access | None = None) -> Page:
    """Return what is at an http(s) address. Raises InputRefused, which shows no secret of the address.

    Raises ConfigurationError where the environment names a proxy or authorities that cannot be used.
    """
    reader = _Reader(reading, access or Access())
    try:
        try:
            return reader.read(address)
        except _PASSING:
            time.sleep(reader.access.pause)
            return reader.read(address)
    except _ServerError as error:
        raise reader.unreadable(f"cannot be read: it answers {error}") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
        raise reader.unreadable(f"cannot be read: {_reason(error)}") from None


@contextmanager
def _opened(
    url: httpx.URL, headers: Mapping[str, str], proxy: httpx.Proxy | None, addresses: Sequence[IpAddress]
) -> Iterator[httpx.Response]:
    """Yield the answer, its body unread, of the first IP address that can be connected to; without one, of the host."""
    # Not httpx.Client, which logs addresses, and has redirects, cookies and .netrc of its own.
    with closing(httpx.HTTPTransport(verify=tls_context(), proxy=proxy)) as transport:
        *others, last = [_request(url, headers, address) for address in addresses or (None,)]
        for request in others:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                response = transport.handle_request(request)
                break
        else:
            response = transport.handle_request(last)
        with closing(response):
            yield response


def _request(url: httpx.URL, headers: Mapping[str, str], address: IpAddress | None) -> httpx.Request:
    """Return the request, to one IP address where it is given; TLS verifies the name all the same."""
    return httpx.Request(
        "GET",
        url if address is None else url.copy_with(host=str(address)),
        headers={**_HEADERS, **headers, "Host": url.netloc.decode("ascii")},
        extensions={"timeout": _TIMEOUT, "sni_hostname": url.raw_host.decode("ascii").rstrip(".")},
    )


@dataclass(frozen=True)
class _Reader:
    """Follows one address to its file, within the limits of a reading."""

    reading: Reading
    access: Access

    def read(self, address: str) -> Page:
        """Ask the address and then whatever it redirects to, and return the last answer."""
        url = httpx.URL(address)
        headers, was_public = self._credentials(url), False
        for _ in range(self.access.redirects + 1):
            self.reading.check_time()
            url = url.copy_with(userinfo=b"", fragment=None)
            addresses, proxy, was_public = self._checked(url, was_public)
            with _opened(url, headers, proxy, addresses) as response:
                if response.status_code not in _REDIRECTS:
                    return self._page(response, url, is_signed=bool(headers))
                location = response.headers.get("location")
            if not self.access.redirects:
                what = "redirects to another address, which is not followed"
                raise self.unreadable(what, "Name the address where the file is.")
            before, url = url, self._redirected(url, location)
            if (url.scheme, url.raw_host, url.port) != (before.scheme, before.raw_host, before.port):
                headers = {}
        raise self.unreadable(f"redirects more than {self.access.redirects} times")

    def _credentials(self, url: httpx.URL) -> Mapping[str, str]:
        """Return the header with the user and password of an address, or else with the bearer."""
        if url.userinfo:
            user, _, password = url.userinfo.decode("ascii").partition(":")
            pair = f"{unquote(user)}:{unquote(password)}".encode()
            return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}
        bearer = self.access.bearer
        return {"Authorization": f"Bearer {bearer.get_secret_value()}"} if bearer is not None else {}

    def _redirected(self, url: httpx.URL, location: str | None) -> httpx.URL:
        """Return where a redirect leads. Raises InputRefused for what is not followed."""
        if location is None:
            raise self.unreadable("redirects without saying where")
        target = url.join(location)
        if target.scheme not in ("http", "https"):
            raise self.unreadable(f"redirects to {plain(target.scheme)}:, which is no http(s) address")
        if url.scheme == "https" and target.scheme == "http":
            raise self.unreadable("redirects from https to http, which anyone on the way can read")
        return target

    def _checked(
        self, url: httpx.URL, was_public: bool
    ) -> tuple[Sequence[IpAddress], httpx.Proxy | None, bool]:
        """Resolve the host; return the IP addresses to connect to, the proxy, and whether one on the way was public.

        Behind a proxy, which may be the only one to know the host, there are no addresses. After a host on the public
        internet the next one has to be on it as well. Raises InputRefused where the host may not be asked, and OSError
        where it has no address.
        """
        host = url.raw_host.decode("ascii")
        if not host or "%" in host:
            raise self.unreadable("names no host")
        has_to_be_public = self.access.public_only and url.host != self.access.own_host
        proxy = proxy_for(str(url))
        addresses = self._resolved(url, host, may_be_unknown=proxy is not None and not has_to_be_public)
        are_public = [self.access.network.is_routable(address) for address in addresses]
        if has_to_be_public and not all(are_public):
            what = f"{plain(host)} is not a host of the public internet."
            remedy = "Put the file next to the catalog, or import the catalog with the command line."
            raise refusal(FileCode.FILE_UNREADABLE, what, remedy)
        if was_public and not all(are_public):
            what = f"redirects to {plain(host)}, which is not a host of the public internet"
            raise self.unreadable(what)
        is_public = was_public or not addresses or any(are_public)
        return () if proxy else addresses, proxy, is_public

    def _resolved(self, url: httpx.URL, host: str, *, may_be_unknown: bool) -> Sequence[IpAddress]:
        """Return the IP addresses of a host; none where a proxy may be the only one to know it. Raises OSError."""
        try:
            port = url.port or (443 if url.scheme == "https" else 80)
            if addresses := self.access.network.resolve(host, port):
                return addresses
            raise gaierror
        except OSError:
            if not may_be_unknown:
                raise
            return ()

    def _page(self, response: httpx.Response, url: httpx.URL, *, is_signed: bool) -> Page:
        """Read the body within the limits of the reading. Raises InputRefused unless the answer is a whole file."""
        status, headers = response.status_code, response.headers
        if status >= 500:
            raise _ServerError(status)
        if status not in _WHOLE:
            raise self._status_refusal(status, is_signed=is_signed)
        length, packing = headers.get("content-length", ""), headers.get("content-encoding", "")
        if length.isdecimal():
            self.reading.check_size(int(length))
        if packing.strip().lower() not in GZIP | {"", "identity"}:
            raise self.unreadable(f"is packed in a way that is not read here ({plain(packing, 40)})")
        parts, size = [], 0
        for part in response.iter_raw():
            size += len(part)
            self.reading.check_size(size)
            self.reading.check_time()
            parts.append(part)
        content = unpacked(b"".join(parts), packing, self.reading.size)
        self.reading.check_size(len(content))
        return Page(content, url.host, headers.get("content-type", ""))

    def _status_refusal(self, status: int, *, is_signed: bool) -> InputRefused:
        """Return why an answer is no file; `is_signed`: a user, password or bearer was sent."""
        if status in (404, 410):
            what = f"Nothing was found at {self.reading.name}."
            return refusal(FileCode.FILE_MISSING, what, "Check the address.")
        if status not in (401, 403):
            return self.unreadable(f"cannot be read: it answers {status}")
        if is_signed:
            what = f"answers {status}: the user, password or bearer that was sent does not open it"
            return self.unreadable(what, "Correct them, or ask its owner who may read it.")
        return self.unreadable(
            f"answers {status}: it is not open to everybody",
            "Let everybody read it who has the address; or name it in PATTERNMILL_SOURCES, with a user and "
            "password in its address or with a `bearer`.",
        )

    def unreadable(self, what: str, remedy: str = _REMEDY) -> InputRefused:
        return refusal(FileCode.FILE_UNREADABLE, f"{self.reading.name} {what}.", remedy)


def _reason(error: Exception) -> str:
    """Say what went wrong, without the text of the error: it may quote an address with its password."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "its certificate cannot be verified, or no TLS connection could be made"
        if isinstance(cause, gaierror):
            return "the name of its host was not found"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return next((text for kinds, text in _REASONS if isinstance(error, kinds)), type(error).__name__)


_REASONS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((httpx.ConnectTimeout,), "no connection in time"),
    ((httpx.TimeoutException,), "no answer in time"),
    ((httpx.ProxyError, ImportError), "the proxy of the environment cannot be used"),
    ((httpx.NetworkError,), "the connection was dropped"),
    ((httpx.RemoteProtocolError,), "it was cut short, or is no HTTP"),
    ((httpx.DecodingError,), "it is packed unreadably, or was cut short"),
    ((httpx.InvalidURL, ValueError), "it is no address"),
)
