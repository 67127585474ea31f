"""Addresses are read by httpx: redirects, hosts that are not public, what is packed, and what passes."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.errors import InputRefused
from patternmill.reading import Reading
from patternmill.service.network import IpAddress, Network, unpacked
from patternmill.service.web_reader import Access, read_page
from tests.hostile.certificates import write_certificates
from tests.unit.service.sites import (
    ALSO_PUBLIC,
    PRIVATE,
    PUBLIC,
    Start,
    access,
    answer,
    drop,
    redirect,
)
from tests.unit.service.sites import start as start

CSV = b"sku,prompt,category\nA-1,blue herons,Cushion\n"


def read(address: str, how: Access | None = None, **limits: object) -> bytes:
    reading = Reading("spring.csv", **limits)  # type: ignore[arg-type]
    return read_page(address, reading, how or access()).content


def refused(address: str, how: Access | None = None, **limits: object) -> InputRefused:
    with pytest.raises(InputRefused) as error:
        read(address, how, **limits)
    return error.value


def test_redirect_is_followed_to_another_host(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """And no address is logged."""
    caplog.set_level("INFO")
    first, other = start(PUBLIC), start(ALSO_PUBLIC)
    first.answers("/export?format=csv&gid=0", redirect(f"{other.url}/file%20a?token=b%2Bc"))
    other.answers("/file%20a?token=b%2Bc", answer(200, CSV))
    assert read(f"{first.url}/export?format=csv&gid=0#top") == CSV
    assert other.sent("Host") == [f"{ALSO_PUBLIC}:{other.port}"]
    assert "token" not in caplog.text


def test_five_redirects_are_followed_and_no_more(start: Start) -> None:
    """Of any kind, and relative to where they are."""
    first = start()
    for number, status in enumerate((301, 302, 303, 307, 308)):
        first.answers(f"/{number}/a", redirect(f"../{number + 1}/a", status))
    first.answers("/5/a", answer(200, CSV))
    assert read(f"{first.url}/0/a") == CSV
    first.answers("/5/a", redirect("/6/a"))
    first.seen.clear()
    assert "redirects more than 5 times" in refused(f"{first.url}/0/a").message
    assert first.paths == [f"/{number}/a" for number in range(6)]


@pytest.mark.parametrize(
    "target", [None, "ftp://h/a.csv", "file:///etc/passwd", "javascript:x", "http://a:port/", "//"]
)
def test_redirect_to_what_is_no_web_address_is_refused(target: str | None, start: Start) -> None:
    first = start()
    first.answers("/spring.csv", answer(302) if target is None else redirect(target))
    assert refused(f"{first.url}/spring.csv").code == "file_unreadable"


def test_redirect_leads_from_http_to_https_and_never_back(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = write_certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    plain, safe = start(), start(certificate=certificates.service)
    plain.answers("/spring.csv", redirect(f"{safe.url}/spring.csv"))
    safe.answers("/spring.csv", answer(200, CSV))
    assert read(f"{plain.url}/spring.csv") == CSV
    plain.answers("/spring.csv", answer(200, CSV))
    safe.answers("/spring.csv", redirect(f"{plain.url}/spring.csv"))
    plain.seen.clear()
    assert "from https to http" in refused(f"{safe.url}/spring.csv").message
    assert plain.seen == []


@pytest.mark.parametrize("secret", ["user", "bearer"])
def test_credentials_go_to_the_first_origin_alone(secret: str, start: Start) -> None:
    """Not to another port of the host, not to the user that a redirect names, and not again on the way back."""
    first, other = start(), start()
    first.answers("/a", redirect("/b"))
    first.answers("/b", redirect(f"{other.url.replace('//', '//eve:hers@')}/c"))
    other.answers("/c", redirect(f"{first.url}/d"))
    first.answers("/d", answer(200, CSV))
    if secret == "user":
        address, how, sent = f"{first.url.replace('//', '//ann:p%40w@')}/a", access(), "Basic YW5uOnBAdw=="
    else:
        address, how, sent = f"{first.url}/a", access(bearer=SecretStr("hush")), "Bearer hush"
    assert read(address, how) == CSV
    assert first.sent("Authorization") == [sent, sent, None]
    assert other.sent("Authorization") == [None]
    assert not any(
        "ann" in header for _, headers in first.seen for header in headers.values() if header != sent
    )


LEADS_HOME = {
    "its address": "http://127.0.0.1:{port}/secret",
    "its name": "http://inside.example:{port}/secret",
    "one of its two addresses": "http://both.example:{port}/secret",
}
NAMES = {
    "public.example": [PUBLIC],
    "inside.example": [PRIVATE],
    "both.example": [PUBLIC, PRIVATE],
    "intranet.example": [PRIVATE],
}


@pytest.mark.parametrize("target", LEADS_HOME)
def test_public_host_does_not_lead_to_one_that_is_not(target: str, start: Start) -> None:
    """The host inside is not asked, and what is said names no more of the address than its host."""
    first, inside = start(PUBLIC), start(PRIVATE)
    inside.answers("/secret", answer(200, CSV))
    first.answers("/spring.csv", redirect(LEADS_HOME[target].format(port=inside.port) + "?canary"))
    error = refused(first.at("public.example"), access(NAMES))
    assert "not a host of the public internet" in error.message and "canary" not in str(error)
    assert inside.seen == []


def test_public_host_on_the_way_counts(start: Start) -> None:
    """From inside to the internet and back inside."""
    first, public = start(PRIVATE), start(PUBLIC)
    first.answers("/spring.csv", redirect(f"{public.url}/spring.csv"))
    public.answers("/spring.csv", redirect(f"{first.url}/secret"))
    assert "not a host of the public" in refused(f"{first.url}/spring.csv").message
    assert first.paths == ["/spring.csv"]


def test_host_inside_may_lead_to_another_one_inside(start: Start) -> None:
    first, other = start(PRIVATE), start(PRIVATE)
    first.answers("/spring.csv", redirect(other.at("intranet.example")))
    other.answers("/spring.csv", answer(200, CSV))
    assert read(f"{first.url}/spring.csv", access(NAMES)) == CSV


def test_address_that_was_looked_at_is_the_one_that_is_asked(start: Start) -> None:
    """A name whose next look-up leads inside: it is looked up once for a request."""
    first, other = start(PUBLIC), start(ALSO_PUBLIC)
    inside = start(PRIVATE, port=other.port)
    first.answers("/spring.csv", redirect(other.at("moving.example")))
    for one in (inside, other):
        one.answers("/spring.csv", answer(200, CSV))
    looks = []

    def resolve(host: str, port: int) -> list[IpAddress]:
        looks.append(host)
        if host != "moving.example":
            return [ip_address(host)]
        return [ip_address(ALSO_PUBLIC if looks.count(host) == 1 else PRIVATE)]

    how = Access(network=Network(resolve, lambda address: str(address) != PRIVATE))
    assert read(f"{first.url}/spring.csv", how) == CSV
    assert (len(other.seen), inside.seen, looks.count("moving.example")) == (1, [], 1)


def test_certificate_has_to_be_of_the_name_not_of_the_address(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = write_certificates(tmp_path, host="public.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    safe = start(PUBLIC, certificate=certificates.service)
    safe.answers("/spring.csv", answer(200, CSV))
    names = {"public.example": [PUBLIC], "other.example": [PUBLIC]}
    assert read(safe.at("public.example"), access(names)) == CSV
    assert safe.sent("Host") == [f"public.example:{safe.port}"]
    assert "certificate" in refused(safe.at("other.example"), access(names)).message
    assert len(safe.seen) == 1


def test_next_address_of_a_host_is_tried_where_one_does_not_answer(start: Start) -> None:
    here = start(PUBLIC)
    here.answers("/spring.csv", answer(200, CSV))
    assert read(here.at("two.example"), access({"two.example": [ALSO_PUBLIC, PUBLIC]})) == CSV


@pytest.mark.parametrize("host", [PRIVATE, "inside.example", "both.example", "8%2e8.8.8"])
def test_host_has_to_be_public_where_only_these_are_read(host: str, start: Start) -> None:
    inside = start(PRIVATE)
    refused(f"http://{host}:{inside.port}/a.png", access(NAMES, public_only=True))
    assert inside.seen == []
    inside.answers("/a.png", answer(200, b"x"))
    assert read(f"{inside.url}/a.png", access(public_only=True, own_host=PRIVATE)) == b"x"


def test_redirect_is_not_followed_where_none_may_be(start: Start) -> None:
    """As for references and pictures."""
    first, other = start(PUBLIC), start(ALSO_PUBLIC)
    first.answers("/a.png", redirect(f"{other.url}/a.png?canary"))
    error = refused(f"{first.url}/a.png", access(redirects=0))
    assert "redirects to another address, which is not followed" in error.message
    assert "canary" not in str(error) and other.seen == []


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize("body", [packed(CSV), packed(CSV[:20]) + packed(CSV[20:])])
def test_packed_answer_is_unpacked(body: bytes, start: Start) -> None:
    """Some places pack what they have, although it was asked for plain."""
    first = start()
    first.answers("/spring.csv", answer(200, body, Content_Encoding="GZip"))
    assert read(f"{first.url}/spring.csv") == CSV
    assert first.sent("Accept-Encoding") == ["identity"]


@pytest.mark.parametrize(
    ("packing", "body", "code"),
    [
        ("gzip", packed(CSV * 99)[:-9], "file_unreadable"),
        ("gzip", CSV, "file_unreadable"),
        ("br", CSV, "file_unreadable"),
        ("gzip, gzip", packed(packed(CSV)), "file_unreadable"),
        ("gzip", packed(bytes(50_001)), "file_too_large"),
    ],
)
def test_answer_that_cannot_be_unpacked_is_refused(
    packing: str, body: bytes, code: str, start: Start
) -> None:
    first = start()
    first.answers("/spring.csv", answer(200, body, Content_Encoding=packing))
    assert refused(f"{first.url}/spring.csv", size=50_000).code == code


def test_small_archive_does_not_become_a_large_answer() -> None:
    """300 kB hold 300 MB: they are unpacked up to the limit, and no further."""
    packer = zlib.compressobj(wbits=31)
    body = b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()
    tracemalloc.start()
    try:
        assert len(unpacked(body, "gzip", 2 << 20)) == (2 << 20) + 1
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_what_arrives_has_limits_too(start: Start) -> None:
    """By the length that is announced, and by what comes without one."""
    first = start()
    first.answers("/spring.csv", answer(200, b"", Content_Length="50001"))
    assert refused(f"{first.url}/spring.csv", size=50_000).code == "file_too_large"

    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for _ in range(500):
            request.wfile.write(b"x" * 10_000)
            time.sleep(0.01)

    first.answers("/spring.csv", endless)
    assert refused(f"{first.url}/spring.csv", size=50_000).code == "file_too_large"
    assert refused(f"{first.url}/spring.csv", time=timedelta(seconds=0.3)).code == "file_too_slow"


@pytest.mark.parametrize("trouble", [answer(503), drop], ids=["503", "dropped"])
def test_trouble_that_may_pass_is_asked_again_once(trouble: object, start: Start) -> None:
    first = start()
    first.answers("/spring.csv", trouble, answer(200, CSV))  # type: ignore[arg-type]
    assert read(f"{first.url}/spring.csv") == CSV
    first.answers("/spring.csv", trouble)  # type: ignore[arg-type]
    first.seen.clear()
    assert refused(f"{first.url}/spring.csv").code == "file_unreadable"
    assert len(first.seen) == 2


def test_redirect_is_asked_for_anew_after_trouble(start: Start) -> None:
    """The place that it leads to may live for minutes, or for one request."""
    first = start()
    first.answers("/spring.csv", redirect("/1"), redirect("/2"))
    first.answers("/1", drop)
    first.answers("/2", answer(200, CSV))
    assert read(f"{first.url}/spring.csv") == CSV


@pytest.mark.parametrize(
    ("status", "user", "code", "text"),
    [
        (401, "", "file_unreadable", "answers 401: it is not open to everybody"),
        (403, "ann:pw@", "file_unreadable", "the user, password or bearer that was sent does not open it"),
        (410, "", "file_missing", "Nothing was found"),
        (206, "", "file_unreadable", "it answers 206"),
        (304, "", "file_unreadable", "it answers 304"),
        (502, "", "file_unreadable", "it answers 502"),
    ],
)
def test_answer_is_named_as_what_it_is(status: int, user: str, code: str, text: str, start: Start) -> None:
    first = start()
    first.answers("/spring.csv", answer(status, b"" if status == 304 else b"canary"))
    error = refused(f"{first.url.replace('//', f'//{user}')}/spring.csv")
    assert error.code == code and text in error.message
    assert error.remedy and "canary" not in str(error)
    assert len(first.seen) == (2 if status >= 500 else 1)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("http://ann:canary@127.0.0.1:port/x.csv", "it is no address"),
        ("http://ann:canary@/x.csv", "names no host"),
        ("http://a\u0000b/x", "it is no address"),
        ("http://ann:canary@nowhere.example/x?canary", "the name of its host was not found"),
        (f"http://ann:canary@{'x' * 70}.example/x", ""),
        ("http://ann:canary@127.0.0.1:9/x", "Connection refused"),
    ],
)
def test_address_that_cannot_be_asked_is_refused_without_its_secrets(address: str, text: str) -> None:
    error = refused(address)
    assert text in error.message and "canary" not in str(error)
    assert error.__suppress_context__ or error.__context__ is None


def test_proxy_of_the_environment_is_used(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the hosts that only it finds too; not for those of NO_PROXY, and not for this machine."""
    proxy, direct = start(PRIVATE), start(PUBLIC)
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("NO_PROXY", "direct.example")
    proxy.answers("http://far.example/spring.csv", answer(200, CSV))
    direct.answers("/spring.csv", answer(200, CSV))
    names = {"direct.example": [PUBLIC]}
    assert read("http://far.example/spring.csv", access(names)) == CSV
    assert read(direct.at("direct.example"), access(names)) == CSV
    assert read(f"{direct.url}/spring.csv", access(names)) == CSV
    assert proxy.paths == ["http://far.example/spring.csv"]
    assert proxy.sent("Host") == ["far.example"]


