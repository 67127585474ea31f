"""A server that PREFECT_API_URL names: one that rejects us is a refusal, one at another address is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from patternmill.errors import ConfigurationError, PatternmillError
from prefect_host import connection
from prefect_host.client_settings import api_address, server_answers
from prefect_host.own_server import OwnServer
from tests.unit.service.sites import Answer, Site, answer


@pytest.fixture
def served(stand_in: Callable[[], Site]) -> Site:
    """A server that lets everybody in."""
    return stand_in()


async def ask(server: Site, path: str = "/api", scheme: str = "http") -> None:
    url = f"{scheme}://127.0.0.1:{server.port}{path}"
    with temporary_settings({PREFECT_API_URL: url}):
        await connection.require_server(url)


@pytest.mark.parametrize(
    ("path", "page", "refusal"),
    [
        ("/api/hello", answer(401), "asks for a password: set PREFECT_API_AUTH_STRING"),
        ("/api/hello", answer(403), "asks for a password"),
        ("/api/hello", answer(409), "answers 409"),
        ("/api/admin/version", answer(body=b'"2.20.1"'), "is another version: .*2.20.1"),
    ],
)
async def test_server_that_rejects_is_a_refusal(served: Site, path: str, page: Answer, refusal: str) -> None:
    served.pages[path] = page
    with pytest.raises(ConfigurationError, match=refusal) as caught:
        await ask(served)
    assert "PREFECT_API_URL" in caught.value.remedy


async def test_server_in_trouble_is_no_refusal(served: Site) -> None:
    """The run is driven without it, once it was accepted or not."""
    await ask(served)
    served.pages["/api/hello"] = answer(500)
    with pytest.raises(PatternmillError, match="does not answer") as caught:
        await ask(served)
    assert not isinstance(caught.value, ConfigurationError)


@pytest.mark.parametrize(("path", "scheme"), [("/dashboard", "http"), ("/api", "https")])
async def test_right_address_is_named(served: Site, path: str, scheme: str) -> None:
    """A page of the UI, and https where the server speaks http."""
    with pytest.raises(ConfigurationError, match=f"PREFECT_API_URL={served.url}/api"):
        await ask(served, path, scheme)


def test_address_written_otherwise_is_used() -> None:
    for given in ("http://h:4200", "http://h:4200/", "http://h:4200/api/", " http://h:4200/api"):
        assert api_address(given) == "http://h:4200/api"
    for given in ("h:4200/api", "127.0.0.1:4200", "file:///etc"):
        with pytest.raises(ConfigurationError, match="is no address"):
            api_address(given)


def test_page_of_the_ui_is_no_api(served: Site) -> None:
    assert server_answers(f"{served.url}/api")
    for other in (f"{served.url}/dashboard", "http://127.0.0.1:9/api", "file:///etc"):
        assert not server_answers(other, timeout=1.0)


@pytest.mark.parametrize("is_configured", [False, True])
def test_proxies_are_not_asked_for_loopback(
    joint_server: OwnServer,
    is_configured: bool,
    joined: Callable[[Path], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor are those that the person excludes; the proxy here connects nobody."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    if is_configured:
        monkeypatch.setenv("PREFECT_API_URL", joint_server.api_url)
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", joint_server.credential)
    out, errors = joined(joint_server.directory.parent)
    assert out == "True\n", out + errors
