"""compose.yaml without a container engine: the commands of its services run as processes in their environments."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prefect_host.own_server import OwnServer
from tests.acceptance.harness import CHECKOUT
from tests.acceptance.machines import Postgres
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.workers import Prefect
from tests.hostile import Hostile, Plan
from tests.prefect_api import api_of

DEPLOYMENTS = CHECKOUT / "deployments"
#: The values that a person fills in in a copy of .env.example.
FILLED_IN = {
    "PATTERNMILL_ENVIRONMENT": "production",
    "PATTERNMILL_CURRENCY": "EUR",
    "PATTERNMILL_PATTERN_PRICE": "€2.00",
    "PATTERNMILL_PRODUCT_PRICE": "€1.00",
    "PATTERNMILL_DAY_BUDGET": "€500",
    "PATTERNMILL_SOURCES": '{"supplier": "https://example.com/linens.csv?token=secret"}',
}

pytestmark = pytest.mark.soak


@pytest.fixture
def ledger() -> Iterator[Postgres]:
    """A server whose databases are made by databases.sh, as the container's are."""
    with Postgres() as postgres:
        port = postgres.url.rpartition(":")[2].partition("/")[0]
        settings = {"PGHOST": "127.0.0.1", "PGPORT": port, "POSTGRES_PASSWORD": "the-stores"}
        settings["PATH"] = os.environ["PATH"]
        subprocess.run(["sh", DEPLOYMENTS / "databases.sh"], env=settings, check=True, capture_output=True)
        yield postgres


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Hostile]:
    with Hostile(Plan(environment="production"), tmp_path / "service") as hostile:
        yield hostile


@pytest.fixture
def services(joint_server: OwnServer, ledger: Postgres) -> dict[str, Any]:
    """compose.yaml, its variables filled in, with this machine's addresses in place of the containers' names."""
    password = joint_server.credential.partition(":")[2]
    variables = {"POSTGRES_PASSWORD": "the-stores", "PREFECT_PASSWORD": password}
    variables["PUBLIC_URL"] = joint_server.ui_url
    text = (DEPLOYMENTS / "compose.yaml").read_text("utf-8")
    text = re.sub(r"\$\{(\w+)[^}]*\}", lambda match: variables[match[1]], text)
    address = ledger.url.partition("@")[2].partition("/")[0]
    text = text.replace("@postgres/", f"@{address}/").replace("http://prefect:4200/api", joint_server.api_url)
    loaded: dict[str, Any] = yaml.safe_load(text)["services"]
    return loaded


def environment(service: dict[str, Any], folder: Path, studio: Hostile) -> dict[str, str]:
    """Return a service's environment: the file's, and over it compose.yaml's; volumes are in a folder."""
    example = (CHECKOUT / ".env.example").read_text("utf-8")
    address = {name: studio.environment[name] for name in ("PATTERNMILL_STUDIO_URL", "PATTERNMILL_API_KEY")}
    filled = {**FILLED_IN, **address}
    assert [name for name in filled if f"\n#{name}=" not in example] == []
    assert service["env_file"] == "worker.env"
    own = {name: text.replace("/var/lib", str(folder)) for name, text in service["environment"].items()}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # A port that no other test has.
    of_machine = {"PREFECT_WORKER_WEBSERVER_PORT": "0", "HOME": str(folder), "PATH": path}
    return {**filled, **own, **of_machine, "PATTERNMILL_WORKER_FOLDER": str(folder)}


def test_worker_of_compose_makes_products(
    services: dict[str, Any], studio: Hostile, joint_server: OwnServer, tmp_path: Path
) -> None:
    """Registered and served by the commands as they are; no secret is in what it prints."""
    settings = environment(services["register"], tmp_path, studio)
    subprocess.run(services["register"]["command"], env=settings, cwd=CHECKOUT, check=True, timeout=120)
    (command,) = re.findall(r'^CMD \["(patternmill.*)"\]$', (DEPLOYMENTS / "Dockerfile").read_text(), re.M)
    shutil.copy(CHECKOUT / "inputs" / "spring_catalog.csv", tmp_path)
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        settings = environment(services["worker"], tmp_path, studio)
        arguments = command.split('", "')
        worker = subprocess.Popen(arguments, cwd=CHECKOUT, env=settings, stdout=output, stderr=output)
    try:
        eventually(lambda: "limits: " in log.read_text("utf-8"), 60, lambda: log.read_text("utf-8"))
        prefect = Prefect(api_of(joint_server), {})
        asked = {"file": "spring_catalog.csv", "environment": "production", "max_items": 6}
        state = prefect.ended(prefect.begin("bulk-import", **asked))
        assert state["name"] == "BudgetReached", (state, log.read_text("utf-8"))
        assert "€" in state["message"] and "spent" in state["message"]
        assert (tmp_path / "results" / "spring-catalog" / "latest" / "results.csv").exists()
    finally:
        worker.terminate()
        worker.wait(60)
    text = log.read_text("utf-8")
    assert worker.returncode == 0, text
    facts = ("ledger: postgresql://127.0.0.1", "service production", "€500.00 a day", "sources supplier")
    api_url = services["worker"]["environment"]["PREFECT_API_URL"]
    secrets = ("the-stores", "token=secret", studio.environment["PATTERNMILL_API_KEY"])
    assert [line for line in (*facts, api_url) if line not in text] == [], text
    assert [secret for secret in secrets if secret in text] == []
