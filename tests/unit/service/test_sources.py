"""Sheets at web addresses and in stores: whole, steady, without secrets; what is no sheet is called by its name."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]

from patternmill.addresses import shown_address, source_name
from patternmill.errors import ConfigurationError, InputRefused, PatternmillError
from patternmill.reading import Reading
from patternmill.runs.input import read_source
from patternmill.service import sources
from patternmill.service.sources import google_export, require_known_kind
from tests.unit.service.sites import Start, answer, redirect
from tests.unit.service.sites import start as start

CSV = b"sku,prompt,category\nA-1,blue herons,Cushion\n"


def refused(address: str) -> InputRefused:
    with pytest.raises(InputRefused) as error:
        read_source(address)
    return error.value


def test_export_that_leads_to_a_place_of_its_own_each_time_is_read(start: Start) -> None:
    """As a Google Sheet does: 307 to another host, with a place that is there once."""
    export, content = start(), start()
    places = count(1)

    def to_a_new_place(request: object) -> None:
        place = f"/export/{next(places)}?token=canary"
        content.answers(place, answer(200, CSV), answer(404))
        redirect(f"{content.url}{place}")(request)  # type: ignore[arg-type]

    export.answers("/spreadsheets/d/abc/export?format=csv&gid=0", to_a_new_place)
    file = read_source(f"{export.url}/spreadsheets/d/abc/export?format=csv&gid=0")
    assert len(file.sheet.rows) == 1 and file.sheet.raw == CSV


def test_name_and_password_of_an_address_are_sent_to_it(start: Start) -> None:
    first = start()
    first.answers("/new%20sheet.csv?a=b", answer(200, CSV))
    file = read_source(f"{first.url.replace('//', '//ann:pw@')}/new sheet.csv?a=b")
    assert (file.name, len(file.sheet.rows)) == ("new sheet.csv", 1)
    assert set(first.sent("Authorization")) == {"Basic YW5uOnB3"}


def test_answer_that_never_begins_ends_in_time(start: Start) -> None:
    """A header that comes a letter at a time is no pause, and no answer."""
    first = start()

    def dawdle(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(30):
            request.wfile.write(b"x")
            time.sleep(0.1)

    first.answers("/spring.csv", dawdle)
    with pytest.raises(InputRefused) as slow:
        read_source(f"{first.url}/spring.csv", reading=Reading("spring.csv", time=timedelta(seconds=0.3)))
    assert slow.value.code == "file_too_slow"


def test_source_that_changes_while_it_is_read_is_refused(start: Start) -> None:
    first = start()
    first.answers("/spring.csv", answer(200, CSV), answer(200, CSV + b"A-2,red foxes,Cushion\n"))
    assert refused(f"{first.url}/spring.csv").code == "file_changed"


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html>\n<title>Sign in</title>",
        b"<head><meta charset=utf-8>",
    ],
)
def test_page_for_people_is_named(body: bytes, start: Start) -> None:
    """Whatever status a page to sign in on has, and with the host that it is of."""
    first, login = start(), start("127.0.0.2")
    login.answers("/signin?continue=canary", answer(200, body, Content_Type="text/html; charset=utf-8"))
    first.answers("/spring.csv", redirect(f"{login.url}/signin?continue=canary", 302))
    error = refused(f"{first.url}/spring.csv")
    assert "answers with a web page (of 127.0.0.2), such as one to sign in on" in error.message
    assert error.code == "file_unreadable" and "PATTERNMILL_SOURCES" in error.remedy
    assert "canary" not in str(error)
    assert "(of " not in refused(f"{login.url}/signin?continue=canary").message


def test_sheet_that_is_called_a_page_is_read(start: Start) -> None:
    """By its first bytes, not by its type."""
    first = start()
    first.answers("/spring.csv", answer(200, CSV, Content_Type="text/html"))
    assert len(read_source(f"{first.url}/spring.csv").sheet.rows) == 1


DOCS = "https://docs.google.com/spreadsheets"
EXPORT = f"{DOCS}/d/1aB_c-9/export?format=csv"


@pytest.mark.parametrize(
    ("address", "export"),
    [
        (f"{DOCS}/d/1aB_c-9/edit#gid=0", f"{EXPORT}&gid=0"),
        (f"{DOCS}/d/1aB_c-9/edit?gid=77#gid=77", f"{EXPORT}&gid=77"),
        (f"{DOCS}/u/1/d/1aB_c-9/htmlview?gid=5", f"{EXPORT}&gid=5"),
        (f"{DOCS}/d/1aB_c-9", EXPORT),
        (f"{DOCS}/d/e/2PACX-1v/pubhtml?gid=3&single=true", f"{DOCS}/d/e/2PACX-1v/pub?output=csv&gid=3"),
    ],
)
def test_page_of_a_google_sheet_is_refused_with_the_address_of_its_rows(address: str, export: str) -> None:
    """The address in the browser's bar, before anything is asked."""
    with pytest.raises(ConfigurationError) as error:
        require_known_kind(address)
    assert f"'{export}'" in error.value.remedy
    require_known_kind(export)


