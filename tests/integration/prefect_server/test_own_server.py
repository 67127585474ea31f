"""The Prefect server of our own: shared, private, and never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from subprocess import Popen
from typing import Any
from urllib.parse import urlsplit

import pytest

from patternmill.errors import PatternmillError
from prefect_host.client_settings import kept_in, server_answers
from prefect_host.own_server import LOGIN_PATH, OwnServer, own_password
from prefect_host.shared_process import bound_socket

NAMED = """
    import sys
    from pathlib import Path
    from prefect_host.connection import PrefectConnection
    with PrefectConnection(Path(sys.argv[1]), print) as connection:
        connection.wait()
        print(connection.is_available)
"""
HOLD_FOR_EVER = """
    import sys, time
    from pathlib import Path
    from prefect_host.own_server import OwnServer
    server = OwnServer(Path(sys.argv[1]))
    server.start()
    server.wait_ready()
    print(server.api_url, flush=True)
    time.sleep(600)
"""


def eventually(what: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_ui_uses_the_port_of_this_server(server: OwnServer) -> None:
    """The UI passes the browser the address of this very server, not the default one."""
    with urllib.request.urlopen(f"{server.ui_url}/ui-settings", timeout=10) as answer:
        assert json.loads(answer.read())["api_url"] == server.api_url


def test_second_user_joins_the_running_server(server: OwnServer) -> None:
    """A second use of the same home starts nothing, and its end leaves the server running."""
    with OwnServer(server.directory.parent) as joined:
        assert (joined.api_url, joined.child) == (server.api_url, None)
    assert server_answers(server.api_url)


def test_frozen_server_is_killed(own_home: Path) -> None:
    """It would not end by itself; all it has acknowledged is in its database."""
    with OwnServer(own_home) as server:
        child = server.child
        assert child is not None
        child.send_signal(signal.SIGSTOP)
        began = time.monotonic()
    assert time.monotonic() - began < 60
    assert child.poll() is not None


def test_port_of_a_server_killed_in_use_stays_taken(own_home: Path) -> None:
    """Nobody else gets what its users still send there, until they have left; the next server is another."""
    with OwnServer(own_home) as server:
        child = server.child
        assert child is not None
        child.kill()
        child.wait()
        with pytest.raises(PatternmillError, match="in use"):
            bound_socket(urlsplit(server.api_url).port or 0)
        assert not server_answers(server.api_url, timeout=0.5)
    with OwnServer(own_home) as again:
        assert again.api_url == server.api_url and again.child is not None


def test_joiner_takes_nobody_else_for_the_server(own_home: Path) -> None:
    """Who starts it has ended, and it was killed: what then answers on its port is not sent the credential."""
    starter, joiner = OwnServer(own_home).start(), OwnServer(own_home).start()
    child = starter.child
    assert child is not None
    starter.wait_ready()
    assert joiner.is_ready()
    starter.stop()
    os.kill(child.pid, signal.SIGKILL)
    assert eventually(lambda: not joiner.is_alive())
    port = urlsplit(joiner.api_url).port or 0
    with impostor(port):
        assert server_answers(joiner.api_url)
        assert not joiner.is_ready()
    joiner.stop()


@contextmanager
def impostor(port: int) -> Iterator[None]:
    """Answers on a port as if it were healthy."""

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, format: str, *arguments: Any) -> None: ...

    with HTTPServer(("127.0.0.1", port), Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


@pytest.mark.usefixtures("unforked")
def test_killed_user_leaves_no_server_behind(own_home: Path, script: Callable[..., Popen[str]]) -> None:
    """After SIGKILL of its only user the server ends by itself; the next one has another port and credential."""
    user = script(HOLD_FOR_EVER, str(own_home))
    assert user.stdout is not None
    api_url = user.stdout.readline().strip()
    assert server_answers(api_url)
    earlier = own_password(own_home)
    user.kill()
    user.communicate()
    assert eventually(lambda: not server_answers(api_url, timeout=1.0))
    with OwnServer(own_home) as again:
        assert again.api_url != api_url and again.child is not None
        assert own_password(own_home) != earlier


def test_named_port_that_is_taken_is_refused(server: OwnServer, own_home: Path) -> None:
    """By anybody. Without a name another port is taken."""
    port = urlsplit(server.api_url).port or 0
    with pytest.raises(PatternmillError, match=f"Port {port} .*in use"):
        OwnServer(own_home, port=port).start()


def test_pages_are_served_under_its_own_address_alone(server: OwnServer) -> None:
    """DNS rebinding: a page of another name gets nothing."""
    for path in ("/", LOGIN_PATH, "/api/health", "/ui-settings", "/api/admin/version"):
        rebound = urllib.request.Request(f"{server.ui_url}{path}", headers={"Host": "rebound.example"})
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
    server: OwnServer, tmp_path: Path, script: Callable[..., Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of PREFECT_API_URL that wants a password: without it, the command is refused."""
    monkeypatch.setenv("PREFECT_API_URL", server.api_url)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    out, errors = script(NAMED, str(tmp_path / "home")).communicate(timeout=60)
    assert "asks for a password: set PREFECT_API_AUTH_STRING" in errors, out
    assert "ConfigurationError" in errors
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", own_password(server.directory.parent))
    out, errors = script(NAMED, str(tmp_path / "home")).communicate(timeout=60)
    assert out == "True\n", errors


def test_unreachable_or_invalid_address_is_no_server() -> None:
    """A refused connection and an address that is none are both answered with no."""
    assert not server_answers("http://127.0.0.1:9/api", timeout=1.0)
    assert not server_answers("file:///etc")


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
