"""`patternmill up`: all that scheduled and clicked runs need, in one terminal, and its end."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.serving import up
from cli.studio import is_meant
from patternmill.errors import Refusal
from patternmill.ledger.database import Database
from patternmill.settings import read_settings

_UP = """
import sys
from pathlib import Path
from tasks import deployments
deployments._ROOT = Path.cwd()
from cli.serving import up
up(sys.argv[1:], standalone_mode=False)
"""


@contextmanager
def serving(script: list[str], root: Path) -> Iterator["subprocess.Popen[str]"]:
    own = {
        name: text for name, text in os.environ.items() if not name.startswith(("PREFECT_", "PATTERNMILL_"))
    }
    environment = {**own, "PREFECT_HOME": str(root / "none"), "PYTHONUNBUFFERED": "1"}
    environment["PREFECT_WORKER_QUERY_SECONDS"] = "1"  # not 10, so that a run begins soon
    process = subprocess.Popen(
        [sys.executable, *script], cwd=root, env=environment, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def until_line(process: "subprocess.Popen[str]", words: str) -> str:
    """Return what a process says until it says these words."""
    assert process.stdout
    said = ""
    while words not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    return said


def comes_true(condition: Callable[[], bool], seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.2)
    return condition()


def is_gone(address: str) -> bool:
    try:
        httpx.get(address, trust_env=False, timeout=5)
    except httpx.TransportError:
        return True
    return False


def begin(address: str, **parameters: Any) -> str:
    """Begin a run of the deployment `bulk-import` as the UI does, and return its ID."""
    with httpx.Client(base_url=f"{address}/api", trust_env=False, timeout=30) as http:
        deployment = http.get("/deployments/name/bulk-import/bulk-import").json()["id"]
        run = http.post(f"/deployments/{deployment}/create_flow_run", json={"parameters": parameters})
        return str(run.json()["id"])


def test_ctrl_c_drains_the_runs_and_then_ends_server_and_studio(project: Path) -> None:
    root = project
    with serving(["-c", _UP], root) as process:
        said = until_line(process, "Ctrl-C stops.")
        addresses = re.findall(r"http://127\.0\.0\.1:\d+", said)
        assert "bulk-import, catalog-refresh, remake-patterns, retry-failed" in said
        assert "studio, http" in said
        run = begin(addresses[0], file="work", catalog="spring")
        assert comes_true((root / "working").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert (root / "drained").exists()
    assert all(map(is_gone, addresses))
    with serving(["-c", _UP], root) as process:  # its record is there, and a kill leaves nothing
        addresses = re.findall(r"http://127\.0\.0\.1:\d+", until_line(process, "Ctrl-C stops."))
        state = httpx.get(f"{addresses[0]}/api/flow_runs/{run}", trust_env=False, timeout=30).json()["state"]
        assert (state["name"], state["message"]) == ("Cancelled", "Drained.")
        process.kill()
        assert comes_true(lambda: all(map(is_gone, addresses)))


@pytest.mark.slow
def test_the_studio_serves_until_ctrl_c_with_its_key_in_a_file(tmp_path: Path) -> None:
    script = "from cli.serving import studio; studio(['--port', '18321'], standalone_mode=False)"
    with serving(["-c", script], tmp_path) as process:
        address = "http://127.0.0.1:18321/v1"
        assert address in until_line(process, "Ctrl-C stops.")
        assert (tmp_path / ".patternmill" / "studio" / "api-key").stat().st_mode & 0o777 == 0o600
        assert not is_gone(address)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert is_gone(address)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("PATTERNMILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def test_the_embedded_studio_is_meant_where_no_service_was_ever_configured(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_meant(read_settings())
    database = Database(read_settings().ledger_address)
    pinned = "INSERT INTO environments (name, address, currency, day, spent) VALUES (:name, 'a', '', '', 0)"
    database.change(lambda connection: connection.execute(pinned, name="studio"))
    assert is_meant(read_settings())
    database.change(lambda connection: connection.execute(pinned, name="production"))
    assert not is_meant(read_settings())
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT", "studio")
    assert is_meant(read_settings())
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    assert not is_meant(read_settings())


def test_without_a_service_up_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT", "staging")
    with pytest.raises(Refusal, match="PATTERNMILL_STUDIO_URL") as refusal:
        up([], standalone_mode=False)
    assert refusal.value.exit_code == 2
    assert not (home / "prefect").exists()
