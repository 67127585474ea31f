"""The only sender of requests to the service, and the only layer that sends one again."""

import asyncio
import json
import math
import re
import ssl
import time
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from email.utils import mktime_tz, parsedate_tz
from functools import cache, partial
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from patternmill.errors import Refusal
from patternmill.items import Stage
from patternmill.service import answers
from patternmill.service.answers import Again, Answer, Decision, Situation
from patternmill.service.evidence import Asked, IsOther, repeats
from patternmill.service.pacing import Pace, Polling
from patternmill.settings import LEAST_SECRET, Settings
from patternmill.states import Attempt

_POLL = "jobs/get"
#: The most of an answer that is read, unpacked, and the longest line of its head, in bytes.
_MOST_BYTES, _LONGEST_LINE = 4 << 20, 256 << 10
#: In seconds: how long a connection may take to stand, and be kept; common servers close idle ones after five.
_CONNECT, _KEEP_ALIVE, _MOST_CONNECTIONS = 10.0, 4.0, 100
#: The least time in seconds for which a job of an earlier run is followed.
_GRACE = 120.0
#: Errors with which no byte of the request has left.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, httpx.ConnectError)
#: Errors of an address, the words for each, and whether they are one even after a good answer.
_UNUSABLE = (
    ((aiohttp.InvalidURL, httpx.InvalidURL, httpx.UnsupportedProtocol), "it is no address", True),
    (aiohttp.ClientConnectorCertificateError, "its certificate cannot be verified", True),
    (aiohttp.ClientConnectorSSLError, "it does not speak TLS", False),
    (aiohttp.ClientConnectorDNSError, "its name is not found", False),
)


