"""Sheets at web addresses and in stores: whole, steady, without secrets; what is no sheet is called by its name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from itertools import count
from threading import Event
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]

from patternmill.addresses import shown_address, source_name
from patternmill.errors import ConfigurationError, InputRefused, PatternmillError
from patternmill.reading import Reading
from patternmill.service import sources
from patternmill.service.sources import google_export, require_known_kind
from tests.unit.service.sites import Start, answer, redirect
from tests.unit.service.sites import start as start

CSV = b"sku,prompt,category\nA-1,blue herons,Cushion\n"


def read(address: str, **limits: Any) -> bytes:
    return sources.remote_bytes(address, Reading("spring.csv", **limits))


def refused(address: str, kind: type[PatternmillError] = InputRefused, **limits: Any) -> PatternmillError:
    with pytest.raises(kind) as error:
        read(address, **limits)
    assert "secret" not in f"{error.value} {error.value.__cause__}"
    assert error.value.__suppress_context__ or error.value.__context__ is None
    return error.value


def test_export_that_leads_to_a_place_of_its_own_each_time_is_read(start: Start) -> None:
    """A Google Sheet does that: 307 to another host, with a place that is there once."""
    export, content = start(), start()
    places = count(1)

    def to_a_new_place(request: BaseHTTPRequestHandler) -> None:
        place = f"/export/{next(places)}?token=secret"
        content.answers(place, answer(200, CSV), answer(404))
        redirect(f"{content.url}{place}")(request)

    export.answers("/spreadsheets/d/abc/export?format=csv&gid=0", to_a_new_place)
    assert read(f"{export.url.replace('//', '//ann:pw@')}/spreadsheets/d/abc/export?format=csv&gid=0") == CSV
    assert set(export.sent("Authorization")) == {"Basic YW5uOnB3"}


def test_answer_that_never_begins_ends_in_time(start: Start) -> None:
    """A header that comes a letter at a time is no pause, and no answer."""
    first, is_over = start(), Event()

    def dawdle(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not is_over.wait(0.1):
            request.wfile.write(b"x")

    first.answers("/spring.csv", dawdle)
    error = refused(f"{first.url}/spring.csv", time=timedelta(seconds=0.3))
    is_over.set()
    assert error.code == "file_too_slow"


class Restless(MemoryFileSystem):  # type: ignore[misc]
    """A store whose file has other content, or another mark, for each reader."""

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


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    fsspec.register_implementation("restless", Restless, clobber=True)
    monkeypatch.setattr(sources, "STORES", {"restless"})
    yield "restless://"


def test_file_that_changes_while_it_is_read_is_refused(start: Start, store: str) -> None:
    """Two readings differ, or their ETags do."""
    first = start()
    first.answers("/spring.csv", answer(200, CSV), answer(200, CSV + b"A-2,red foxes,Cushion\n"))
    for address in (f"{first.url}/spring.csv", f"{store}mark/spring.csv", f"{store}content/spring.csv"):
        assert refused(address).code == "file_changed"
    assert read(f"{store}steady/spring.csv") == CSV + b"\n"


@pytest.mark.parametrize("body", [b"<!DOCTYPE html>\n<title>Sign in</title>", b"<head><meta charset=utf-8>"])
def test_page_for_people_is_named(body: bytes, start: Start) -> None:
    """A page to sign in on is named with its host; a sheet is known by its bytes, whatever its address is called."""
    first, login = start(), start("127.0.0.2")
    login.answers("/signin?to=secret", answer(200, body, Content_Type="text/html; charset=utf-8"))
    first.answers("/spring.csv", redirect(f"{login.url}/signin?to=secret", 302))
    error = refused(f"{first.url}/spring.csv")
    assert "answers with a web page (of 127.0.0.2), such as one to sign in on" in error.message
    assert error.code == "file_unreadable" and "PATTERNMILL_SOURCES" in error.remedy
    assert "(of " not in refused(f"{login.url}/signin?to=secret").message
    login.answers("/signin?to=secret", answer(200, CSV, Content_Type="text/html"))
    assert read(f"{first.url}/spring.csv") == CSV


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
        (f"{EXPORT}&gid=0", None),
        ("https://docs.google.com/document/d/abc/edit", None),
        ("https://example.com/spreadsheets/d/1aB_c-9/edit#gid=0", None),
        ("https://[/x", None),
    ],
)
def test_page_of_a_google_sheet_is_refused_with_the_address_of_its_rows(
    address: str, export: str | None
) -> None:
    """The page's address is the one in the browser's bar; it is refused before anything is asked."""
    assert google_export(address) == export
    if export is not None:
        with pytest.raises(ConfigurationError) as error:
            require_known_kind(address)
        assert f"'{export}'" in error.value.remedy
        require_known_kind(export)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("memory://nowhere/spring.csv", InputRefused),
        ("nonsense://somewhere/spring.csv", ConfigurationError),
        ("FILE:///etc/passwd", ConfigurationError),
        ("s3://bucket/spring.csv", ConfigurationError),
        ("zip://a.csv::https://user:secret@example.com/a.zip", ConfigurationError),
    ],
)
def test_every_failure_is_a_refusal_without_secrets(address: str, kind: type[PatternmillError]) -> None:
    refused(address, kind)


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
    assert (shown_address(address), source_name(address)) == (shown, name)
