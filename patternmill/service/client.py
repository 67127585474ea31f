"""One exchange with the service: a POST goes out, and the result, whatever happens, is an Answer."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache, cached_property
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
import orjson
from pydantic import SecretStr

from patternmill import __version__
from patternmill.addresses import is_loopback
from patternmill.errors import ConfigurationError
from patternmill.service.key_memory import answered_before, remember
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from patternmill.service.redaction import clean, mask_deeply, reason_in
from patternmill.settings import Settings

#: The largest answer that is read, in bytes, unpacked.
ANSWER_CAP = 4 * 1024 * 1024
CONNECT_TIMEOUT = timedelta(seconds=10)
#: Common servers close an idle connection after five seconds; below that, few requests meet a closed one.
KEEP_ALIVE = 4.0
JSON = "application/json"


class StudioClient:
    """Sends requests and never raises for what the service or the network does; cancellation passes through.

    Without cookies, redirects and netrc; certificates are always verified.
    """

    def __init__(
        self,
        base_url: str,
        api_key: SecretStr,
        *,
        user_agent: str,
        on_first_answer: Callable[[], None] | None = None,
        request_timeout: timedelta = timedelta(seconds=30),
        max_connections: int = 100,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._key = api_key.get_secret_value()
        self._authorization = {"Authorization": f"Bearer {self._key}"}
        self._user_agent = user_agent
        #: At the first answer that shows that the service knows the key.
        self._on_first_answer = on_first_answer
        self._timeout = request_timeout
        self._connections = asyncio.Semaphore(max_connections)
        self._proxy = proxy_for(self.base_url)
        self._tls = _tls(*(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")))

    @classmethod
    def from_settings(cls, settings: Settings, *, max_connections: int = 100) -> StudioClient:
        """Raises ConfigurationError without an address and its key, or where the key is not to go."""
        profile = settings.service
        if profile is None:
            raise ConfigurationError(
                "The address of the service or its key is missing.",
                remedy="Set PATTERNMILL_STUDIO_URL and PATTERNMILL_API_KEY.",
            )
        is_known = settings.embedded or answered_before(settings, profile)
        return cls(
            profile.url,
            profile.key,
            on_first_answer=None if is_known else remember(settings, profile),
            user_agent=f"patternmill/{__version__}",
            request_timeout=settings.request_timeout,
            max_connections=max_connections,
        )

    async def __aenter__(self) -> StudioClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._session.close()

    async def post(self, operation: str, body: bytes) -> Answer:
        """Send `body` to `operation` (such as `patterns/create`); the whole answer, or what went wrong.

        The deadline covers the exchange from connecting to the last byte, not the wait for a free connection.
        """
        answer = await self._exchange(operation, body, self._authorization)
        if self._on_first_answer is not None and _is_authenticated(answer):
            bind, self._on_first_answer = self._on_first_answer, None
            bind()
        return answer

    async def request(self, operation: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """As `post`; `headers` replace the one with the key."""
        return await self._exchange(operation, body, self._authorization if headers is None else headers)

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """Made within the event loop."""
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, keepalive_timeout=KEEP_ALIVE),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Content-Type": JSON,
                "Accept": JSON,
                "Accept-Encoding": "identity",
                "User-Agent": self._user_agent,
            },
            timeout=aiohttp.ClientTimeout(sock_connect=min(CONNECT_TIMEOUT, self._timeout).total_seconds()),
        )

    async def _exchange(self, operation: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        url = f"{self.base_url}/{operation}"
        try:
            async with (
                self._connections,
                asyncio.timeout(self._timeout.total_seconds()),
                self._session.post(
                    url, data=body, headers=headers, proxy=self._proxy, allow_redirects=False
                ) as response,
            ):
                content = await _content(response)
        except Exception as error:  # whatever it is, the request may have been executed
            return _fault(error)
        return self._read(response.status, response.headers, content)

    def _read(self, status: int, headers: Mapping[str, str], content: bytes) -> Answer:
        body, trouble = _parsed(content)
        if self._key.encode() in content or b"\\" in content:
            body = mask_deeply(body, self._key)
        detail = ""
        if status >= 300 or trouble is not Trouble.NONE:
            detail = clean(reason_in(body), secret=self._key)
        return Answer(
            ExchangeResult.ANSWERED,
            trouble,
            detail,
            status,
            body,
            headers.get("Retry-After"),
            headers.get("Date"),
        )


class AnswerTooLargeError(Exception):
    """The answer passes the cap."""


def _is_authenticated(answer: Answer) -> bool:
    """A good answer, and of the service's own shape: a page of another host's is none."""
    good = answer.status is not None and 200 <= answer.status < 300 and answer.trouble is Trouble.NONE
    return good and isinstance(answer.body, dict)


@cache
def _tls(file: str | None, folder: str | None) -> ssl.SSLContext:
    """With the authorities that the environment names, or certifi's: reading them takes some 20 ms."""
    return ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder)


