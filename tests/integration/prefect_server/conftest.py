"""One home with a migrated Prefect database for all tests here, and scripts run as processes against it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prefect_host.own_server import OwnServer

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty Prefect database; making one takes most of a server's first start."""
    home = tmp_path_factory.mktemp("template")
    with OwnServer(home):
        pass
    return home / "prefect" / "prefect.db"


def home_with(database: Path, home: Path) -> Path:
    (home / "prefect").mkdir()
    # With its write-ahead log, in which the server leaves the latest pages as it ends.
    for part in database.parent.glob(f"{database.name}*"):
        shutil.copy(part, home / "prefect")
    return home


@pytest.fixture
def own_home(migrated_database: Path, tmp_path: Path) -> Path:
    """A home for one test alone."""
    return home_with(migrated_database, tmp_path)


@pytest.fixture(scope="session")
def home(migrated_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home that the tests with the shared server have in common."""
    return home_with(migrated_database, tmp_path_factory.mktemp("home"))


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
        return subprocess.Popen(
            [sys.executable, str(path), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start
