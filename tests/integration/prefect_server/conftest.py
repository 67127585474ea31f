"""One home with a migrated Prefect database for all tests here, and scripts run as processes against it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prefect_host import shared_process
from prefect_host.own_server import OwnServer
from tests.acceptance.prefect_servers import lay_database, migrated_database

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return migrated_database(tmp_path_factory.getbasetemp())


@pytest.fixture
def own_home(template: Path, tmp_path: Path) -> Path:
    """A home for one test alone."""
    lay_database(template, tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def home(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home that the tests with the shared server have in common."""
    home = tmp_path_factory.mktemp("home")
    lay_database(template, home)
    return home


@pytest.fixture(scope="session")
def server(home: Path) -> Iterator[OwnServer]:
    with OwnServer(home) as running:
        yield running


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
