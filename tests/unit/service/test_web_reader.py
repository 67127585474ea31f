"""Addresses are read by httpx: redirects, hosts that are not public, what is packed, and what passes."""

from __future__ import annotations

import gzip
import zlib
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from threading import Event

import pytest
from pydantic import SecretStr

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.reading import Reading
from patternmill.service.client import StudioClient
from patternmill.service.network import IpAddress, Network, unpacked
from patternmill.service.web_reader import Access, read_page
from tests.hostile.certificates import write_certificates
from tests.unit.service.sites import ALSO_PUBLIC, PRIVATE, PUBLIC, Start, access, answer, drop, redirect
from tests.unit.service.sites import start as start

CSV = b"sku,prompt,category\nA-1,blue herons,Cushion\n"
NAMES = {
    "public.example": [PUBLIC],
    "other.example": [PUBLIC],
    "inside.example": [PRIVATE],
    "both.example": [PUBLIC, PRIVATE],
    "two.example": [ALSO_PUBLIC, PUBLIC],
}


def read(address: str, how: Access | None = None, **limits: object) -> bytes:
    reading = Reading("spring.csv", **limits)  # type: ignore[arg-type]
    return read_page(address, reading, how or access(NAMES)).content


def refused(address: str, how: Access | None = None, **limits: object) -> InputRefused:
    with pytest.raises(InputRefused) as error:
        read(address, how, **limits)
    assert "canary" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None
    return error.value


