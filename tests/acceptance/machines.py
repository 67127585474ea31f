"""Several machines on this one: Dask workers under TLS, and a PostgreSQL server that a test may restart."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from tests.acceptance.harness import CHECKOUT
from tests.acceptance.prefect_servers import free_port


class Postgres:
    """A PostgreSQL server for a single test."""

    def __init__(self) -> None:
        # This is outside of pytest's folder, which is closed to other users.
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._data, self._port = self._folder / "data", free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        self._bin = binaries[-1] if binaries else Path(shutil.which("pg_ctl") or "pg_ctl").parent
        # The server refuses to run as root.
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []

    def __enter__(self) -> Postgres:
        if not (self._bin / "pg_ctl").exists():
            reason = "no PostgreSQL server that a test could start"
            if os.environ.get("CI") == "true":
                pytest.fail(reason)
            pytest.skip(reason)
        self._data.mkdir()
        if self._as:
            shutil.chown(self._data, "postgres")
            self._folder.chmod(0o711)
        self._run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        self.start()
        return self

    def start(self) -> None:
        options = f"-p {self._port} -k {self._data} -c listen_addresses=127.0.0.1 -c max_connections=200"
        self._run("pg_ctl", "-w", "-l", str(self._data / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "fast", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._bin / program), "-D", str(self._data), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder)


class Workers:
    """A scheduler and workers, with the commands and settings of compose.yaml, but without containers."""

    def __init__(self, folder: Path, environment: Mapping[str, str], threads: int) -> None:
        self._folder, self._threads, self._port = folder, threads, free_port()
        services = yaml.safe_load((CHECKOUT / "deployments/compose.yaml").read_text("utf-8"))["services"]
        (folder / "tls").mkdir()
        subprocess.run(self._here(services["dask-certificate"]["command"][:-1]), check=True, cwd=CHECKOUT)
        settings = {
            name: self._here([value])[0]
            for name, value in services["dask-scheduler"]["environment"].items()
            if name.startswith("DASK_")
        }
        path = f"{Path(sys.executable).parent}:{environment['PATH']}"
        self._environment = {**environment, **settings, "PATH": path}
        self._worker = self._here(services["dask-worker"]["command"])
        #: The settings that a run needs to use them.
        self.settings = {**settings, "PATTERNMILL_DASK": f"tls://127.0.0.1:{self._port}"}
        scheduler = self._here(services["dask-scheduler"]["command"])
        self._processes = [self._start("scheduler", [*scheduler, "--host", "127.0.0.1"])]
        self.running: list[subprocess.Popen[bytes]] = []

    def _here(self, words: Sequence[str]) -> list[str]:
        """Adapt a command to this machine: its folder for certificates, its port, its number of threads."""
        here = {"/tls": str(self._folder / "tls"), "8786": str(self._port), "dask-scheduler": "127.0.0.1"}
        words = list(words)
        if "--nthreads" in words:
            words[words.index("--nthreads") + 1] = str(self._threads)
        for there, name in here.items():
            words = [word.replace(there, name) for word in words]
        return words

    def _start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=log, stderr=log)

    def add(self) -> None:
        """Start one more worker, which joins once it has loaded."""
        name = f"worker-{len(self._processes)}"
        self.running.append(self._start(name, [*self._worker, "--name", name, "--memory-limit", "0"]))
        self._processes.append(self.running[-1])

    def kill(self) -> None:
        """Kill the oldest worker, as if its machine were switched off."""
        worker = self.running.pop(0)
        worker.kill()
        worker.wait()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
