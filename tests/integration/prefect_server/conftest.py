"""A home with a migrated Prefect database, processes that join its server, and a server that only looks like one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import prefect
import pytest

from prefect_host import shared_process
from tests.acceptance.prefect_servers import lay_database, migrated_database
from tests.unit.service.sites import Site, answer, site

ROOT = Path(__file__).resolve().parents[3]
JOIN = """
    import sys
    from pathlib import Path
    from prefect_host.connection import PrefectConnection
    with PrefectConnection(Path(sys.argv[1]), print) as connection:
        print(connection.wait())
"""


@pytest.fixture
def stand_in() -> Iterator[Callable[..., Site]]:
    """Serve on a port until the end of the test, 0 a free one, as a server that lets everybody in."""
    with ExitStack() as stack:

        def serve(port: int = 0) -> Site:
            server = stack.enter_context(site(port=port))
            for path, shown in (("health", True), ("hello", "hello"), ("admin/version", prefect.__version__)):
                server.pages[f"/api/{path}"] = answer(body=json.dumps(shown).encode())
                server.pages[f"/dashboard/{path}"] = answer(body=b"<!doctype html>")
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
