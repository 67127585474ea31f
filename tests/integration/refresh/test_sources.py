"""Where a catalog comes from and where its results go: real addresses, and none of their secrets anywhere."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cli import main
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.runs.input import check_command, read_input
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec, run_spec
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


def test_bearer_of_a_source_is_sent_to_it_and_kept_nowhere(
    desk: Desk, site: tuple[str, dict[str, Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, pages = site
    seen: list[str] = []

    def page(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        seen.append(request.headers.get("Authorization", ""))
        return 200, CSV

    pages["/spring.csv"] = page
    sources = {"nightly": {"address": f"{url}/spring.csv", "bearer": "canary-one"}}
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps(sources))
    assert desk.refresh("nightly").ending.outcome is Outcome.COMPLETED
    assert set(seen) == {"Bearer canary-one"}
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


def imported(spec: RunSpec) -> Outcome:
    async def main() -> Outcome:
        async with Run(spec) as work:
            await work.run_through()
            return work.ended.outcome

    return asyncio.run(asyncio.wait_for(main(), 120))


def test_sheet_at_an_address_is_imported(desk: Desk, site: tuple[str, dict[str, Answer]]) -> None:
    """Its catalog is named after it, or as --catalog says; the refresh of that address then has nothing to buy."""
    url, pages = site
    desk.catalog, name = "new-linens", "new%20linens.csv"
    pages[f"/{name}"] = lambda _: (200, CSV)
    pages["/export?format=csv&gid=0"] = lambda _: (200, CSV)
    spec = run_spec(ImportRequest(file=f"{url}/{name}", confirm="staging"))
    assert (spec.catalog, spec.named_source) == (desk.catalog, f"{url}/{name}")
    assert imported(spec) is Outcome.COMPLETED
    assert desk.products().keys() == {"A-1"}
    assert desk.refresh(f"{url}/{name}").counts == {"unchanged": 1}
    with pytest.raises(ConfigurationError, match="--catalog"):
        run_spec(ImportRequest(file=f"{url}/export?format=csv&gid=0"))
    spec = run_spec(ImportRequest(file=f"{url}/export?format=csv&gid=0", catalog=desk.catalog))
    assert imported(spec) is Outcome.COMPLETED


def test_named_source_is_imported(
    desk: Desk, site: tuple[str, dict[str, Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the refusal of an address with a secret advises; the command that asks about it names no secret either."""
    url, pages = site
    desk.catalog = "nightly"
    pages["/export?token=canary"] = lambda _: (200, CSV)
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps({desk.catalog: f"{url}/export?token=canary"}))
    spec = run_spec(ImportRequest(file=desk.catalog, confirm="staging"), by_deployment=True)
    assert spec.catalog == desk.catalog
    assert check_command(spec) == "patternmill check nightly --catalog nightly"
    assert imported(spec) is Outcome.COMPLETED


def test_check_reads_an_address_and_a_name(
    desk: Desk,
    site: tuple[str, dict[str, Answer]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its answers are kept in the home, where the import of the same address reads them."""
    url, pages = site
    pages["/linens.csv?sig=canary"] = lambda _: (200, CSV.replace(b"sku", b"Art.-Nr."))
    address = f"{url}/linens.csv?sig=canary"
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps({"linens": address}))
    assert main.run(["check", address]) == 2
    assert "canary" not in "".join(capsys.readouterr())
    assert main.run(["check", "linens", "--yes"]) == 0
    assert read_input(run_spec(ImportRequest(file=address))).columns.sku == 0


def test_results_file_at_an_address_is_no_source(desk: Desk, site: tuple[str, dict[str, Answer]]) -> None:
    url, pages = site
    pages["/results.csv"] = lambda _: (200, CSV.replace(b"note", b"run"))
    with pytest.raises(InputRefused) as refused:
        read_input(run_spec(ImportRequest(file=f"{url}/results.csv")))
    assert refused.value.code == "reserved_column" and "from a file" in refused.value.remedy


@pytest.mark.parametrize("place", ["ann:canary@example.com/a.csv", "example.com/a.csv?sig=canary"])
def test_import_of_a_deployment_takes_no_secret_as_a_parameter(place: str) -> None:
    with pytest.raises(ConfigurationError, match="PATTERNMILL_SOURCES") as refused:
        spec_of(ImportRequest(file=f"https://{place}"))
    assert "canary" not in str(refused.value) and "canary" not in repr(ImportRequest(file=f"https://{place}"))


def test_page_of_a_google_sheet_is_refused_with_its_export(desk: Desk) -> None:
    address = "https://docs.google.com/spreadsheets/d/abc/edit#gid=0"
    for request in (ImportRequest(file=address), RefreshRequest(source=address)):
        with pytest.raises(ConfigurationError) as refused:
            run_spec(request)
        assert "/spreadsheets/d/abc/export?format=csv&gid=0'" in refused.value.remedy


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
