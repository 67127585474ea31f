"""Sources on the web: read whole, up to the limits; redirects are followed to the same host only."""

from __future__ import annotations

import base64
import http.client
import io
import urllib.request
from email.message import Message
from typing import IO
from urllib.error import HTTPError
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading

#: The longest pause of the server, in seconds.
_TIMEOUT = 30
_CHUNK = 1 << 16
_PORTS = {"http": 80, "https": 443}


def read_page(address: str, reading: Reading) -> tuple[bytes, str]:
    """The content, and the ETag of this version of it. Raises InputRefused, OSError, HTTPException."""
    try:
        with _opener().open(_request(address), timeout=_TIMEOUT) as answer:
            return _body(answer, reading), str(answer.headers.get("ETag"))
    except HTTPError as error:
        error.close()
        raise


def may_follow(source: str, target: str) -> bool:
    """Whether a redirect is followed: on the same host, to the same port or from http to https."""
    before, after = urlsplit(source), urlsplit(target)
    if after.username or after.password or before.hostname != after.hostname:
        return False
    if before.scheme == after.scheme:
        return _port(before) == _port(after)
    return (before.scheme, after.scheme) == ("http", "https")


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if not may_follow(req.full_url, newurl):
            fp.close()
            target = urlsplit(newurl)
            raise refusal(
                FileCode.FILE_UNREADABLE,
                f"{req.host} redirects to {target.scheme}://{target.hostname}, which is not followed.",
                "Name the address where the file is.",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _opener() -> urllib.request.OpenerDirector:
    """Reads http and https and nothing else, without the proxies of the environment."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _request(address: str) -> urllib.request.Request:
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    request = urllib.request.Request(  # noqa: S310  # the opener knows http and https alone
        urlunsplit((parts.scheme.lower(), host, path, query, "")), headers={"User-Agent": "patternmill"}
    )
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        request.add_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    return request


def _body(answer: http.client.HTTPResponse, reading: Reading) -> bytes:
    content = io.BytesIO()
    while chunk := answer.read1(_CHUNK):
        content.write(chunk)
        reading.check_size(content.tell())
        reading.check_time()
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    return content.getvalue()


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)


def status_of(error: Exception) -> int | None:
    return error.code if isinstance(error, HTTPError) else None