def test_certificate_is_verified_through_a_proxy_too(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = write_certificates(tmp_path, host="public.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    proxy, safe = start(PRIVATE), start(PUBLIC, certificate=certificates.service)
    safe.answers("/spring.csv", answer(200, CSV))
    proxy.tunnels = {"public.example": PUBLIC, "other.example": PUBLIC}
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    assert read(safe.at("public.example")) == CSV
    assert "certificate" in refused(safe.at("other.example")).message
    assert proxy.paths == [f"public.example:{safe.port}", *[f"other.example:{safe.port}"] * 2]
    assert "proxy" in refused(safe.at("third.example")).message


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "nonsense://x", "http://x:port"])
def test_proxy_that_does_not_work_is_named(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    assert refused("http://far.example/spring.csv").code == "file_unreadable"
    if proxy != "http://127.0.0.1:9":
        assert "the proxy of the environment" in refused("http://far.example/spring.csv").message


def test_proxy_is_not_led_inside(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor asked for a host that has to be public, and that nobody here can look up."""
    proxy = start(PRIVATE)
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    proxy.answers("http://far.example/spring.csv", redirect("http://169.254.169.254/latest/meta-data"))
    assert "not a host of the public" in refused("http://far.example/spring.csv").message
    assert "not found" in refused("http://far.example/a.png", access(public_only=True)).message
    assert proxy.paths == ["http://far.example/spring.csv"]