class Client(AbstractAsyncContextManager["Client"]):
    """A connection to the service of one environment.

    It waits by the event loop's clock. `now` returns seconds since 1970, with which dates are compared.
    """

    def __init__(
        self,
        settings: Settings,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Open nothing yet. Raises Refusal for an address or a key that cannot be used."""
        self._secret, self._now = _usable_key(settings.api_key.get_secret_value()), now
        self._url = _usable_address(settings.studio_url)
        self._transport = transport or _transport(self._url, self._secret)
        self._deadline = settings.request_timeout.total_seconds()
        self._patience = settings.create_timeout.total_seconds(), settings.job_timeout.total_seconds()
        self._connections = asyncio.Semaphore(_MOST_CONNECTIONS)
        #: A request was answered well; since when nothing but pages of something else and rate limits came back.
        self._works, self._quiet_since = False, math.inf
        #: By operation, the fields of requests that its answers have repeated exactly.
        self._repeated = defaultdict[str, set[str]](set)
        self.pace = Pace()
        self.polling: MutableMapping[Stage, Polling] = defaultdict(partial(Polling, ()))
        #: Awaited before a create, and called as its body is written: they raise Refusal where it must not leave.
        self.ready: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)
        self.confirm: Callable[[], None] = lambda: None
        #: Whether nothing may be sent again for now.
        self.halted: Callable[[], bool] = lambda: False

    async def __aexit__(self, *_: object) -> None:
        await self._transport.aclose()

    async def create(self, attempt: Attempt, *, in_doubt: bool, is_other: IsOther) -> Decision:
        """Send the request of an attempt until the service's answer is clear. `in_doubt`: it may have been sent.

        Raises what `ready` and `confirm` raise: this time nothing was sent.
        """
        stage, loop = Stage(attempt.stage), asyncio.get_running_loop()
        operation, bucket, began = attempt.operation, self.pace.creates[stage], loop.time()
        now = Situation(self._asked(operation, attempt, is_other), self._patience[0], in_doubt=in_doubt)
        while True:
            await self.ready()
            sent_at = loop.time()
            answer, now = await self._judged(operation, attempt.body, now, began, is_create=True)
            decision = answers.decide_create(answer, now)
            if not isinstance(decision, Again):
                if isinstance(decision, answers.Accepted):
                    bucket.taken()
                    self._repeated[operation] |= repeats(answer.data, now.asked.sent)
                return self._masked(decision)
            if answer.status == 429:
                bucket.refused(sent_at)
            if decision.told:
                bucket.hold(decision.after)
            now = now.after(decision)
            if not self.halted():
                await asyncio.sleep(decision.after)
                await bucket.turn(0)
            if self.halted():
                said = f"The run ended before a clear answer; the last: {answer.reason}."
                return self._masked(answers.Unclear(said))

    async def follow(self, attempt: Attempt, is_other: IsOther) -> Decision:
        """Ask about the job of an attempt until it has ended, or its time is over.

        A job of an earlier run has some time, however old it is.
        """
        polling, loop, wall = self.polling[Stage(attempt.stage)], asyncio.get_running_loop(), self._now()
        age, scout, pause = max(wall - (attempt.accepted_at or wall), 0.0), polling.begin(), 0.0
        began, patience = loop.time() - age, max(self._patience[1], age + min(self._patience[1], _GRACE))
        now = Situation(self._asked(_POLL, attempt, is_other, job_is_new=False), patience)
        # One that is not watched from its beginning is asked about at once.
        wait = 0.0 if age > max(polling.first, 2.0) else polling.pause(age, scout=scout)
        polls = self.pace.polls
        while True:
            due = age + max(pause, min(wait, patience - age))
            await asyncio.sleep(due - age)
            await polls.turn()
            sent_at = loop.time()
            answer, now = await self._judged(_POLL, json.dumps({"jobId": attempt.job_id}), now, began)
            decision = answers.decide_poll(answer, now)
            if not isinstance(decision, Again):
                if isinstance(decision, answers.Ended) and decision.result_id:
                    self._repeated[_POLL] |= repeats(answer.data, now.asked.sent)
                    # Without what the poll was late by: of a job that had ended before, that would put off the next.
                    polling.learn(min(now.elapsed, due))
                return self._masked(decision)
            if answer.status == 429:
                polls.refused(sent_at)
                polls.hold(decision.after)
            else:
                polls.taken()
            pause, age = decision.after, loop.time() - began
            wait = polling.pause(age, scout=scout)
            now = now.after(decision) if pause else replace(now, tries=1)

    async def ask_about(self, attempt: Attempt, is_other: IsOther) -> Decision:
        """Ask about the job of an attempt once."""
        since = attempt.accepted_at or attempt.intended_at or self._now()
        began = asyncio.get_running_loop().time() - self._now() + since
        now = Situation(self._asked(_POLL, attempt, is_other), math.inf, tries=3)
        answer, now = await self._judged(_POLL, json.dumps({"jobId": attempt.job_id}), now, began)
        return self._masked(answers.decide_poll(answer, now))

    async def read(self, operation: str, question: dict[str, Any]) -> Any:
        """Return the JSON of an answer that costs nothing, or None where there is none.

        Raises Refusal where no request can go through, or something else answers in the service's place.
        """
        for pause in (0.3, 1.0, 2.0, 0.0):
            answer = await self.post(operation, json.dumps(question))
            if answer.status == 200 and answer.data is not None:
                return answer.data
            works, quiet = self._works or answer.data is not None, 0.0 if self._works or pause else math.inf
            now = Situation(Asked(Stage.PATTERN, {}), 0.0, quiet=quiet, works=works)
            if (stop := answers.stopped(answer, now)) is not None:
                raise Refusal(stop.code, self._without_key(stop.message))
            if pause and answer.status not in (400, 404, 405, 410, 422, 501):
                await asyncio.sleep(max(pause, min(answer.retry_after or 0.0, 30.0)))
        return None

    async def _judged(
        self, operation: str, body: str, now: Situation, began: float, *, is_create: bool = False
    ) -> tuple[Answer, Situation]:
        """Send one request, and return its answer with the situation in which it is judged."""
        answer = await self.post(operation, body, is_create=is_create)
        at = asyncio.get_running_loop().time()
        return answer, now.met(answer, at - began, max(at - self._quiet_since, 0.0), self._works)

    async def post(self, operation: str, body: str, *, is_create: bool = False) -> Answer:
        """Send one request, and return what came back within the deadline. Never raises but for `confirm`.

        The transport sends it: an httpx client around it follows redirects and costs half of a request's CPU.
        """
        content, refusals = body.encode(), list[Refusal]()

        async def confirmed() -> AsyncIterator[bytes]:
            try:
                self.confirm()
            except Refusal as refusal:  # the transport reports it as a lost connection
                refusals.append(refusal)
                raise
            yield content

        request = httpx.Request(
            "POST",
            _address(self._url, operation),
            headers={"content-length": str(len(content))},
            content=confirmed() if is_create else content,
            extensions={"timeout": {"connect": min(self._deadline, _CONNECT)}},
        )
        try:
            async with self._connections, asyncio.timeout(self._deadline):
                response = await self._transport.handle_async_request(request)
                async with aclosing(response):
                    return self._answer(response, await _text_of(response))
        except Exception as error:  # whatever it is, the request may have been executed
            if refusals:
                raise refusals[0] from None
            return self._trouble(error)

    def _answer(self, response: httpx.Response, text: str) -> Answer:
        """Return an answer, and note what it says of the service."""
        status, headers = response.status_code, response.headers
        if 300 <= status < 400:
            text = "it leads to " + re.sub(r"[?#].*|(?<=//)[^/@]*@", "", headers.get("location", "nowhere"))
        pause = _retry_after(headers, self._now()) if "retry-after" in headers else None
        answer = Answer(status, self._without_key(text), pause)
        if answer.is_page or status == 429:
            self._quiet_since = min(self._quiet_since, asyncio.get_running_loop().time())
        elif status < 500:
            self._works, self._quiet_since = self._works or status < 300, math.inf
        return answer

    def _asked(
        self, operation: str, attempt: Attempt, is_other: IsOther, *, job_is_new: bool = True
    ) -> Asked:
        repeated, sent = self._repeated.setdefault(operation, set()), json.loads(attempt.body)
        return Asked(Stage(attempt.stage), sent, is_other, attempt.job_id, job_is_new, repeated)

    def _masked(self, decision: Decision) -> Decision:
        """Return a decision without the key, which a service may repeat in other writings than the answer's own."""
        if isinstance(decision, Again | answers.Accepted) or self._secret not in decision.message:
            return decision
        return replace(decision, message=self._without_key(decision.message))

    def _without_key(self, text: str) -> str:
        return text.replace(self._secret, "***") if len(self._secret) >= LEAST_SECRET else text

    def _trouble(self, error: Exception) -> Answer:
        """Return what an exception means. Its own text is not used: it can contain addresses.

        Only the aiohttp error behind the httpx one is believed: the transport calls a connection that closed after the
        request went out a ConnectTimeout, and taking that for "not sent" would buy twice.
        """
        root = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
        for kinds, words, is_final in _UNUSABLE:
            if isinstance(root, kinds) and (is_final or not self._works):
                return Answer(trouble="unusable", text=words)
        if isinstance(root, _NOT_SENT):
            return Answer(trouble="unreachable", text="no connection")
        in_time = " in time" if isinstance(root, TimeoutError) else ""
        return Answer(trouble="lost", text=f"no whole answer was received{in_time}")


@cache
def _address(base: httpx.URL, operation: str) -> httpx.URL:
    return base.copy_with(path=f"{base.path.rstrip('/')}/{operation}")


async def _text_of(response: httpx.Response) -> str:
    """Return the body as text, unpacked if need be, although it was requested plain.

    Letters that cannot be decoded are replaced.
    """
    packed = response.headers.get("content-encoding", "").strip().lower() in ("gzip", "x-gzip", "deflate")
    unpacker, read = zlib.decompressobj(47) if packed else None, bytearray()
    assert isinstance(response.stream, httpx.AsyncByteStream)
    async for part in response.stream:
        read += unpacker.decompress(part, _MOST_BYTES + 1) if unpacker else part
        if len(read) > _MOST_BYTES:
            raise httpx.ReadError("too large")
    try:
        return read.decode(json.detect_encoding(read) if read[1:2] == b"\0" or read[:1] > b"{" else "utf-8")
    except UnicodeDecodeError:
        return read.decode(response.charset_encoding or "utf-8", "replace")


def _usable_key(key: str) -> str:
    if not key:
        raise Refusal("no_key", "The key of the service is not set.", "Set PATTERNMILL_API_KEY.")
    if not key.isascii() or not key.isprintable() or " " in key:
        message = "PATTERNMILL_API_KEY holds a character that no key has, such as a space or a line break."
        raise Refusal("bad_key", message, "Copy the key again.")
    return key


def _usable_address(address: str) -> httpx.URL:
    """Return the base address. No message repeats it: it may hold a password."""
    try:
        url = httpx.URL(address.strip().rstrip("/"))
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        message = f"PATTERNMILL_STUDIO_URL is {'no address of a service' if address else 'not set'}."
        raise Refusal("no_address", message, "Write it as https://HOST/v1, without a key or a query.")
    return url


def _transport(url: httpx.URL, secret: str) -> httpx.AsyncBaseTransport:
    """Return the transport of aiohttp: a tenth of the CPU of httpx's own, and no slots lost to cancelled requests.

    Its session has the headers of every request, which httpx would copy and encode for each. It keeps no cookies.
    """
    headers = {
        "Authorization": f"Bearer {secret}", "Content-Type": "application/json", "Accept": "application/json",
        "Accept-Encoding": "identity", "User-Agent": "patternmill/3",
    }  # fmt: skip
    try:
        is_https, proxy = url.scheme == "https", proxy_for(url)
        context = httpx.create_ssl_context() if is_https else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    except (OSError, ValueError, httpx.InvalidURL):
        message = "A proxy or a file of certificates that the environment names cannot be used."
        raise Refusal("bad_network", message, "Correct HTTPS_PROXY, SSL_CERT_FILE and their kind.") from None

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=_KEEP_ALIVE)
        return aiohttp.ClientSession(
            connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_LONGEST_LINE, max_field_size=_LONGEST_LINE, max_headers=4096,
        )  # fmt: skip

    return AiohttpTransport(verify=context, client=session, proxy=proxy)


def proxy_for(url: httpx.URL) -> httpx.Proxy | None:
    """Return the proxy that the environment names for an address; loopback is always reached directly."""
    proxy = getproxies().get(url.scheme) or getproxies().get("all")
    if not proxy or url.host in ("localhost", "::1") or url.host.startswith("127.") or proxy_bypass(url.host):
        return None
    return httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}")


def _retry_after(headers: httpx.Headers, now: float) -> float | None:
    """Return the pause that an answer asks for, in seconds; None where that makes no sense.

    A moment is compared with the service's own clock where the answer has it, so that ours may be wrong.
    """
    text = headers["retry-after"].strip()
    if re.fullmatch(r"\d+(\.\d+)?([eE]\+?\d{1,2})?", text, re.ASCII):
        return min(float(text), 1e9)
    until, date = parsedate_tz(text), parsedate_tz(headers.get("date", ""))
    try:
        return max(mktime_tz(until) - (mktime_tz(date) if date else now), 0.0) if until else None
    except (ValueError, OverflowError):
        return None
