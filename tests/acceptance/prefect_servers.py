"""Helpers of the tests with Prefect: a server that stays dead when killed, the command, and the server's record."""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prefect_host import shared_process
from prefect_host.client_settings import server_answers
from prefect_host.own_server import LEDGER_URL, UNATTENDED, OwnServer, server_environment
from prefect_host.shared_process import bound_socket
from tests.acceptance.harness import COMMAND, Room, Started, clean_environment, started
from tests.acceptance.zygote import Zygote
from tests.prefect_api import PrefectApi


@functools.cache
def migrated_database(base: Path) -> Path:
    """Return an empty Prefect database, made once for all tests: making it is most of a server's first start.

    `base` is pytest's folder of this process; the one above it is shared by the processes of one test run.
    """
    home = shared_folder(base) / "prefect-template"
    with made_once(home) as is_made:
        if not is_made:
            with OwnServer(home):
                pass
    return home / "prefect"


def shared_folder(base: Path) -> Path:
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def made_once(folder: Path) -> Iterator[bool]:
    """Yield whether another test or process has made the folder; nobody else can make it meanwhile."""
    mark = folder.with_suffix(".made")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield mark.exists()
        mark.touch()


@pytest.fixture(scope="session", autouse=True)
def warm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fork servers, and commands started by `start_process`, from a warm process, except in the soak."""
    if os.environ.get("SOAK") or request.config.option.markexpr == "soak":
        yield
        return
    user = Zygote(shared_folder(tmp_path_factory.getbasetemp()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_process, "start_process", user.start)
        yield


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Zygote:
    """Return the warm process from which imports without Prefect are forked, in the soak too."""
    return Zygote(shared_folder(tmp_path_factory.getbasetemp()))


@pytest.fixture
def unforked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start what a test starts in the way that users do."""
    monkeypatch.setattr(shared_process, "start_process", subprocess.Popen)


@pytest.fixture(scope="session")
def joint_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """Yield one server for all tests, in any process, whose commands need to find one: starting one is slow.

    The first process starts it, the others join it, the last one ends it, as commands on one home do.
    """
    base = tmp_path_factory.getbasetemp()
    template, home = migrated_database(base), shared_folder(base) / "prefect-joint"
    with made_once(home) as is_made:
        if not is_made:
            lay_database(template, home)
    with OwnServer(
        home, settings={**UNATTENDED, LEDGER_URL: f"sqlite:///{home / 'ledger.sqlite3'}"}
    ) as running:
        yield running


def settle_at(server: OwnServer, home: Path) -> None:
    """Make a running server the server of another home as well."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "prefect").symlink_to(server.directory, target_is_directory=True)


def lay_database(template: Path, home: Path) -> Path:
    """Copy the database to where the own server of a home expects it, and return the folder."""
    directory = home / "prefect"
    for folder in (home, directory):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The write-ahead log too: the server leaves the latest pages there as it ends.
    for part in template.glob("prefect.db*"):
        shutil.copy(part, directory)
    return directory


def free_port() -> int:
    with bound_socket() as bound:
        return int(bound.getsockname()[1])


@dataclass
class NamedServer:
    """A stock server as a user runs one, at an address of its own; it is not restarted when it is killed."""

    directory: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def api(self) -> PrefectApi:
        return PrefectApi(f"http://127.0.0.1:{self.port}/api")

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start it without waiting; `await_ready` waits for it."""
        with (self.directory / "named-server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "prefect", "server", "start", "--port", str(self.port)],
                cwd=self.directory,
                env=clean_environment() | server_environment(self.directory, self.port),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_ready(self) -> None:
        eventually(lambda: server_answers(self.api.url, timeout=2.0), within=120)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None, "it was not started"
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        if self._process is not None:
            self.send(signal.SIGKILL)
            self._process.wait()
            self._process = None


class Gate:
    """An address in front of a server, which can be shut and reopened at once."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._lines: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._port = 0
        self.open()

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/api"

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._admit, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        """Accept no more connections, and close those that are open."""
        assert self._listener is not None, "it is shut"
        # This wakes the thread that waits in accept, which closing alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        for line in tuple(self._lines):
            _hang_up(line)

    def close(self) -> None:
        if self._listener is not None:
            self.shut()

    def _admit(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                near.close()
                continue
            for ends in ((near, far), (far, near)):
                self._lines.add(ends[0])
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with source, suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        _hang_up(target)
        self._lines.discard(source)


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def run_process(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Do as `subprocess.run` does and capture the output, for this interpreter and the command, which may be forked."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with shared_process.start_process(arguments, cwd=cwd, env=env, text=True, **pipes) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, str(out), str(err))


def start_import(room: Room, *options: str, **environment: str) -> Started:
    """Start `patternmill import` of a room's catalog as a person does."""
    settings = {**room.environment, "PREFECT_HOME": str(room.folder / "prefect-client"), **environment}
    arguments = [str(COMMAND), "import", str(room.file), "--out", str(room.out), *options]
    return started(shared_process.start_process, room.folder, arguments, settings)


def eventually(
    what: Callable[[], object], within: float, on_timeout: Callable[[], object] = lambda: "it never came"
) -> None:
    until = time.monotonic() + within
    while not what():
        assert time.monotonic() < until, on_timeout()
        time.sleep(0.05)


def everything(api: PrefectApi, kind: str) -> Iterator[dict[str, Any]]:
    """Yield all of the server's flow runs, or task runs."""
    for offset in itertools.count(0, 200):
        page = api.post(f"{kind}/filter", {"limit": 200, "offset": offset, "sort": "ID_DESC"})
        yield from page
        if len(page) < 200:
            return


def recorded(directory: Path, table: str) -> list[sqlite3.Row]:
    """Return the rows of a table, read from the database itself, as its server may be gone."""
    with closing(sqlite3.connect(directory / "prefect.db", timeout=20)) as database:
        database.row_factory = sqlite3.Row
        return database.execute(f"SELECT * FROM {table}").fetchall()
