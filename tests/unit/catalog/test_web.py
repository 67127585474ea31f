"""Web addresses as sources: where redirects may lead, what is too much, and what a broken answer is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from patternmill.catalog.read_limits import ReadLimits
from patternmill.catalog.remote import may_follow
from patternmill.errors import InputRefused
from patternmill.sheets.sheet_reader import read_source

CSV = b"sku,prompt,category\nA-1,blue herons,Cushion\n"
Page = Callable[[BaseHTTPRequestHandler], None]


class Site:
    def __init__(self, url: str) -> None:
        self.url = url
        self.pages: dict[str, Page] = {}
        self.seen: list[tuple[str, str]] = []

    def answers(self, path: str, status: int, body: bytes = b"", **headers: str) -> None:
        def page(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            for name, value in {"Content_Length": str(len(body)), **headers}.items():
                request.send_header(name.replace("_", "-"), value)
            request.end_headers()
            request.wfile.write(body)

        self.pages[path] = page


@pytest.fixture
def sites() -> Iterator[Callable[[], Site]]:
    servers: list[ThreadingHTTPServer] = []

    def start() -> Site:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.seen.append((self.path, self.headers.get("Authorization", "")))
                site.pages[self.path](self)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        site = Site(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return site

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("here", "there", "followed"),
    [
        ("http://a.example/x", "http://a.example/y", True),
        ("http://a.example/x", "https://a.example/x", True),
        ("https://a.example/x", "https://a.example:443/y", True),
        ("https://a.example/x", "http://a.example/x", False),
        ("https://a.example/x", "https://b.example/x", False),
        ("https://a.example/x", "https://www.a.example/x", False),
        ("https://a.example/x", "https://a.example:8443/x", False),
        ("http://a.example/x", "http://127.0.0.1/x", False),
        ("http://a.example/x", "http://a.example@10.0.0.1/x", False),
        ("http://a.example/x", "http://me:pw@a.example/x", False),
        ("http://a.example/x", "file:///etc/passwd", False),
        ("http://a.example/x", "ftp://a.example/x", False),
    ],
)
def test_allowed_redirects(here: str, there: str, followed: bool) -> None:
    """To the same host, by the same scheme or from http to https; nowhere else."""
    assert may_follow(here, there) is followed


def test_redirect_on_the_same_host_is_followed(sites: Callable[[], Site]) -> None:
    """With the user and password that the address had."""
    site = sites()
    site.answers("/old.csv", 301, Location="/new%20sheet.csv?a=b")
    site.answers("/new%20sheet.csv?a=b", 200, CSV)
    assert len(read_source(f"{site.url.replace('//', '//ann:pw@')}/old.csv").records) == 1
    assert {authorization for _, authorization in site.seen} == {"Basic YW5uOnB3"}


@pytest.mark.parametrize("target", ["another host", "file:///etc/passwd", "ftp://127.0.0.1/x", "/old.csv"])
def test_redirect_to_elsewhere_is_refused(target: str, sites: Callable[[], Site]) -> None:
    """Another host is not even asked, a file is not opened, a circle ends."""
    site, other = sites(), sites()
    other.answers("/new.csv", 200, CSV)
    location = f"{other.url}/new.csv?canary" if target == "another host" else target
    site.answers("/old.csv", 302, Location=location)
    with pytest.raises(InputRefused) as refused:
        read_source(f"{site.url}/old.csv")
    assert refused.value.code == "file_unreadable"
    assert other.seen == []
    assert "canary" not in str(refused.value) and "root:" not in str(refused.value)
    assert len(site.seen) <= 12


def test_endless_answer_is_bounded(sites: Callable[[], Site]) -> None:
    """However much comes without a length, and however slowly."""
    site = sites()

    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"x" * 10_000)
                time.sleep(0.01)
        except OSError:
            return

    site.pages["/spring.csv"] = endless
    with pytest.raises(InputRefused) as large:
        read_source(f"{site.url}/spring.csv", limits=ReadLimits(size=50_000))
    assert large.value.code == "file_too_large"
    with pytest.raises(InputRefused) as slow:
        read_source(f"{site.url}/spring.csv", limits=ReadLimits(time=timedelta(seconds=0.3)))
    assert slow.value.code == "file_too_slow"


def test_invalid_address_is_refused() -> None:
    """An invalid port or host: refused, without the password."""
    for address in (
        "http://ann:canary@127.0.0.1:port/x.csv",
        "http://ann:canary@/x.csv",
        "http://a\u0000b/x",
    ):
        with pytest.raises(InputRefused) as refused:
            read_source(address)
        assert "canary" not in str(refused.value)
