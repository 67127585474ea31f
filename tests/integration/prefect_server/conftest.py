"""A home with a migrated Prefect database, processes that join its server, and a server that only looks like one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import prefect
import pytest

from prefect_host import shared_process
from tests.acceptance.prefect_servers import lay_database, migrated_database

ROOT = Path(__file__).resolve().parents[3]
#: Any page of the UI.
PAGE = "<!doctype html>"
JOIN = """
    import sys
    from pathlib import Path
    from prefect_host.connection import PrefectConnection
    with PrefectConnection(Path(sys.argv[1]), print) as connection:
        print(connection.wait())
"""


class StandIn(ThreadingHTTPServer):
    """Answers by path as a healthy server does, and with a page of the UI where it has no answer."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.answers: dict[str, tuple[int, Any]] = {
            "/api/health": (200, True),
            "/api/hello": (200, "hello"),
            "/api/admin/version": (200, prefect.__version__),
        }


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, StandIn)
        status, body = self.server.answers.get(self.path, (200, PAGE))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode() if body is PAGE else json.dumps(body).encode())

    def log_message(self, format: str, *arguments: Any) -> None: ...


@pytest.fixture
def stand_in() -> Iterator[Callable[[int], StandIn]]:
    """Serve a stand-in on a port until the end of the test; 0: on a free one."""
    with ExitStack() as stack:

        def serve(port: int = 0) -> StandIn:
            server = stack.enter_context(StandIn(port))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            return server

        yield serve


@pytest.fixture
def own_home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home for one test alone."""
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), tmp_path)
    return tmp_path


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a Python script in a process of its own, with the checkout importable."""

    def start(text: str, *arguments: str) -> subprocess.Popen[str]:
        path = tmp_path / "script_under_test.py"
        path.write_text(textwrap.dedent(text))
        return shared_process.start_process(
            [sys.executable, str(path), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def joined(script: Callable[..., subprocess.Popen[str]]) -> Callable[[Path], tuple[str, str]]:
    """Run a command that connects to the server of a home: returns whether that answers, and the errors."""
    return lambda home: script(JOIN, str(home)).communicate(timeout=60)