async def _content(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > ANSWER_CAP:
            raise AnswerTooLargeError
        parts.append(part)
    return b"".join(parts)


def _parsed(content: bytes) -> tuple[Any, Trouble]:
    try:
        return orjson.loads(content), Trouble.NONE
    except (ValueError, RecursionError):
        is_page = content.lstrip()[:1] == b"<"
        return None, Trouble.HTML if is_page else Trouble.NOT_JSON


def _fault(error: Exception) -> Answer:
    """What an exception means. Its own text is not used: it can contain addresses."""
    return Answer(*next((meaning for classes, meaning in _MEANINGS if isinstance(error, classes)), _UNKNOWN))


_NOT_SENT, _LOST = ExchangeResult.NOT_SENT, ExchangeResult.LOST
#: The first class that fits decides.
_MEANINGS: tuple[tuple[tuple[type[BaseException], ...], tuple[ExchangeResult, Trouble, str]], ...] = (
    (
        (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch),
        (_NOT_SENT, Trouble.TLS, "the certificate of the service cannot be verified"),
    ),
    ((aiohttp.ClientConnectorSSLError,), (_NOT_SENT, Trouble.HANDSHAKE, "no TLS connection could be made")),
    ((aiohttp.ClientConnectorDNSError,), (_NOT_SENT, Trouble.NAME_NOT_FOUND, "the name was not found")),
    (
        (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError),
        (_NOT_SENT, Trouble.PROXY, "the proxy does not connect"),
    ),
    ((aiohttp.ConnectionTimeoutError,), (_NOT_SENT, Trouble.CONNECT_TIMEOUT, "no connection in time")),
    ((aiohttp.ClientConnectorError,), (_NOT_SENT, Trouble.CONNECT, "no connection")),
    ((aiohttp.InvalidURL,), (_NOT_SENT, Trouble.ADDRESS, "the address cannot be used")),
    ((TimeoutError,), (_LOST, Trouble.TIMEOUT, "no whole answer in time")),
    ((AnswerTooLargeError,), (_LOST, Trouble.TOO_LARGE, "the answer is larger than is read")),
    ((aiohttp.ClientPayloadError,), (_LOST, Trouble.CUT_SHORT, "the answer was cut short")),
    (
        (aiohttp.ClientConnectionError, OSError),
        (_LOST, Trouble.RESET, "the connection closed before the answer"),
    ),
)
_UNKNOWN = (_LOST, Trouble.BROKEN, "the answer cannot be read as HTTP")


def proxy_for(base_url: str) -> str | None:
    """The proxy that the environment names for `base_url`; loopback is always reached directly."""
    url, proxies = urlsplit(base_url), getproxies()
    if is_loopback(base_url) or proxy_bypass(url.netloc):
        return None
    address = proxies.get(url.scheme) or proxies.get("all")
    return address if not address or "://" in address else f"http://{address}"
