"""`python -m benchmarks.machines`: one import on several Dask workers, of which some die or freeze while it runs.

What counts is read at the service and in the ledger: nothing bought twice, nothing lost, the window never passed, and
the makespan from the first request on. PostgreSQL is one of its own, so that it can be restarted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
import yaml

from benchmarks import ours
from benchmarks.measure import CHECKOUT, FakeService, PrefectServer, free_port
from benchmarks.scenarios import write_rows

TIMEOUT = 3600.0


@dataclass(frozen=True)
class Load:
    rows: int = 400
    window: int = 40
    seconds: float = 1.0
    workers: int = 2
    threads: int = 8


@dataclass
class Figures:
    code: int
    jobs: int
    bought_twice: int
    lost: int
    peak: int
    makespan: float
    shortest: float
    happened: list[str] = field(default_factory=list)
    output: str = field(default="", repr=False)

    @property
    def over_shortest(self) -> float:
        return self.makespan / (self.shortest or 1.0)

    def line(self, load: Load) -> str:
        return (
            f"{load.rows:,} rows, jobs of {load.seconds:g} s, window {load.window}, {load.workers} workers of "
            f"{load.threads} threads: exit {self.code}, {self.jobs:,} jobs, bought twice {self.bought_twice}, lost "
            f"{self.lost}, most in flight {self.peak}, {self.makespan:.1f} s of {self.shortest:.1f} s possible "
            f"({self.over_shortest:.2f}); {', '.join(self.happened) or 'nothing happened'}"
        )


class Processes:
    """Processes of one measurement, each with a log of its own; all are killed at its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self._folder, env=dict(env), stdout=log, stderr=log)
        self._running.append(process)
        return process

    def kill_all(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


class Postgres:
    """A server of this measurement alone, on the disk as a real one."""

    def __init__(self, folder: Path) -> None:
        self._data, self.port = folder / "postgres", free_port()
        # The server refuses to run as root.
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        self._bin = binaries[-1] if binaries else Path(shutil.which("pg_ctl") or "pg_ctl").parent

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Postgres:
        self._data.mkdir()
        if self._as:
            shutil.chown(self._data, "postgres")
            for folder in (self._data.parent, *self._data.parent.parents):
                folder.chmod(folder.stat().st_mode | 0o011)
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        self.start()
        return self

    def start(self) -> None:
        self._run(
            "pg_ctl", "-D", str(self._data), "-w", "-l", str(self._data / "log"), "-o", self._options, "start"
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", "fast", "-w", "stop")

    @property
    def _options(self) -> str:
        return f"-p {self.port} -k {self._data} -c listen_addresses=127.0.0.1 -c max_connections=200"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as, str(self._bin / program), *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/"
        )

    def __exit__(self, *_: object) -> None:
        self.stop()


class DaskCluster:
    """A scheduler and workers, by the very commands and settings of compose.yaml, without containers."""

    def __init__(self, folder: Path, processes: Processes, env: Mapping[str, str], threads: int) -> None:
        self._processes, self._folder, self._threads = processes, folder, threads
        self._port = free_port()
        services = yaml.safe_load((CHECKOUT / "deployments/compose.yaml").read_text("utf-8"))["services"]
        (folder / "tls").mkdir()
        subprocess.run(self._here(services["dask-certificate"]["command"][:-1]), check=True, cwd=CHECKOUT)
        self.environment = {
            name: self._here([value])[0]
            for name, value in services["dask-scheduler"]["environment"].items()
            if name.startswith("DASK_")
        }
        self._env = {**env, **self.environment, "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}
        command = self._here(services["dask-scheduler"]["command"])
        processes.start("scheduler", [*command, "--host", "127.0.0.1"], self._env)
        self._worker = self._here(services["dask-worker"]["command"])
        self._names = 0
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"tls://127.0.0.1:{self._port}"

    def _here(self, words: Sequence[str]) -> list[str]:
        """On this machine: its folder for certificates, its port, its number of threads."""
        here = {"/tls": str(self._folder / "tls"), "8786": str(self._port), "dask-scheduler": "127.0.0.1"}
        words = list(words)
        if "--nthreads" in words:
            words[words.index("--nthreads") + 1] = str(self._threads)
        for there, name in here.items():
            words = [word.replace(there, name) for word in words]
        return words

    def add(self) -> None:
        self._names += 1
        name = f"worker-{self._names}"
        command = [*self._worker, "--name", name, "--memory-limit", "0"]
        self.workers.append(self._processes.start(name, command, self._env))

    def have_joined(self) -> bool:
        logs = (self._folder / f"worker-{number + 1}.log" for number in range(self._names))
        return all("Registered to:" in log.read_text("utf-8", "replace") for log in logs)

    def remove(self) -> None:
        """As a machine that is switched off."""
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()


class Events:
    """What happens to the machines while the import runs; each as long as it has not ended."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.over = threading.Event()
        #: The first request was sent.
        self.began = threading.Event()
        self._threads: list[threading.Thread] = []

    def at(self, seconds: float, event: Callable[[], str], *, again_every: float = 0.0) -> None:
        def wait() -> None:
            self.began.wait()
            pause = seconds
            while not self.over.wait(pause):
                self.happened.append(event())
                if not again_every:
                    return
                pause = again_every

        self._threads.append(threading.Thread(target=wait, daemon=True))
        self._threads[-1].start()

    def end(self) -> None:
        self.over.set()
        self.began.set()
        for thread in self._threads:
            thread.join()


class Measurement:
    """One import of a load, on machines that are there for it alone."""

    def __init__(self, load: Load, folder: Path, stack: ExitStack) -> None:
        self.load, self._folder = load, folder
        self.service = stack.enter_context(FakeService(load.seconds, load.seconds, 0.0))
        self.postgres = stack.enter_context(Postgres(folder))
        prefect = stack.enter_context(PrefectServer(folder))
        self._processes = Processes(folder)
        stack.callback(self._processes.kill_all)
        home = folder / "home"
        self._env = ours.environment(self.service.url, prefect.api_url, home, window=load.window)
        self._env |= {"PATTERNMILL_LEDGER_URL": self.postgres.url, "PYTHONUNBUFFERED": "1"}
        self.cluster = DaskCluster(folder, self._processes, self._env, load.threads)
        for _ in range(load.workers):
            self.cluster.add()
        self._file = folder / "rows.csv"
        write_rows(self._file, load.rows)
        self._import: subprocess.Popen[bytes] | None = None

    def run(self, events: Events) -> Figures:
        self.start_import()
        until = time.monotonic() + TIMEOUT
        try:
            while (code := self._ended()) is None and time.monotonic() < until:
                time.sleep(0.2)
                if not events.began.is_set() and self.service.stats(self.load.window)["jobs"]:
                    events.began.set()
        finally:
            events.end()
        stats = self.service.stats(self.load.window)
        return Figures(
            code=code if code is not None else -1,
            jobs=stats["jobs"],
            bought_twice=max(0, stats["jobs"] - 2 * self.load.rows),
            lost=self.load.rows - self._made(),
            peak=stats["peak_in_flight"],
            makespan=stats["span"],
            shortest=stats["shortest"],
            happened=events.happened,
            output=(self._folder / "import.log").read_text("utf-8", "replace"),
        )

    def start_import(self) -> None:
        env = self._env | self.cluster.environment | {"PATTERNMILL_DASK": self.cluster.address}
        command = ours.command(self._file, self._folder / "out", paced=True)
        self._import = self._processes.start("import", command, env)

    def _ended(self) -> int | None:
        """Its exit code; None while it runs, and between a kill and the next start."""
        process = self._import
        return process.poll() if process is not None else None

    def _made(self) -> int:
        with psycopg.connect(self.postgres.url) as connection:
            found = connection.execute(
                "SELECT count(DISTINCT i.key) FROM items i JOIN attempts a ON a.item_key = i.key "
                "WHERE i.stage = 'product' AND a.state = 'succeeded'"
            ).fetchone()
        assert found is not None
        return int(found[0])

    # What happens.

    def kill_worker(self) -> str:
        self.cluster.remove()
        self.cluster.add()
        return "a worker killed"

    def freeze_worker(self, seconds: float) -> str:
        worker = self.cluster.workers.pop()
        worker.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        worker.send_signal(signal.SIGCONT)
        self.cluster.workers.append(worker)
        return f"a worker frozen for {seconds:.0f} s"

    def restart_postgres(self) -> str:
        self.postgres.stop()
        time.sleep(2)
        self.postgres.start()
        return "PostgreSQL restarted"

    def restart_import(self) -> str:
        process, self._import = self._import, None
        assert process is not None
        process.kill()
        process.wait()
        self.start_import()
        return "the flow's process killed and started again"

    def resize(self, workers: int) -> str:
        """Says how long new workers took to join, and then until as many groups are driven as all have threads for."""
        began = time.monotonic()
        full = workers * self.load.threads
        if len(self.cluster.workers) > workers:
            while len(self.cluster.workers) > workers:
                self.cluster.remove()
            self._wait(lambda: self._driven() <= full)
            return f"{workers} workers after {time.monotonic() - began:.1f} s"
        while len(self.cluster.workers) < workers:
            self.cluster.add()
        self._wait(self.cluster.have_joined)
        joined = time.monotonic()
        self._wait(lambda: self._driven() >= full)
        at_work = time.monotonic() - joined
        return f"{workers} workers: joined after {joined - began:.1f} s, at work {at_work:.1f} s later"

    def _wait(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + TIMEOUT
        while not condition() and time.monotonic() < until:
            time.sleep(0.1)

    def _driven(self) -> int:
        """Groups that beat within the last three seconds."""
        with psycopg.connect(self.postgres.url) as connection:
            found = connection.execute(
                "SELECT count(*) FROM run_groups WHERE ended_at IS NULL AND fence IS NOT NULL "
                "AND beat_at > extract(epoch FROM clock_timestamp()) - 3"
            ).fetchone()
        assert found is not None
        return int(found[0])


@contextmanager
def measurement(load: Load) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="machines-") as name, ExitStack() as stack:
        yield Measurement(load, Path(name), stack)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machines", description=__doc__)
    parser.add_argument("--rows", type=int, default=Load.rows)
    parser.add_argument("--window", type=int, default=Load.window)
    parser.add_argument("--seconds", type=float, default=Load.seconds, help="that a job takes")
    parser.add_argument("--workers", type=int, default=Load.workers)
    parser.add_argument(
        "--threads", type=int, default=Load.threads, help="groups that a worker drives at once"
    )
    parser.add_argument("--kill-every", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--freeze", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--restarts", action="store_true", help="of PostgreSQL and of the flow's process")
    parser.add_argument("--resize", action="store_true", help="one worker at first, then 4, 2 and 4")
    options = parser.parse_args(argv)
    load = Load(options.rows, options.window, options.seconds, options.workers, options.threads)
    with measurement(load) as measured:
        events = Events()
        if options.kill_every:
            events.at(options.kill_every, measured.kill_worker, again_every=options.kill_every)
        if options.freeze:
            events.at(15, lambda: measured.freeze_worker(options.freeze))
        if options.restarts:
            events.at(40, measured.restart_postgres)
            events.at(100, measured.restart_import)
        if options.resize:
            for seconds, workers in ((20, 4), (60, 2), (100, 4)):
                events.at(seconds, partial(measured.resize, workers))
        figures = measured.run(events)
        print(figures.line(load))
        if figures.code != 0:
            print(figures.output[-4000:])
    return int(figures.code != 0 or bool(figures.bought_twice or figures.lost) or figures.peak > load.window)


if __name__ == "__main__":
    sys.exit(main())
