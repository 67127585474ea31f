"""A Prefect server for the deployments, and questions to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prefect_host.own_server import LEDGER_URL, OwnServer
from tests.acceptance.prefect_servers import lay_database, migrated_database, run_process
from tests.prefect_api import PrefectApi, api_of

CHECKOUT = Path(__file__).resolve().parents[3]
Ask = Callable[..., Any]


def asker(api: PrefectApi) -> Ask:
    return lambda path, body=None: api.get(path) if body is None else api.post(path, body)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), home)
    return home


@pytest.fixture(scope="session")
def server(home: Path) -> Iterator[OwnServer]:
    with OwnServer(home, settings={LEDGER_URL: f"sqlite:///{home / 'ledger.sqlite3'}"}) as running:
        yield running


@pytest.fixture(scope="session")
def environment(server: OwnServer, home: Path) -> dict[str, str]:
    """Of a client of the server."""
    ours = {
        name: text for name, text in os.environ.items() if not name.startswith(("PATTERNMILL_", "PREFECT_"))
    }
    return {**ours, **server.client_environment, "PATTERNMILL_HOME": str(home)}


@pytest.fixture(scope="session")
def ask(server: OwnServer) -> Ask:
    return asker(api_of(server))


@pytest.fixture(scope="session")
def prefect(environment: dict[str, str]) -> Callable[..., str]:
    """Prefect's command line, in the project's folder."""

    def run(*arguments: str) -> str:
        words = [sys.executable, "-m", "prefect", *arguments]
        done = run_process(words, cwd=CHECKOUT, env=environment, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
