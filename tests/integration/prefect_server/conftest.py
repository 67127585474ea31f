"""A home with a migrated Prefect database, and scripts run as processes against it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from prefect_host import shared_process
from tests.acceptance.prefect_servers import lay_database, migrated_database

ROOT = Path(__file__).resolve().parents[3]


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
