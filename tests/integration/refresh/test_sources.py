"""Where a catalog comes from and where its results go: real addresses, and none of their secrets anywhere."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.runs.request import RefreshRequest
from patternmill.states import Outcome
from tasks.run_steps import spec_of
from tests.integration.refresh.conftest import HEADER, Desk

CSV = f"{HEADER}\nA-1,Blue herons,Cushion,50x50,linen,x\n".encode()
Answer = Callable[[BaseHTTPRequestHandler], tuple[int, bytes]]


@pytest.fixture
def site() -> Iterator[tuple[str, dict[str, Answer]]]:
    """An http address, and what it answers by path."""
    pages: dict[str, Answer] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            status, body = page(self) if page else (404, b"")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """No access log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", pages
        server.shutdown()
        thread.join()


def test_secrets_of_an_address_are_kept_nowhere(desk: Desk, site: tuple[str, dict[str, Answer]]) -> None:
    """User, password and signature are sent to the source alone."""
    url, pages = site
    seen: list[str] = []

    def page(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        seen.append(request.headers.get("Authorization", ""))
        return 200, CSV

    pages["/spring.csv?signature=canary-two"] = page
    address = f"{url.replace('//', '//ann:canary-one@')}/spring.csv?signature=canary-two"
    night = desk.refresh(address)
    assert night.ending.outcome is Outcome.COMPLETED
    assert set(seen) == {"Basic " + base64.b64encode(b"ann:canary-one").decode()}
    for file in filter(lambda path: path.is_file(), desk.folder.rglob("*")):
        assert b"canary" not in file.read_bytes(), file


def test_address_with_a_password_is_refused_as_a_parameter(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a name of the settings it is accepted."""
    with pytest.raises(ConfigurationError) as refused:
        spec_of(RefreshRequest(source="https://ann:canary@example.com/spring.csv", catalog="spring"))
    assert "canary" not in str(refused.value)
    monkeypatch.setenv("PATTERNMILL_SOURCES", '{"nightly": "http://ann:canary@127.0.0.1:9/spring.csv"}')
    with pytest.raises(InputRefused) as unreached:
        desk.refresh("nightly")
    assert "http://127.0.0.1:9/spring.csv" in str(unreached.value)
    assert "canary" not in str(unreached.value)


@pytest.mark.parametrize(("status", "code"), [(404, "file_missing"), (500, "file_unreadable")])
def test_unavailable_source_retires_nothing(
    desk: Desk, site: tuple[str, dict[str, Answer]], status: int, code: str
) -> None:
    """It is refused whole."""
    url, pages = site
    pages["/spring.csv"] = lambda _: (200, CSV)
    desk.refresh(f"{url}/spring.csv")
    pages["/spring.csv"] = lambda _: (status, b"sorry")
    with pytest.raises(InputRefused) as refused:
        desk.refresh(f"{url}/spring.csv")
    assert refused.value.code == code
    assert desk.products().keys() == {"A-1"}
