"""deployments/README.md, followed word for word: a Prefect server of one's own, its deployments and a worker."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from cli.worker import children
from tests.acceptance.prefect_servers import (
    clean_environment,
    eventually,
    free_port,
    lay_database,
    migrated_database,
)
from tests.integration.deployments.conftest import CHECKOUT
from tests.prefect_api import PrefectApi, api_with_password

PAGE = CHECKOUT / "deployments" / "README.md"
PASSWORD = "user:password"
#: What serves until it is stopped.
SERVING = (["prefect", "server", "start"], ["patternmill", "up", "--worker"])


def lines_of(heading: str) -> list[str]:
    """The indented lines of a section: what a person is to type."""
    section = PAGE.read_text("utf-8").partition(f"\n{heading}\n")[2]
    section = re.split(r"^#+ ", section, maxsplit=1, flags=re.MULTILINE)[0]
    return [line.strip() for line in section.splitlines() if line.startswith("    ")]


class Follower:
    """Types the lines of a page, with another port and without another machine's name."""

    def __init__(self, folder: Path, port: int, stack: ExitStack) -> None:
        self.port = port
        self.serving: dict[str, subprocess.Popen[bytes]] = {}
        self._folder, self._stack = folder, stack
        self.environment = {
            **clean_environment(),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PREFECT_HOME": str(folder / "prefect"),
            "PATTERNMILL_HOME": str(folder / "home"),
        }

    @property
    def api(self) -> PrefectApi:
        return api_with_password(f"http://127.0.0.1:{self.port}/api", PASSWORD)

    def type(self, line: str) -> None:
        here = line.replace("prefect.example", "127.0.0.1").replace("0.0.0.0", "127.0.0.1")
        words = shlex.split(here.replace("4200", str(self.port)), comments=True)
        if words[0] == "export":
            self.environment |= dict(word.split("=", 1) for word in words[1:])
        elif words[:3] == ["set", "-a;", "."]:
            settings = (CHECKOUT / words[3].rstrip(";")).read_text("utf-8")
            self.environment |= dict(re.findall(r"^(\w+)=(.*)$", settings, re.MULTILINE))
        elif words in SERVING:
            self._serve(words)
        else:
            done = subprocess.run(
                words, cwd=CHECKOUT, env=self.environment, capture_output=True, text=True, timeout=180
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    def _serve(self, words: list[str]) -> None:
        self.serving[words[0]] = self._stack.enter_context(served(words, self.environment, self._folder))
        if words[0] == "prefect":
            eventually(self._is_healthy, 120, lambda: (self._folder / "prefect.log").read_text()[-2000:])

    def _is_healthy(self) -> bool:
        try:
            return self.api.get("health") is True
        except OSError:
            return False


@contextmanager
def served(words: list[str], environment: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{words[0]}.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def begin_without_a_purchase(api: PrefectApi, deployment: str) -> str:
    """A run that dies of a parameter that does not exist. On SQLite the server is at times too busy for an answer."""
    order = {"state": {"type": "SCHEDULED"}, "parameters": {"nonsense": 1}}
    begun: list[str] = []

    def begin() -> bool:
        with suppress(urllib.error.HTTPError):
            begun.append(api.post(f"deployments/{deployment}/create_flow_run", order)["id"])
        return bool(begun)

    eventually(begin, 60)
    return begun[0]


@pytest.mark.soak
def test_page_leads_to_a_server_with_deployments_and_a_worker(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On another port than Prefect's own: its UI asks that port, and a run of a deployment is begun."""
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), tmp_path)
    with ExitStack() as stack:
        follower = Follower(tmp_path, free_port(), stack)
        for line in lines_of("## On a server of yours"):
            follower.type(line)
        assert set(follower.serving) == {"prefect", "patternmill"}
        address = f"http://127.0.0.1:{follower.port}"
        with urllib.request.urlopen(f"{address}/ui-settings", timeout=20) as answer:
            assert json.loads(answer.read())["api_url"] == f"{address}/api"
        deployments = follower.api.post("deployments/filter", {})
        assert {found["name"] for found in deployments} == {
            deployment["name"]
            for deployment in yaml.safe_load((PAGE.parent / "prefect.yaml").read_text("utf-8"))["deployments"]
        }
        workers = "work_pools/patternmill/workers/filter"
        eventually(
            lambda: [one["status"] for one in follower.api.post(workers, {})] == ["ONLINE"],
            60,
            lambda: (tmp_path / "patternmill.log").read_text()[-2000:],
        )
        flow_run = begin_without_a_purchase(follower.api, deployments[0]["id"])
        eventually(
            lambda: follower.api.get(f"flow_runs/{flow_run}")["state"]["type"] == "CRASHED",
            120,
            lambda: follower.api.get(f"flow_runs/{flow_run}")["state"],
        )
        until = time.monotonic() + 20
        while children(follower.serving["patternmill"].pid) and time.monotonic() < until:
            time.sleep(0.3)


@pytest.mark.parametrize("heading", ["## On a server of yours", "## Several machines"])
def test_documented_servers_have_the_addresses_of_their_ui(heading: str) -> None:
    """Without them the UI asks port 4200 of the browser's own machine, and messages have no links."""
    text = PAGE.read_text("utf-8").partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    exported = dict(re.findall(r"\b([A-Z][A-Z0-9_]+)=(\S+)", "\n".join(re.findall(r"export (.*)", text))))
    port = exported["PREFECT_SERVER_API_PORT"]
    assert exported["PREFECT_UI_URL"].endswith(f":{port}")
    assert exported["PREFECT_SERVER_UI_API_URL"] == f"{exported['PREFECT_UI_URL']}/api"
    assert exported["PREFECT_API_URL"] == exported["PREFECT_SERVER_UI_API_URL"]
    assert exported["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] == exported["PREFECT_UI_URL"]
    assert exported["PREFECT_SERVER_API_AUTH_STRING"] == exported["PREFECT_API_AUTH_STRING"]


def test_documented_settings_of_prefect_exist() -> None:
    """A misspelt one would be ignored in silence."""
    from prefect import settings

    exported = set(re.findall(r"(?:export |\s)(PREFECT_[A-Z0-9_]+)=", PAGE.read_text("utf-8")))
    assert len(exported) > 10
    # Those of the package prefect-redis are its own.
    assert [name for name in exported if "REDIS" not in name and not hasattr(settings, name)] == []
