"""Web addresses as sources: that redirects are refused, what is too much, and what a broken answer is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from patternmill.catalog.read_limits import Reading
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


@pytest.mark.parametrize("target", ["another host", "/new.csv", "file:///etc/passwd", "/old.csv"])
def test_redirect_is_refused(target: str, sites: Callable[[], Site]) -> None:
    """Where it leads is not even asked, and not shown: it may hold a password."""
    site, other = sites(), sites()
    location = f"{other.url}/new.csv?canary" if target == "another host" else target
    site.answers("/old.csv", 302, Location=location)
    with pytest.raises(InputRefused, match="redirects to another address") as refused:
        read_source(f"{site.url.replace('//', '//ann:pw@')}/old.csv")
    assert refused.value.code == "file_unreadable" and "Name the address" in refused.value.remedy
    assert [path for path, _ in site.seen] == ["/old.csv"] and other.seen == []
    assert "canary" not in str(refused.value) and "pw" not in str(refused.value)


def test_name_and_password_of_an_address_are_sent_to_it(sites: Callable[[], Site]) -> None:
    site = sites()
    site.answers("/new%20sheet.csv?a=b", 200, CSV)
    assert len(read_source(f"{site.url.replace('//', '//ann:pw@')}/new sheet.csv?a=b").records) == 1
    assert {authorization for _, authorization in site.seen} == {"Basic YW5uOnB3"}


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
        read_source(f"{site.url}/spring.csv", reading=Reading("spring.csv", size=50_000))
    assert large.value.code == "file_too_large"
    with pytest.raises(InputRefused) as slow:
        read_source(f"{site.url}/spring.csv", reading=Reading("spring.csv", time=timedelta(seconds=0.3)))
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
