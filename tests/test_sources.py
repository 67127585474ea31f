"""Sheets at addresses: which are read, which are refused, and that nobody is shown a password."""

import asyncio
import gzip
import http.server
import json
import logging
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from patternmill import files
from patternmill.errors import InputRefused, Refusal
from patternmill.pipeline import carry_out
from patternmill.request import Request
from patternmill.service import sources
from patternmill.service.sources import check_reach, find_source, name_of, read_source
from patternmill.settings import Settings, read_settings
from patternmill.states import Outcome
from tests.double import Double, Weather, serving
from tests.double.server import KEY
from tests.test_runs import table

SHEET = b"sku,prompt,category,option:size\r\nA-1,herons,Tote,m\r\n"
#: Without the time, which would be another one in each tester.
PACKED = gzip.compress(SHEET, mtime=0)
BOMB = gzip.compress(gzip.compress(bytes(1 << 20), mtime=0), mtime=0)


class Web(http.server.ThreadingHTTPServer):
    """Answers by path with a status, headers and a body, and remembers what it was sent."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []
        super().__init__(("127.0.0.1", 0), Handler)

    def at(self, path, host="127.0.0.1"):
        return f"http://{host}:{self.server_port}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Authorization"), self.headers["Host"]))
        status, headers, body = self.server.answers[self.path]
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about):
        """Say nothing."""


@contextmanager
def web(**answers):
    """Serve answers, of which `_` in a name stands for `/`; a text is an address that is led to."""
    full = {}
    for name, answer in answers.items():
        answer = answer if isinstance(answer, tuple) else (200, {}, answer)
        full[f"/{name}"] = answer if not isinstance(answer[2], str) else (307, {"Location": answer[2]}, b"")
    with Web(full) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def read(address, **named):
    return asyncio.run(read_source(find_source(address, Settings(sources=named).sources)))


def refused(address, **named):
    with pytest.raises(InputRefused) as caught:
        read(address, **named)
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        SHEET, PACKED, (200, {"Content-Encoding": "gzip"}, PACKED),
        (200, {"Content-Encoding": "gzip"}, gzip.compress(PACKED, mtime=0)),
        (200, {"Content-Type": "text/html"}, SHEET), (200, {"Content-Encoding": "gzip"}, SHEET),
    ],
)  # fmt: skip
def test_a_sheet_at_an_address_is_read_however_it_is_packed(answer):
    with web(sheet=answer) as server:
        assert read(server.at("/sheet")) == SHEET


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {}, b"no"), "answers 404: nothing is there"), ((403, {}, b""), "not open to all"),
        ((500, {}, b""), "answers 500"), ((204, {}, b""), "answers 204"),
        (b"\n<!DOCTYPE html><title>Sign in</title>", "web page, such as one to sign in on"),
        (b"<HTML><body>", "web page"), ((200, {"Content-Encoding": "br"}, SHEET), "packed"),
        (PACKED[:-9], "damaged"), ((200, {"Content-Length": "999"}, SHEET), "RemoteProtocolError"),
        ("ftp://127.0.0.1/sheet", "not https"), ("/sheet", "more than 5 times"), (BOMB, "larger than"),
        (bytes(70_000), "larger than"),
    ],
)  # fmt: skip
def test_answers_that_are_no_sheet(answer, said, monkeypatch):
    for module in (files, sources):
        monkeypatch.setattr(module, "MOST_BYTES", 65_536)
    with web(sheet=(200, {}, answer) if isinstance(answer, str) else answer) as server:
        assert said in refused(server.at("/sheet"))


def test_an_address_that_leads_on_is_followed_and_its_credentials_stay_where_they_belong():
    with web(there=SHEET) as other, web(a=(0, {}, "/b"), b=(0, {}, other.at("/there"))) as server:
        header = "Authorization: Bearer canary"
        assert read("teas", teas={"url": server.at("/a"), "header": header}) == SHEET
        assert [one[:2] for one in server.asked] == [("/a", "Bearer canary"), ("/b", "Bearer canary")]
        assert other.asked == [("/there", None, f"127.0.0.1:{other.server_port}")]


def test_user_and_password_are_sent_as_they_are_meant():
    with web(sheet=SHEET) as server:
        assert read(server.at("/sheet").replace("//", "//ann:p%40ss%2Fw@")) == SHEET
        assert server.asked[0][1] == httpx.BasicAuth("ann", "p@ss/w")._auth_header


def test_no_private_address_is_reached_that_was_not_named():
    with web(sheet=SHEET) as other, web(a=(0, {}, other.at("/sheet"))) as server:
        assert "private network" in refused(server.at("/a", "localhost"))
        assert not other.asked


def test_what_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(sources, "_SECONDS", 0.05)
    with web(sheet=(200, {"Content-Length": "999"}, SHEET)) as server:
        server.RequestHandlerClass.timeout = 1
        monkeypatch.setattr(Handler, "finish", lambda self: threading.Event().wait(0.3))
        assert "does not come within" in refused(server.at("/sheet"))


@pytest.mark.parametrize(
    "password", ["zq@jx/y:rd#1", "zq/jx@y", "zq?jx@y", "zq#jx@y", "zq%jx", "zqä jx", "12/jx", "zq\\jx@y"]
)
def test_a_password_that_is_not_encoded_is_refused_and_no_letter_of_it_shown(password, monkeypatch):
    monkeypatch.setattr("socket.getaddrinfo", None)  # nothing of it is looked up
    address = f"http://kk:{password}@127.0.0.1:9/teas.csv"
    for said in (refused(address), refused("teas", teas=address)):
        assert "percent-encoded" in said
        assert not any(part in said for part in ("zq", "jx", "rd#", "12"))


def test_a_google_sheet_as_a_browser_shows_it_names_the_address_of_its_rows():
    page = "https://docs.google.com/spreadsheets/d/1abC-_9/edit"
    assert "/export?format=csv&gid=7 " in refused(f"{page}?usp=sharing#gid=7")
    assert "/export?format=csv&gid=0 " in refused("teas", teas=f"{page}#gid=0")
    assert "/pub?output=csv " in refused("https://docs.google.com/spreadsheets/d/e/2PA-X/pubhtml")


def test_what_is_no_address_of_a_sheet():
    assert "kind that is not read" in refused("ftp://example.com/a.csv")
    assert "kind that is not read" in refused("s3://a::file:///etc/passwd")
    assert "pip install s3fs" in refused("s3://bucket/teas.csv")
    assert "cannot be read" in refused("https://")


def test_secrets_are_in_no_name_representation_or_log(caplog):
    caplog.set_level(logging.DEBUG)
    with web(**{"sheet?sig=canary": SHEET}) as server:
        address = server.at("/sheet?sig=canary").replace("//", "//ann:canary@")
        source = find_source(address, {})
        assert read(address) == SHEET
    shown = server.at("/sheet")
    assert (source.name, source.path, name_of(address)) == (shown, Path("sheet"), shown)
    assert find_source(shown, {}).address == address  # in this process it stands for the whole
    assert "canary" not in f"{source!r}{caplog.text}{Settings(sources={'teas': {'url': address}})!r}"


def test_the_setting_names_sources_as_json_or_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps({"teas": "https://a.example/teas.csv"}))
    assert find_source("teas", read_settings().sources).address == "https://a.example/teas.csv"
    (tmp_path / "sources.toml").write_text('teas = {url = "https://b.example", header = "X-Key: canary"}')
    monkeypatch.setenv("PATTERNMILL_SOURCES", str(tmp_path / "sources.toml"))
    assert find_source("teas", read_settings().sources).header == "X-Key: canary"
    strange = '{"teas": {"url": "x", "canary": 1}}'
    for wrong in ('{"teas": "canary', "canary.toml", strange, '{"a": {"header": "canary"}}'):
        monkeypatch.setenv("PATTERNMILL_SOURCES", wrong)
        with pytest.raises(Refusal, match="PATTERNMILL_SOURCES") as caught:
            read_settings()
        assert "canary" not in str(caught.value).lower().replace(".canary", "")


def test_a_deployment_reads_named_sources_and_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = Settings(sources={"teas": "https://a.example"})
    for file in ("teas", "spring.csv", str(tmp_path / "a" / "spring.csv"), None):
        check_reach(Request(file=file), settings)
    for wrong in ({"file": "https://a.example"}, {"file": "../a.csv"}, {"file": "/etc/passwd"}, {"out": "/tmp"},
                  {"file": "teas", "mapping": "../a.toml"}):  # fmt: skip
        with pytest.raises(Refusal, match="own folder"):
            check_reach(Request(**wrong), settings)


def test_a_run_of_a_source_is_named_after_it_and_records_no_secret(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    double = Double(Weather(latency=0.001, pattern_time=0.1, product_time=0.1))
    Path("teas.mapping.toml").write_text('[columns]\nArt = "sku"\n')
    with (
        serving(double) as service,
        web(**{"spring.csv.gz?key=canary": gzip.compress(SHEET.replace(b"sku", b"Art"))}) as server,
    ):
        address = server.at("/spring.csv.gz?key=canary")
        named = {"teas": {"url": address, "header": "X-Key: canary"}}
        about = {"STUDIO_URL": service, "API_KEY": KEY, "HOME": "home", "SOURCES": json.dumps(named)}
        for name, text in about.items():
            monkeypatch.setenv(f"PATTERNMILL_{name}", text)
        end = asyncio.run(carry_out(Request(file="teas")))
        Path("spring.csv.mapping.toml").write_text('[columns]\nArt = "sku"\n')
        again = asyncio.run(carry_out(Request(file=address)))
    assert (end.outcome, end.summary.catalog) == (Outcome.COMPLETED, "teas")
    assert (again.outcome, again.summary.catalog) == (Outcome.COMPLETED, "spring")
    assert not any(b"canary" in path.read_bytes() for path in Path("home").rglob("*") if path.is_file())
    manifest = json.loads((Path(again.summary.folder) / "manifest.json").read_text())
    assert manifest["source"] == server.at("/spring.csv.gz")
    assert [one["Art"] for one in table(Path(end.summary.folder) / "results.csv")] == ["A-1"]
