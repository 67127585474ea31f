"""compose.yaml and Dockerfile taken at their word where no container engine is: as processes of the image's user.

What an engine would do is done as it does it: the image's files are root's, and an empty volume has the owner of the
image's folder at its place, or is root's where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prefect_host.own_server import OwnServer, own_password
from tests.acceptance.harness import CHECKOUT
from tests.acceptance.machines import Postgres
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.workers import Prefect
from tests.hostile import Hostile, Plan
from tests.prefect_api import api_of

DEPLOYMENTS = CHECKOUT / "deployments"
DOCKERFILE = (DEPLOYMENTS / "Dockerfile").read_text("utf-8")
#: The image's user, where the tests may become another one.
USER = 10001 if os.geteuid() == 0 else os.geteuid()
#: What a person fills in in the copy of .env.example.
FILLED_IN = {
    "PATTERNMILL_ENVIRONMENT": "production",
    "PATTERNMILL_CURRENCY": "EUR",
    "PATTERNMILL_PATTERN_PRICE": "€2.00",
    "PATTERNMILL_PRODUCT_PRICE": "€1.00",
    "PATTERNMILL_DAY_BUDGET": "€500",
    "PATTERNMILL_SOURCES": '{"supplier": "https://example.com/linens.csv?token=secret"}',
}

pytestmark = pytest.mark.soak


def interpreter() -> str:
    """Return a Python of this version that the image's user may run."""
    found = sys.executable if os.geteuid() == USER else "/usr/bin/python3"
    told = subprocess.run([found, "-V"], capture_output=True, text=True, check=False).stdout
    if not told.startswith("Python {}.{}.".format(*sys.version_info)):
        pytest.skip("no Python of this version that another user may run")
    return found


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """The root of the image, with what the Dockerfile puts there."""
    # Not in pytest's folder, which is closed to other users.
    root = Path(tempfile.mkdtemp(prefix="image-"))
    root.chmod(0o755)
    ((folders, owned),) = re.findall(r"mkdir -p (.+) \\\n && chown -R patternmill (.+)\n", DOCKERFILE)
    for place in folders.split():
        (root / place.lstrip("/")).mkdir(parents=True)
    for place in owned.split():
        subprocess.run(["chown", "-R", str(USER), root / place.lstrip("/")], check=True)
    folder = root / "opt" / "patternmill"
    for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            if (CHECKOUT / source).is_dir():
                shutil.copytree(CHECKOUT / source, folder / target)
            else:
                shutil.copy(CHECKOUT / source, folder)
    subprocess.run([interpreter(), "-m", "venv", "--without-pip", root / "venv"], check=True)
    # The same dependencies as here.
    there = sysconfig.get_path("purelib", vars={"base": str(root / "venv")})
    (Path(there) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    (install,) = re.findall(r"^RUN (pip install .* -e \.)$", DOCKERFILE, re.MULTILINE)
    command = [root / "venv" / "bin" / "python", "-m", *install.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def ledger() -> Iterator[Postgres]:
    """A server whose databases are made by databases.sh, as the container's are."""
    with Postgres() as postgres:
        port = postgres.url.rpartition(":")[2].partition("/")[0]
        settings = {
            "PGHOST": "127.0.0.1",
            "PGPORT": port,
            "POSTGRES_PASSWORD": "the-stores",
            "PATH": os.environ["PATH"],
        }
        subprocess.run(["sh", DEPLOYMENTS / "databases.sh"], env=settings, check=True, capture_output=True)
        yield postgres


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    with Hostile(Plan(environment="production"), tmp_path_factory.mktemp("service")) as hostile:
        yield hostile


@pytest.fixture(scope="module")
def services(joint_server: OwnServer, ledger: Postgres) -> dict[str, Any]:
    """compose.yaml, its variables filled in, with this machine's addresses in place of the containers' names."""
    password = own_password(joint_server.directory.parent).partition(":")[2]
    variables = {
        "POSTGRES_PASSWORD": "the-stores",
        "PREFECT_PASSWORD": password,
        "PUBLIC_URL": joint_server.ui_url,
    }
    text = (DEPLOYMENTS / "compose.yaml").read_text("utf-8")
    text = re.sub(r"\$\{(\w+)[^}]*\}", lambda found: variables[found[1]], text)
    address = ledger.url.partition("@")[2].partition("/")[0]
    text = text.replace("@postgres/", f"@{address}/").replace("http://prefect:4200/api", joint_server.api_url)
    loaded: dict[str, Any] = yaml.safe_load(text)["services"]
    return loaded


def environment(service: dict[str, Any], root: Path, studio: Hostile) -> dict[str, str]:
    """Return a service's environment: the file's, and over it compose.yaml's."""
    example = (CHECKOUT / ".env.example").read_text("utf-8")
    address = {name: studio.environment[name] for name in ("PATTERNMILL_STUDIO_URL", "PATTERNMILL_API_KEY")}
    filled = {**FILLED_IN, **address}
    assert [name for name in filled if f"\n#{name}=" not in example] == []
    assert service["env_file"] == "worker.env"
    own = {name: text.replace("/var/lib", f"{root}/var/lib") for name, text in service["environment"].items()}
    for name in ("home", "tmp"):
        (root / name).mkdir(exist_ok=True)
        os.chown(root / name, USER, -1)
    # A port that no other test has.
    of_machine = {"PREFECT_WORKER_WEBSERVER_PORT": "0", "HOME": f"{root}/home", "TMPDIR": f"{root}/tmp"}
    return {**filled, **own, **of_machine, "PATH": f"{root}/venv/bin:{os.environ['PATH']}"}


def test_worker_of_compose_makes_products(
    root: Path, services: dict[str, Any], service: Hostile, joint_server: OwnServer, tmp_path: Path
) -> None:
    """Registered and served by the commands as they are; its results are written to the volume, as its user."""
    folder = root / "opt" / "patternmill"
    started = {"cwd": folder, "user": USER}
    settings = environment(services["register"], root, service)
    subprocess.run(services["register"]["command"], env=settings, check=True, timeout=120, **started)
    for volume in services["worker"]["volumes"]:
        name, place = volume.split(":")[:2]
        if name in {"results", "home"}:
            # An engine makes it, as root, where the image has none.
            (root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
    (command,) = re.findall(r'^CMD \["(patternmill.*)"\]$', DOCKERFILE, re.MULTILINE)
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            command.split('", "'),
            env=environment(services["worker"], root, service),
            stdout=output,
            stderr=output,
            **started,
        )
    try:
        eventually(lambda: "limits: " in log.read_text("utf-8"), 60, lambda: log.read_text("utf-8"))
        prefect = Prefect(api_of(joint_server), {})
        asked = {"file": "inputs/spring_catalog.csv", "environment": "production", "max_items": 6}
        state = prefect.ended(prefect.begin("bulk-import", **asked), within=180)
        assert state["name"] == "BudgetReached", (state, log.read_text("utf-8"))
        assert "€" in state["message"] and "spent" in state["message"]
        results = folder / "results" / "spring-catalog" / "latest" / "results.csv"
        assert results.stat().st_uid == USER
    finally:
        worker.terminate()
        worker.wait(60)
    assert worker.returncode == 0, log.read_text("utf-8")
    text = log.read_text("utf-8")
    facts = ("ledger: postgresql://127.0.0.1", "service production", "€500.00 a day", "sources supplier")
    api_url = services["worker"]["environment"]["PREFECT_API_URL"]
    secrets = ("the-stores", "token=secret", service.environment["PATTERNMILL_API_KEY"])
    assert [line for line in (*facts, api_url) if line not in text] == [], text
    assert [secret for secret in secrets if secret in text] == []
