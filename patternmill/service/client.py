"""One exchange with the service: a POST goes out, and the result, whatever happens, is an Answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import timedelta
from functools import cache, partial
from typing import Any

import aiohttp
import httpx
import orjson
from httpx_aiohttp import AiohttpTransport
from pydantic import SecretStr

from patternmill import __version__
from patternmill.service.network import proxy_for, tls_context, unpacked
from patternmill.service.outcomes import Answer, Trouble
from patternmill.service.redaction import clean, reason_in, scrubbed, without_key
from patternmill.service.refusals import says_no
from patternmill.text import each_text

#: The largest answer that is read, in bytes, unpacked.
ANSWER_CAP = 4 * 1024 * 1024
CONNECT_TIMEOUT = timedelta(seconds=10)
#: Common servers close an idle connection after five seconds; below that, few requests meet a closed one.
KEEP_ALIVE = 4.0
JSON = "application/json"
#: The longest header line, and the most headers, of an answer: some servers send policies of tens of kilobytes.
LONGEST_HEADER, MOST_HEADERS = 256 * 1024, 4096
#: The number of characters of an unreadable answer that are looked at, and that are quoted.
_LARGEST_QUOTED, _QUOTED = 20_000, 200
_MARKUP = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->|<[^>]*>")
_UNREADABLE = "\ufffd"
#: A last look before a request is sent, which raises unless it may be sent at this moment.
Look = Callable[[], Awaitable[None]]


class StudioClient:
    """Sends requests and never raises for what the service or the network does; cancellation passes through.

    Talks to the httpx transport itself: `httpx.AsyncClient` adds 0.15 ms of CPU per request, and redirects,
    cookies and logging of addresses, none of which is wanted here.
    """

    def __init__(
        self,
        base_url: str,
        api_key: SecretStr,
        request_timeout: timedelta = timedelta(seconds=30),
        max_connections: int = 100,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._key = api_key.get_secret_value()
        self._authorization = httpx.Headers({"Authorization": f"Bearer {self._key}"})
        self._deadline = request_timeout.total_seconds()
        self._extensions = {"timeout": {"connect": min(CONNECT_TIMEOUT, request_timeout).total_seconds()}}
        self._connections = asyncio.Semaphore(max_connections)
        self._url = cache(lambda operation: httpx.URL(f"{self.base_url}/{operation}"))
        self._transport = _transport(self.base_url)

    async def close(self) -> None:
        await self._transport.aclose()

    async def post(self, operation: str, body: bytes, look: Look | None = None) -> Answer:
        """Send `body` to `operation` (such as `patterns/create`), and return the whole answer, or what went wrong.

        The deadline covers the exchange from connecting to the last byte, not the wait for a free connection.
        `look`: awaited as the body is written; whatever it raises is raised here, and nothing was sent.
        """
        stream = _Body(body, look)
        request = httpx.Request(
            "POST",
            self._url(operation),
            headers=self._authorization,
            stream=stream,
            extensions=self._extensions,
        )
        request.headers["Content-Length"] = str(len(body))
        try:
            async with self._connections, asyncio.timeout(self._deadline):
                response = await self._transport.handle_async_request(request)
                async with aclosing(response):
                    content = await _content(response)
        except Exception as error:  # whatever it is, the request may have been executed
            if stream.refusal is not None:
                raise stream.refusal from None
            return _fault(error)
        return self._read(operation, response, content)

    def _read(self, operation: str, response: httpx.Response, content: bytes) -> Answer:
        status, headers = response.status_code, response.headers
        text, body, trouble = _parsed(content, headers.get("content-type", ""))
        if self._key.encode() in content or b"\\" in content:
            body = each_text(body, partial(without_key, secret=self._key))
        detail = ""
        if trouble is not Trouble.NONE:
            # The address at which anyone can pay a checkout is a secret.
            detail = "" if operation.startswith("checkouts/") else self._quoted(text)
        elif status >= 300 or says_no(body):
            detail = clean(reason_in(body), secret=self._key)
        return Answer(trouble, detail, status, body, headers.get("retry-after"), headers.get("date"))

    def _quoted(self, text: str) -> str:
        """Quote the beginning of an unreadable answer, without markup."""
        beginning = without_key(text, self._key)[:_LARGEST_QUOTED]
        words = clean(_MARKUP.sub(" ", beginning), limit=_QUOTED)
        return f"no JSON, but {scrubbed(words)!r}" if words else ""


class _Body(httpx.AsyncByteStream):
    """A body that is written right after a last look; until then, nothing leaves this machine."""

    def __init__(self, body: bytes, look: Look | None) -> None:
        self._body, self._look = body, look
        #: The error that the look raised, which the transport reports as a lost connection.
        self.refusal: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if self._look is not None:
                await self._look()
        except Exception as refusal:
            self.refusal = refusal
            raise
        yield self._body


class AnswerTooLargeError(Exception):
    """The error of an answer that is larger than the cap."""


def _transport(base_url: str) -> httpx.AsyncBaseTransport:
    """Return the aiohttp transport with a session of our own: no cookies, no netrc, certificates always verified.

    The session has all constant headers, which httpx would encode, decode and copy for each request.
    """
    context = tls_context()
    headers = {
        "Content-Type": JSON,
        "Accept": JSON,
        "Accept-Encoding": "identity",
        "User-Agent": f"patternmill/{__version__}",
    }

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=KEEP_ALIVE)
        cookies = aiohttp.DummyCookieJar()
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=cookies,
            headers=headers,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
            max_headers=MOST_HEADERS,
        )

    return AiohttpTransport(verify=context, client=session, proxy=proxy_for(base_url))


async def _content(response: httpx.Response) -> bytes:
    """Return the bytes of the answer, unpacked if need be, although it was requested plain."""
    parts, size = [], 0
    async for part in response.aiter_raw():
        size += len(part)
        if size > ANSWER_CAP:
            raise AnswerTooLargeError
        parts.append(part)
    content = unpacked(b"".join(parts), response.headers.get("content-encoding", ""), ANSWER_CAP)
    if len(content) > ANSWER_CAP:
        raise AnswerTooLargeError
    return content


def _parsed(content: bytes, content_type: str) -> tuple[str, Any, Trouble]:
    """Return the text of an answer if it is no JSON, its JSON otherwise, and the trouble with it.

    More is read than the standard allows, where nothing is lost by it: other encodings, NaN, line breaks in texts.
    """
    try:
        return "", orjson.loads(content), Trouble.NONE
    except (ValueError, RecursionError):
        text = _text(content, content_type)
    try:
        if _UNREADABLE not in text:
            # Half a surrogate pair can be neither sent nor stored.
            whole = each_text(
                json.loads(text, strict=False), lambda part: part.encode("utf-8", "replace").decode()
            )
            return "", whole, Trouble.NONE
    except (ValueError, RecursionError):
        pass
    return text, None, Trouble.HTML if text.lstrip()[:1] == "<" else Trouble.NOT_JSON


def _text(content: bytes, content_type: str) -> str:
    """Decode content by its first bytes, or else by its header; replace what cannot be decoded."""
    charset = re.search(r"charset=[\"']?([\w.-]+)", content_type, re.IGNORECASE)
    for encoding in (json.detect_encoding(content), charset[1] if charset else "utf-8"):
        with suppress(UnicodeError, LookupError):
            return content.decode(encoding)
    return content.decode("utf-8", "replace")


def _fault(error: Exception) -> Answer:
    """Return the exchange that an exception ended. Its own text is not used: it can contain addresses.

    Only the aiohttp error behind the httpx one is believed: the transport calls a connection that closed
    after the request went out a ConnectTimeout, and taking that for "not sent" would buy twice.
    """
    cause = error.__cause__
    believed = isinstance(error, httpx.HTTPError) and isinstance(cause, aiohttp.ClientError)
    root = cause if believed else error
    return next((answer for classes, answer in _FAULTS if isinstance(root, classes)), _UNKNOWN)


_NO_PROXY = Answer(Trouble.PROXY, "the proxy does not connect")
_RESET = Answer(Trouble.RESET, "the connection closed before the answer")
_UNKNOWN = Answer(Trouble.BROKEN, "the answer cannot be read as HTTP")
#: The answers to classes of errors; the first class that fits decides.
_FAULTS: tuple[tuple[type[BaseException], Answer], ...] = (
    (
        aiohttp.ClientConnectorCertificateError,
        Answer(Trouble.TLS, "the certificate of the service cannot be verified"),
    ),
    (aiohttp.ClientConnectorSSLError, Answer(Trouble.HANDSHAKE, "no TLS connection could be made")),
    (aiohttp.ClientConnectorDNSError, Answer(Trouble.NAME_NOT_FOUND, "the name was not found")),
    (aiohttp.ClientProxyConnectionError, _NO_PROXY),
    (aiohttp.ClientHttpProxyError, _NO_PROXY),
    (aiohttp.ConnectionTimeoutError, Answer(Trouble.CONNECT_TIMEOUT, "no connection in time")),
    (aiohttp.ClientConnectorError, Answer(Trouble.CONNECT, "no connection")),
    (aiohttp.InvalidURL, Answer(Trouble.ADDRESS, "the address cannot be used")),
    (TimeoutError, Answer(Trouble.TIMEOUT, "no whole answer in time")),
    (AnswerTooLargeError, Answer(Trouble.TOO_LARGE, "the answer is larger than is read")),
    (httpx.DecodingError, Answer(Trouble.BROKEN, "the answer is packed unreadably")),
    (aiohttp.ClientPayloadError, Answer(Trouble.CUT_SHORT, "the answer was cut short")),
    (aiohttp.ClientConnectionError, _RESET),
    (OSError, _RESET),
)
