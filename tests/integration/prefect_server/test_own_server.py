"""The Prefect server of our own: shared, private, and never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from patternmill.errors import PatternmillError
from prefect_host.client_settings import kept_in, server_answers
from prefect_host.own_server import LOGIN_PATH, OwnServer
from tests.acceptance.prefect_servers import eventually


def test_ui_asks_this_very_server(joint_server: OwnServer) -> None:
    with urllib.request.urlopen(f"{joint_server.ui_url}/ui-settings", timeout=10) as answer:
        assert json.loads(answer.read())["api_url"] == joint_server.api_url


def test_joiner_takes_nobody_else_for_the_server(own_home: Path, stand_in: Callable[[int], object]) -> None:
    """Who starts it has ended, and it was killed: what then answers on its port is not sent the credential."""
    starter, joiner = OwnServer(own_home).start(), OwnServer(own_home).start()
    child = starter.child
    assert child is not None
    starter.wait_ready()
    assert joiner.is_ready()
    starter.stop()
    os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: not joiner.is_alive(), 30)
    stand_in(urlsplit(joiner.api_url).port or 0)
    assert server_answers(joiner.api_url)
    assert not joiner.is_ready()
    joiner.stop()


def test_named_port_that_is_taken_is_refused(joint_server: OwnServer, own_home: Path) -> None:
    """It is refused whoever has taken it. If no port is named, another one is used."""
    port = urlsplit(joint_server.api_url).port or 0
    with pytest.raises(PatternmillError, match=f"Port {port} .*in use"):
        OwnServer(own_home, port=port).start()


def test_pages_are_served_under_its_own_address_alone(joint_server: OwnServer) -> None:
    """DNS rebinding: a page of another name gets nothing."""
    for path in ("/", LOGIN_PATH, "/api/health", "/ui-settings", "/api/admin/version"):
        rebound = urllib.request.Request(f"{joint_server.ui_url}{path}", headers={"Host": "rebound.example"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(rebound, timeout=10)
        with refused.value as answer:
            assert (answer.code, answer.read()) == (400, b"Invalid host header"), path


def test_server_that_cannot_start_reports_its_log(tmp_path: Path) -> None:
    """A server that ends as it starts becomes an error with the end of its log and a remedy."""
    (tmp_path / "prefect" / "prefect.db").mkdir(parents=True)
    with pytest.raises(PatternmillError, match="unable to open database file") as caught, OwnServer(tmp_path):
        pass
    assert "server.log" in caught.value.remedy
    assert "PREFECT_API_URL" in caught.value.remedy


def test_password_of_another_server_comes_from_the_environment(
    joint_server: OwnServer,
    tmp_path: Path,
    joined: Callable[[Path], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server of PREFECT_API_URL that wants a password: without it, the command is refused."""
    monkeypatch.setenv("PREFECT_API_URL", joint_server.api_url)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    out, errors = joined(tmp_path / "home")
    assert "asks for a password: set PREFECT_API_AUTH_STRING" in errors, out
    assert "ConfigurationError" in errors
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", joint_server.credential)
    out, errors = joined(tmp_path / "home")
    assert out == "True\n", errors


@pytest.mark.soak
def test_files_of_the_home_do_not_configure_prefect(tmp_path: Path) -> None:
    """A logging configuration names what is called: neither a profile of the home brings one nor its own place."""
    ran, directory = tmp_path / "ran", tmp_path / "prefect"
    directory.mkdir()
    logging = directory / "logging.yml"
    logging.write_text(f"{{version: 1, formatters: {{x: {{(): os.mkdir, path: {ran}}}}}}}")
    (directory / "profiles.toml").write_text(
        f'active = "ephemeral"\n[profiles.ephemeral]\nPREFECT_LOGGING_CONFIG_PATH = "{logging}"\n'
    )
    ours = [sys.executable, "-P", "-c", "import prefect; prefect.flow(print)"]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PREFECT_")}
    unguarded = {**environment, "PREFECT_HOME": str(directory)}
    subprocess.run(ours, cwd=tmp_path, env=unguarded, capture_output=True, check=False)
    assert ran.exists(), "the attack works where nothing is done against it"
    ran.rmdir()
    subprocess.run(
        ours, cwd=tmp_path, env={**environment, **kept_in(directory)}, capture_output=True, check=True
    )
    assert not ran.exists()
