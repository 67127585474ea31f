"""Web servers of a test, on addresses of the loopback network, and the names that lead to them."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import gaierror

import pytest

from patternmill.service.network import IpAddress, Network
from patternmill.service.web_reader import Access

Answer = Callable[[BaseHTTPRequestHandler], None]
#: Addresses of the loopback network: two that tests take for public ones, and one that is what it is.
PUBLIC, ALSO_PUBLIC, PRIVATE = "127.0.0.2", "127.0.0.3", "127.0.0.1"


@dataclass
class Site:
    """A server, what it answers by path, and what it was asked."""

    url: str
    port: int
    pages: dict[str, Answer] = field(default_factory=dict)
    #: Path with query, and headers.
    seen: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    #: The bodies that were posted.
    bodies: list[bytes] = field(default_factory=list)
    #: As a proxy: the IP addresses that it connects hosts to.
    tunnels: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Return the host with its port."""
        return self.url.partition("://")[2]

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.seen]

    def sent(self, header: str) -> list[str | None]:
        return [headers.get(header) for _, headers in self.seen]

    def at(self, name: str, path: str = "/spring.csv") -> str:
        """Return the address of a path under another name of the host."""
        return f"{self.url.partition('://')[0]}://{name}:{self.port}{path}"

    def answers(self, path: str, *answers: Answer) -> None:
        """Give these answers one after the other, and the last one from then on."""
        left = list(answers)

        def page(request: BaseHTTPRequestHandler) -> None:
            (left.pop(0) if len(left) > 1 else left[0])(request)

        self.pages[path] = page


def answer(status: int = 200, body: bytes = b"", **headers: str) -> Answer:
    def write(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return write


def redirect(location: str, status: int = 307) -> Answer:
    return answer(status, Location=location)


def drop(request: BaseHTTPRequestHandler) -> None:
    """Close the connection without an answer."""
    request.close_connection = True


def relay(here: socket.socket, there: socket.socket) -> None:
    """Pass on what each of two sends, until one ends."""
    while ready := select.select([here, there], [], [], 5)[0]:
        for source, target in ((here, there), (there, here)):
            if source in ready:
                if not (data := source.recv(1 << 16)):
                    return
                target.sendall(data)


@contextmanager
def site(address: str = PRIVATE, certificate: Path | None = None, port: int = 0) -> Iterator[Site]:
    """Serve on an address while it lasts; by https with a certificate and its key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.seen.append((self.path, dict(self.headers)))
            served.pages.get(self.path, answer(404))(self)

        def do_POST(self) -> None:
            served.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.do_GET()

        def do_CONNECT(self) -> None:
            served.seen.append((self.path, dict(self.headers)))
            host, _, port = self.path.partition(":")
            if host not in served.tunnels:
                self.send_error(502)
                return
            self.close_connection = True
            with socket.create_connection((served.tunnels[host], int(port))) as there:
                self.send_response(200)
                self.end_headers()
                relay(self.connection, there)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Report nothing: a client that goes away is no news."""

    with Server((address, port), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https" if certificate is not None else "http"
        served = Site(f"{scheme}://{address}:{server.server_port}", server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield served
        server.shutdown()
        thread.join()


Start = Callable[..., Site]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start sites, which end with the test; no proxy is set."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ExitStack() as stack:
        yield lambda *arguments, **named: stack.enter_context(site(*arguments, **named))


def network(names: Mapping[str, Sequence[str]] | None = None) -> Network:
    """Return a network in which names have these IP addresses, and two addresses of the loopback network are public."""

    def resolve(host: str, port: int) -> list[IpAddress]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        if host not in (names or {}):
            raise gaierror(-2, "Name or service not known")
        return [ip_address(address) for address in (names or {})[host]]

    return Network(resolve, lambda address: str(address) in (PUBLIC, ALSO_PUBLIC))


def access(names: Mapping[str, Sequence[str]] | None = None, **how: object) -> Access:
    return Access(network=network(names), pause=0.0, **how)  # type: ignore[arg-type]