@pytest.mark.parametrize(
    "address",
    [
        f"{EXPORT}&gid=0",
        "https://docs.google.com/document/d/abc/edit",
        "https://example.com/spreadsheets/d/1aB_c-9/edit#gid=0",
        "https://[/x",
    ],
)
def test_other_addresses_are_no_google_pages(address: str) -> None:
    assert google_export(address) is None


@pytest.fixture
def bucket() -> Iterator[str]:
    """A place in memory."""
    name = f"memory://{uuid.uuid4().hex}"
    yield name
    fsspec.filesystem("memory").rm(name, recursive=True)


def test_address_is_read_as_a_file_is(bucket: str, tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe_file(f"{bucket}/spring.csv", CSV)
    (tmp_path / "spring.csv").write_bytes(CSV)
    there, here = read_source(f"{bucket}/spring.csv"), read_source(str(tmp_path / "spring.csv"))
    assert (there.sheet.raw, there.name) == (CSV, here.name)
    assert list(there.sheet.records()) == list(here.sheet.records())


def read(address: str) -> bytes:
    return sources.remote_bytes(address, Reading("spring.csv"))


class Restless(MemoryFileSystem):  # type: ignore[misc]
    """Has another content for each reader, or another mark."""

    protocol = "restless"
    cachable = False
    reads = 0

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        Restless.reads += 1
        size = len(CSV) + 1
        return {"size": size, "type": "file", "ETag": str(Restless.reads) if "mark" in path else "same"}

    def cat_file(self, path: str, *_: Any, **__: Any) -> bytes:
        Restless.reads += 1
        return CSV + (str(Restless.reads % 10).encode() if "content" in path else b"\n")


@pytest.mark.parametrize("name", ["mark", "content"])
def test_stored_file_that_changes_while_it_is_read_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two readings that differ, or an ETag or time that does."""
    fsspec.register_implementation("restless", Restless, clobber=True)
    monkeypatch.setattr(sources, "STORES", {"restless"})
    with pytest.raises(InputRefused) as refused:
        read(f"restless://{name}/spring.csv")
    assert refused.value.code == "file_changed"
    assert read("restless://steady/spring.csv") == CSV + b"\n"


@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        ("memory://nowhere/spring.csv", InputRefused),
        ("nonsense://somewhere/spring.csv", ConfigurationError),
        ("FILE:///etc/passwd", ConfigurationError),
        ("s3://bucket/spring.csv", ConfigurationError),
        ("zip://a.csv::https://user:secret@example.com/a.zip", ConfigurationError),
    ],
)
def test_errors_of_addresses_have_no_secrets(address: str, refusal: type[PatternmillError]) -> None:
    """Every failure is a refusal, and no secret of the address is in it."""
    with pytest.raises(refusal) as refused:
        read(address)
    error = refused.value
    assert "secret" not in f"{error} {error.__cause__}"
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    ("address", "shown", "name"),
    [
        ("https://user:pw@x.org:8443/a/s.csv?sig=x#y", "https://x.org:8443/a/s.csv", "s.csv"),
        ("s3://bucket/spring%20sheet.csv", "s3://bucket/spring%20sheet.csv", "spring sheet.csv"),
        ("inputs/spring.csv", "inputs/spring.csv", "spring.csv"),
        ("file?name@x.csv", "file?name@x.csv", "file?name@x.csv"),
    ],
)
def test_address_is_shown_without_secrets(address: str, shown: str, name: str) -> None:
    """User, password, query and fragment stay out of what is shown; a path is shown as it is."""
    assert shown_address(address) == shown
    assert source_name(address) == name
