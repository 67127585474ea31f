"""An empty ledger, a real Prefect server for the session, and deployments of flows that need no service."""

import asyncio
import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.server import Server, prefect_server
from patternmill.ledger.database import Database

_FLOW = """
from played import played
from prefect import flow

@flow(name="{name}", retries=0, persist_result=False)
async def {function}(file: str, catalog: str = "spring", environment: str | None = None):
    return await played(file, catalog, environment)
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a Prefect server: it takes seconds, and Prefect leaves sockets open."""
    for item in items:
        if {"server", "project"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty ledger in SQLite."""
    database = Database(str(tmp_path / "ledger.sqlite3"))
    yield database
    database.disconnect()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real Prefect server, which Prefect in this process uses."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.delenv("PREFECT_API_URL", raising=False)
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("no-profile")))
        using = prefect_server(tmp_path_factory.mktemp("home"), said.append)
        server = runner.run(using.__aenter__())
        assert server.answers, said
        yield server
        runner.run(using.__aexit__(None, None, None))
    gc.collect()  # sockets that Prefect's client and worker leave open: here, where the warning is expected


@pytest.fixture(autouse=True)
def _of_this_server(request: pytest.FixtureRequest) -> None:
    """Have Prefect read its settings anew: a test before may have left it with another server's address."""
    if "server" in request.fixturenames:
        from prefect.context import refresh_global_settings_context

        request.getfixturevalue("server")
        refresh_global_settings_context()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the deployments of prefect.yaml, whose flows do what their file says: see tests/played.py."""
    from tasks import deployments

    root, here = tmp_path / "project", Path(__file__).parent
    for name in ("bulk-import", "catalog-refresh", "retry-failed", "remake-patterns"):
        function = name.replace("-", "_")
        path = root / "flows" / f"{function}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_FLOW.format(name=name, function=function))
    shutil.copy(here / "played.py", root / "flows")
    shutil.copytree(here.parent / "deployments", root / "deployments")
    monkeypatch.setattr(deployments, "_ROOT", root)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def deployed(project: Path, server: Server) -> Path:
    """Such a folder, with the session's Prefect server in use."""
    return project
