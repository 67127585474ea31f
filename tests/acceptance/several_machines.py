"""What several machines share, on this one: Prefect's server as deployments/compose.yaml has it, and a ledger."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from cli.commands.worker import children
from prefect_host.own_server import client_environment, server_answers
from prefect_host.shared_process import usable_port
from prefect_host.work_pool import POOL
from tests.acceptance.harness import CHECKOUT
from tests.acceptance.prefect_servers import clean_environment, eventually
from tests.hostile import Hostile
from tests.prefect_api import PrefectApi, api_with_password

POSTGRES = "postgres@127.0.0.1:5432"
#: What the person who runs the compose file sets.
PASSWORD = "correct-horse"
CREDENTIAL = f"patternmill:{PASSWORD}"


@dataclass(frozen=True)
class Machines:
    """A Prefect server in two processes, and a worker's environment."""

    api: PrefectApi
    environment: dict[str, str]
    folder: Path

    def prefect(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=CHECKOUT,
            env=self.environment,
            check=True,
            capture_output=True,
        )

    def begin(self, deployment: str, **parameters: Any) -> str:
        (found,) = self.api.post("deployments/filter", {"deployments": {"name": {"any_": [deployment]}}})
        order = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return str(self.api.post(f"deployments/{found['id']}/create_flow_run", order)["id"])

    def state(self, flow_run: str) -> dict[str, Any]:
        (found,) = self.api.post("flow_runs/filter", {"flow_runs": {"id": {"any_": [flow_run]}}})
        state: dict[str, Any] = found["state"]
        return state

    def cancel(self, flow_run: str) -> None:
        self.api.post(f"flow_runs/{flow_run}/set_state", {"state": {"type": "CANCELLING"}})

    @contextmanager
    def worker(self, name: str, *, home: Path, limit: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A worker with a home of its own, as on a machine of its own."""
        environment = self.environment | {
            "PATTERNMILL_HOME": str(home),
            "PREFECT_HOME": str(home / "prefect"),
        }
        with _process(
            "cli.commands.worker",
            *("--name", name),
            *(("--limit", str(limit)) if limit else ()),
            environment=environment,
            log=self.folder / f"{name}.log",
        ) as process:
            yield process

    def online(self) -> int:
        found = self.api.post(f"work_pools/{POOL}/workers/filter", {})
        return sum(worker["status"] == "ONLINE" for worker in found)


def lose_machine(worker: subprocess.Popen[bytes]) -> None:
    """Kill the worker and all its runs at once, unknown to Prefect."""
    runs = children(worker.pid)
    worker.kill()
    for run in runs:
        run.kill()
    worker.wait()


def of(service: Hostile, about: str) -> list[dict[str, Any]]:
    """The service's record of one catalog: its jobs' beginnings and ends."""
    lines = service.lines()
    patterns: set[str] = set()
    jobs: set[str] = set()
    for line in lines:
        if line["event"] == "created":
            body = line["body"]
            if about in body.get("prompt", "") or body.get("patternId") in patterns:
                jobs.add(line["jobId"])
        elif line["event"] == "ended" and line["jobId"] in jobs:
            patterns.add(line["resultId"])
    return [line for line in lines if line.get("jobId") in jobs and line["event"] in ("created", "ended")]


def most_in_flight(lines: list[dict[str, Any]]) -> int:
    steps = sorted((line["at"], 1 if line["event"] == "created" else -1) for line in lines)
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


@contextmanager
def machines(folder: Path) -> Iterator[Machines]:
    """Missing PostgreSQL or Redis: skipped, in CI failed."""
    with ExitStack() as stack:
        prefect_database = stack.enter_context(_database())
        ledger = stack.enter_context(_database())
        redis = stack.enter_context(_redis(folder))
        port = usable_port(0)
        server = (
            clean_environment()
            | _as_composed(prefect_database, redis, port)
            | {
                "PREFECT_HOME": str(folder / "server"),
                "PREFECT_LOGGING_LEVEL": "WARNING",
                "DO_NOT_TRACK": "1",
            }
        )
        start = ("server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-services")
        stack.enter_context(_process("prefect", *start, environment=server, log=folder / "server.log"))
        api = api_with_password(f"http://127.0.0.1:{port}/api", CREDENTIAL)
        log = folder / "server.log"
        eventually(lambda: server_answers(api.url, timeout=2.0), 120, lambda: log.read_text()[-3000:])
        stack.enter_context(
            _process(
                "prefect", "server", "services", "start", environment=server, log=folder / "services.log"
            )
        )
        environment = {
            **clean_environment(),
            **client_environment(api.url, folder),
            "PREFECT_API_AUTH_STRING": CREDENTIAL,
            "PATTERNMILL_LEDGER_URL": f"postgresql://{POSTGRES}/{ledger}",
            "PATTERNMILL_HOME": str(folder / "home"),
            "PATTERNMILL_SOURCE_FOLDERS": json.dumps([str(CHECKOUT), tempfile.gettempdir()]),
        }
        yield Machines(api, environment, folder)


def _as_composed(database: str, redis: int, port: int) -> dict[str, str]:
    """The server's environment as the compose file has it, with the names of its hosts replaced by ours."""
    composed: Any = yaml.safe_load((CHECKOUT / "deployments" / "compose.yaml").read_text("utf-8"))
    variables: Mapping[str, str] = composed["x-prefect-server"]["environment"]
    ours = {}
    for name, value in variables.items():
        value = re.sub(r"postgresql\+asyncpg://.*", f"postgresql+asyncpg://{POSTGRES}/{database}", value)
        value = re.sub(r"\$\{PUBLIC_URL:-[^}]*\}", f"http://127.0.0.1:{port}", value)
        value = re.sub(r"\$\{PREFECT_PASSWORD:\?[^}]*\}", PASSWORD, value)
        ours[name] = value.replace("redis://redis:6379", f"redis://127.0.0.1:{redis}")
    return ours | {"PREFECT_REDIS_MESSAGING_HOST": "127.0.0.1", "PREFECT_REDIS_MESSAGING_PORT": str(redis)}


@contextmanager
def _database() -> Iterator[str]:
    name = f"patternmill_spread_{uuid.uuid4().hex[:10]}"
    try:
        with psycopg.connect(
            f"postgresql://{POSTGRES}/postgres", autocommit=True, connect_timeout=3
        ) as admin:
            admin.execute(f'CREATE DATABASE "{name}"')
            # The server is never killed: what is committed need not be on the disk.
            admin.execute(f'ALTER DATABASE "{name}" SET synchronous_commit TO off')
    except psycopg.Error as error:
        _missing(f"no PostgreSQL ({type(error).__name__})")
    try:
        yield name
    finally:
        with psycopg.connect(f"postgresql://{POSTGRES}/postgres", autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    """A server of our own: its databases are not another's."""
    program = shutil.which("redis-server")
    if program is None:
        _missing("no redis-server")
    port = usable_port(0)
    with (folder / "redis.log").open("wb") as log:
        process = subprocess.Popen(
            [program or "", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)],
            stdout=log,
            stderr=log,
        )
    try:
        yield port
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def _process(
    module: str, *arguments: str, environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _missing(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
