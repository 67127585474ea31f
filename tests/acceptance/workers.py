"""Helpers that run deployments: a Prefect server with ours, a worker for it, or `up` with both."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from prefect_host import shared_process
from prefect_host.client_settings import POOL
from prefect_host.own_server import OwnServer
from tests.acceptance.harness import CHECKOUT, COMMAND, clean_environment
from tests.acceptance.prefect_servers import eventually
from tests.prefect_api import OPEN_STATES, PrefectApi, api_of

FINAL = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")
PREFECT_WORKER = ("prefect", "worker", "start", "--pool", POOL)
OUR_WORKER = ("cli.main", "up", "--worker")
#: Lets a worker ask for runs every second, not every tenth.
OFTEN = {"PREFECT_WORKER_QUERY_SECONDS": "1"}


@dataclass(frozen=True)
class Prefect:
    """A server with the deployments, and what a process needs to be a client of it."""

    api: PrefectApi
    environment: dict[str, str]

    def ask(self, path: str) -> Any:
        return self.api.get(path)

    def deployment(self, name: str) -> str:
        return str(self.ask(f"deployments/name/{name}/{name}")["id"])

    def begin(self, deployment: str, **parameters: Any) -> str:
        return self.order(deployment, parameters=parameters)

    def order(self, deployment: str, **order: Any) -> str:
        path = f"deployments/{self.deployment(deployment)}/create_flow_run"
        return str(self.api.post(path, {"state": {"type": "SCHEDULED"}, **order})["id"])

    def state(self, flow_run: str) -> dict[str, Any]:
        state: dict[str, Any] = self.ask(f"flow_runs/{flow_run}")["state"]
        return state

    def set_state(self, flow_run: str, kind: str, name: str, **more: Any) -> None:
        """Set the state of a flow run, as the UI's buttons do."""
        state = {"type": kind, "name": name, **more}
        self.api.post(f"flow_runs/{flow_run}/set_state", {"state": state, "force": True})

    def cancel(self, flow_run: str) -> None:
        self.api.post(f"flow_runs/{flow_run}/set_state", {"state": {"type": "CANCELLING"}})

    def suspended(self, flow_run: str) -> str:
        """Return the same flow run once it has asked a person."""
        eventually(lambda: self.state(flow_run)["name"] == "Suspended", 120, lambda: self.state(flow_run))
        return flow_run

    def answer(self, flow_run: str, **fields: Any) -> None:
        """Reply as the form in the UI does. Just after a run is suspended Prefect has no form, and refuses a reply."""
        answers: list[dict[str, Any]] = []

        def is_accepted() -> bool:
            answers.append(self.api.post(f"flow_runs/{flow_run}/resume", {"run_input": fields}))
            return bool(answers[-1]["status"] == "ACCEPT")

        eventually(is_accepted, 30, lambda: answers[-1])

    def ended(self, flow_run: str, *, within: float = 120) -> dict[str, Any]:
        eventually(lambda: self.state(flow_run)["type"] in FINAL, within, lambda: self.state(flow_run))
        return self.state(flow_run)

    def runs(self, where: Any = None) -> set[str]:
        return {str(found["id"]) for found in self.api.post("flow_runs/filter", where or {})}

    def open_runs(self, flow_run: str) -> int:
        unfinished = {"state": {"type": {"any_": list(OPEN_STATES)}}}
        inside = {"flow_runs": {"id": {"any_": [flow_run]}}, "task_runs": unfinished}
        return int(self.api.post("task_runs/count", inside))


@contextmanager
def deployed(home: Path, service: dict[str, str], **settings: str) -> Iterator[Prefect]:
    """Yield a server with all deployments and the pool, made as the README says; `settings` are for its clients."""
    with OwnServer(home, settings={}) as server:
        environment = {
            **clean_environment(),
            **server.client_environment,
            **service,
            "PATTERNMILL_HOME": str(home),
            "PATTERNMILL_WORKER_FOLDER": str(home.parent),
            **OFTEN,
            **settings,
        }
        command = [sys.executable, "-P", "-m", "tasks.deployments"]
        subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True)
        yield Prefect(api_of(server), environment)


@contextmanager
def workers(prefect: Prefect, folder: Path) -> Iterator[Any]:
    """Yield a function that starts workers; stop those that still run at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(module: tuple[str, ...] = OUR_WORKER, **settings: str) -> subprocess.Popen[bytes]:
        command, environment = [sys.executable, "-m", *module], prefect.environment | settings
        with (folder / "worker.log").open("ab") as log:
            started.append(subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=60)


@dataclass
class Up:
    """`patternmill up` in a folder of its own, with what the person who runs it knows."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text("utf-8", "replace")

    @property
    def ui(self) -> str:
        address = re.search(r"Prefect UI: +(\S+)", self.output)
        assert address, self.output
        return address[1]

    @property
    def prefect(self) -> Prefect:
        return Prefect(api_of(self.server), {})

    @property
    def server(self) -> OwnServer:
        return OwnServer(self.folder / "home")

    def left(self) -> list[str]:
        """Return the processes that belong to it, by their arguments or environment."""

        def belongs(process: psutil.Process) -> bool:
            with suppress(psutil.Error):
                texts = (*process.cmdline(), *process.environ().values())
                return process.pid != os.getpid() and any(str(self.folder) in text for text in texts)
            return False

        return [str(process) for process in psutil.process_iter() if belongs(process)]


@contextmanager
def up(folder: Path, **settings: str) -> Iterator[Up]:
    """Serve until the end of the block at the latest."""
    environment = clean_environment() | {"PATTERNMILL_HOME": str(folder / "home"), "HERE": str(folder)}
    with (folder / "output.txt").open("wb") as output:
        process = shared_process.start_process(
            [str(COMMAND), "up"], cwd=folder, env=environment | OFTEN | settings, stdout=output, stderr=output
        )
    serving = Up(folder, process)
    try:
        eventually(
            lambda: "Ctrl-C stops" in serving.output or process.poll() is not None,
            120,
            lambda: serving.output,
        )
        assert process.poll() is None, serving.output
        yield serving
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(90)


def statuses(out: Path) -> Counter[str]:
    """Return how many rows of the results have each status."""
    with (out / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        return Counter(row["status"] for row in csv.DictReader(file))