def test_five_redirects_are_followed_and_no_more(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """They may be of any kind, relative, and to another host; no address is logged."""
    caplog.set_level("INFO")
    first, other = start(PUBLIC), start(ALSO_PUBLIC)
    for number, status in enumerate((301, 302, 303, 307)):
        first.answers(f"/{number}/a", redirect(f"../{number + 1}/a", status))
    first.answers("/4/a", redirect(f"{other.url}/file%20a?token=b%2Bc", 308))
    other.answers("/file%20a?token=b%2Bc", answer(200, CSV))
    assert read(f"{first.url}/0/a#top") == CSV
    assert other.sent("Host") == [f"{ALSO_PUBLIC}:{other.port}"]
    assert "token" not in caplog.text
    other.answers("/file%20a?token=b%2Bc", redirect("/canary"))
    assert "redirects more than 5 times" in refused(f"{first.url}/0/a").message
    assert len(first.seen) == 10 and len(other.seen) == 2
    assert "redirects to another address" in refused(f"{first.url}/4/a", access(redirects=0)).message
    assert len(other.seen) == 2


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
    safe.answers("/spring.csv", answer(200, CSV), redirect(f"{plain.url}/spring.csv"))
    assert read(f"{plain.url}/spring.csv") == CSV
    plain.seen.clear()
    assert "from https to http" in refused(f"{safe.url}/spring.csv").message
    assert plain.seen == []


@pytest.mark.parametrize(
    ("user", "bearer", "sent"),
    [("ann:p%40w@", None, "Basic YW5uOnBAdw=="), ("", SecretStr("hush"), "Bearer hush")],
)
def test_credentials_go_to_the_first_origin_alone(
    user: str, bearer: SecretStr | None, sent: str, start: Start
) -> None:
    """They do not go to another port of the host, nor to the user that a redirect names, nor again on the way back."""
    first, other = start(), start()
    first.answers("/a", redirect("/b"))
    first.answers("/b", redirect(f"{other.url.replace('//', '//eve:hers@')}/c"))
    other.answers("/c", redirect(f"{first.url}/d"))
    first.answers("/d", answer(200, CSV))
    assert read(f"{first.url.replace('//', f'//{user}')}/a", access(bearer=bearer)) == CSV
    assert first.sent("Authorization") == [sent, sent, None]
    assert other.sent("Authorization") == [None]
    headers = [header for _, headers in first.seen for header in headers.values()]
    assert not any("ann" in header for header in headers if header != sent)


@pytest.mark.parametrize("host", ["127.0.0.1", "inside.example", "both.example"])
def test_public_host_does_not_lead_to_one_that_is_not(host: str, start: Start) -> None:
    """The host inside is not asked, and what is said names no more of the address than its host."""
    first, inside = start(PUBLIC), start(PRIVATE)
    first.answers("/spring.csv", redirect(f"http://{host}:{inside.port}/secret?canary"))
    assert "not a host of the public internet" in refused(first.at("public.example")).message
    assert inside.seen == []


def test_host_inside_leads_inside_until_a_public_one_is_on_the_way(start: Start) -> None:
    first, inside, public = start(PRIVATE), start(PRIVATE), start(PUBLIC)
    first.answers("/spring.csv", redirect(inside.at("inside.example")))
    inside.answers("/spring.csv", answer(200, CSV), redirect(f"{public.url}/spring.csv"))
    public.answers("/spring.csv", redirect(f"{first.url}/secret"))
    assert read(f"{first.url}/spring.csv") == CSV
    assert "not a host of the public" in refused(f"{first.url}/spring.csv").message
    assert first.paths == ["/spring.csv"] * 2


def test_address_that_was_looked_at_is_the_one_that_is_asked(start: Start) -> None:
    """A name whose next look-up leads inside: it is looked up once for a request."""
    first, inside = start(PUBLIC), start(PRIVATE)
    # Of the two addresses this is the one on which no other test of the machine has a port.
    other = start(ALSO_PUBLIC, port=inside.port)
    first.answers("/spring.csv", redirect(other.at("moving.example")))
    for served in (inside, other):
        served.answers("/spring.csv", answer(200, CSV))
    looks = []

    def resolve(host: str, port: int) -> list[IpAddress]:
        looks.append(host)
        if host != "moving.example":
            return [ip_address(host)]
        return [ip_address(ALSO_PUBLIC if looks.count(host) == 1 else PRIVATE)]

    how = Access(network=Network(resolve, lambda address: str(address) != PRIVATE))
    assert read(f"{first.url}/spring.csv", how) == CSV
    assert (len(other.seen), inside.seen, looks.count("moving.example")) == (1, [], 1)


@pytest.mark.parametrize("has_proxy", [False, True])
def test_certificate_has_to_be_of_the_name_not_of_the_address(
    has_proxy: bool, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = write_certificates(tmp_path, host="public.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    proxy, safe = start(PRIVATE), start(PUBLIC, certificate=certificates.service)
    proxy.tunnels = {"public.example": PUBLIC, "other.example": PUBLIC}
    if has_proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    safe.answers("/spring.csv", answer(200, CSV))
    assert read(safe.at("public.example")) == CSV
    assert safe.sent("Host") == [f"public.example:{safe.port}"]
    assert "certificate" in refused(safe.at("other.example")).message
    assert len(safe.seen) == 1 and len(proxy.seen) == (3 if has_proxy else 0)


def test_next_address_of_a_host_is_tried_where_one_does_not_answer(start: Start) -> None:
    here = start(PUBLIC)
    here.answers("/spring.csv", answer(200, CSV))
    assert read(here.at("two.example")) == CSV


@pytest.mark.parametrize("host", [PRIVATE, "inside.example", "both.example", "8%2e8.8.8"])
def test_host_has_to_be_public_where_only_these_are_read(host: str, start: Start) -> None:
    inside = start(PRIVATE)
    refused(f"http://{host}:{inside.port}/a.png", access(NAMES, public_only=True))
    assert inside.seen == []
    inside.answers("/a.png", answer(200, b"x"))
    assert read(f"{inside.url}/a.png", access(public_only=True, own_host=PRIVATE)) == b"x"


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize(
    ("packing", "body", "code"),
    [
        ("GZip", packed(CSV), ""),
        ("gzip", packed(CSV[:20]) + packed(CSV[20:]), ""),
        ("gzip", packed(CSV * 99)[:-9], "file_unreadable"),
        ("gzip", CSV, "file_unreadable"),
        ("br", CSV, "file_unreadable"),
        ("gzip, gzip", packed(packed(CSV)), "file_unreadable"),
        ("gzip", packed(bytes(50_001)), "file_too_large"),
    ],
)
def test_packed_answer_is_unpacked_within_the_limits(
    packing: str, body: bytes, code: str, start: Start
) -> None:
    """Some places pack what they have, although it was asked for plain."""
    first = start()
    first.answers("/spring.csv", answer(200, body, Content_Encoding=packing))
    address = f"{first.url}/spring.csv"
    assert refused(address, size=50_000).code == code if code else read(address) == CSV
    assert first.sent("Accept-Encoding") == ["identity"]


def test_small_archive_does_not_become_a_large_answer() -> None:
    """100 kB hold 100 MB: they are unpacked up to the limit, and no further."""
    packer = zlib.compressobj(wbits=31)
    body = b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()
    assert len(unpacked(body, "gzip", 2 << 20)) == (2 << 20) + 1


def test_what_arrives_has_limits_too(start: Start) -> None:
    """They hold for the length that is announced, for what comes without one, and for the time."""
    first, is_over = start(), Event()
    first.answers("/spring.csv", answer(200, b"", Content_Length="50001"))
    assert refused(f"{first.url}/spring.csv", size=50_000).code == "file_too_large"

    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not is_over.is_set():
            request.wfile.write(b"x" * 10_000)

    first.answers("/spring.csv", endless)
    assert refused(f"{first.url}/spring.csv", size=50_000).code == "file_too_large"
    assert refused(f"{first.url}/spring.csv", time=timedelta(0)).code == "file_too_slow"
    is_over.set()


@pytest.mark.parametrize("trouble", [answer(503), drop], ids=["503", "dropped"])
def test_trouble_that_may_pass_is_asked_again_once(trouble: object, start: Start) -> None:
    """It is asked from the beginning: the place that a redirect leads to may live for one request."""
    first = start()
    first.answers("/spring.csv", redirect("/1"), redirect("/2"))
    first.answers("/1", trouble)  # type: ignore[arg-type]
    first.answers("/2", answer(200, CSV), trouble)  # type: ignore[arg-type]
    assert read(f"{first.url}/spring.csv") == CSV
    first.seen.clear()
    assert refused(f"{first.url}/spring.csv").code == "file_unreadable"
    assert first.paths == ["/spring.csv", "/2"] * 2


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
    assert error.code == code and text in error.message and error.remedy


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
    assert text in refused(address).message


def test_proxy_of_the_environment_is_used(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used for hosts that only it finds; not for those of NO_PROXY, nor this machine, nor to lead inside."""
    proxy, direct = start(PRIVATE), start(PUBLIC)
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("NO_PROXY", "public.example")
    far = "http://far.example/spring.csv"
    proxy.answers(far, answer(200, CSV), redirect("http://169.254.169.254/latest/meta-data"))
    direct.answers("/spring.csv", answer(200, CSV))
    for address in (far, direct.at("public.example"), f"{direct.url}/spring.csv"):
        assert read(address) == CSV
    assert "not a host of the public" in refused(far).message
    assert "not found" in refused("http://far.example/a.png", access(public_only=True)).message
    assert proxy.paths == [far] * 2 and proxy.sent("Host") == ["far.example"] * 2


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("HTTP_PROXY", "nonsense://canary", "The proxy of the environment"),
        ("HTTP_PROXY", "http://me:canary@x:port", "The proxy of the environment"),
        ("SSL_CERT_FILE", "nowhere.pem", "SSL_CERT_FILE .nowhere.pem.*: No such file"),
        ("SSL_CERT_FILE", __file__, "SSL_CERT_FILE .* no certificate"),
    ],
)
def test_surroundings_that_cannot_be_used_are_named(
    variable: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are named for sheets and for the service."""
    monkeypatch.setenv(variable, value)
    for connect in (read, lambda address: StudioClient(address, SecretStr("key"))):
        with pytest.raises(ConfigurationError, match=message) as error:
            connect("http://public.example/spring.csv")
        assert "canary" not in str(error.value)
