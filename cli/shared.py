"""A process that all commands on one home share: the first one starts it, and it ends with its last user.

Locks see to that, because the kernel releases them however their holder ends. Every user shares `users.lock`; the
process waits until it has that lock for itself, and then ends. It holds `alive.lock` as long as it lives. Whoever
decides whether to start it holds `start.lock` meanwhile.
"""

import contextlib
import fcntl
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from patternmill.errors import Refusal

HOST = "127.0.0.1"
#: How long an orderly end may take, and a new user waits for it.
_ENDING = 5.0
#: Settings that are meant for runs, and their secrets, are not handed on.
_OWN = ("PATTERNMILL_", "PREFECT_")


#: How the process is started: a module with its arguments, and its environment beside the caller's.
Launch = tuple[Sequence[str], Mapping[str, str]]


@dataclass(frozen=True)
class Shared:
    """The process in a folder, in use."""

    folder: Path
    port: int

    @property
    def address(self) -> str:
        """Return where it answers."""
        return f"http://{HOST}:{self.port}"

    def is_alive(self) -> bool:
        """Return whether the process lives, whoever has started it."""
        with _opened(self.folder / "alive.lock") as alive:
            return not _locked(alive, fcntl.LOCK_SH)


@contextlib.contextmanager
def shared_process(folder: Path, launch: Callable[[int], Launch], port: int = 0) -> Iterator[Shared]:
    """Use the process of a folder meanwhile. `launch` gets its port: the given one, or with 0 any that is free.

    Raises OSError where it cannot be started, and Refusal for a port that is taken.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _opened(folder / "users.lock") as users:
        with _opened(folder / "start.lock") as start, _opened(folder / "alive.lock") as alive:
            fcntl.flock(start, fcntl.LOCK_EX)
            if not _waited(partial(_locked, users, fcntl.LOCK_SH), 2 * _ENDING):
                raise TimeoutError(f"the earlier process of {folder} does not end")
            child = _start(folder, launch, port, alive) if _locked(alive, fcntl.LOCK_EX) else None
        shared = Shared(folder, int((folder / "port").read_text()))
        try:
            yield shared
        finally:
            is_last = _locked(users, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_UN)
            if is_last:
                _waited(lambda: not shared.is_alive(), _ENDING)
            if child and child.poll() is None:
                child.returncode = 0  # it ends after its other users, and nobody waits for it


def _start(folder: Path, launch: Callable[[int], Launch], port: int, alive: int) -> "subprocess.Popen[bytes]":
    """Start it with its bound port as standard input, so that nobody else can have the port in between."""
    try:
        bound = socket.create_server((HOST, port))
    except OSError as error:
        message = f"Port {port} of {HOST} cannot be used: {error.strerror}."
        raise Refusal("port", message, "Name another --port.") from None
    with bound, (folder / "server.log").open("wb") as log:
        port = bound.getsockname()[1]
        (folder / "port").write_text(str(port))
        arguments, variables = launch(port)
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(_OWN)}
        command = [sys.executable, "-P", "-m", __name__, str(folder.resolve() / "users.lock"), *arguments]
        return subprocess.Popen(
            command,
            env={**inherited, **variables},
            cwd=folder,  # where no settings of another folder are read
            stdin=bound.fileno(),
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for its users
            pass_fds=(alive,),
        )


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process meanwhile."""
    before = dict(zip(variables, map(os.environ.get, variables), strict=True))
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _waited(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return holds


def _end_without_users(lock: str) -> None:
    """End this process once it has no users; new ones wait for that meanwhile."""
    fcntl.flock(os.open(lock, os.O_RDWR), fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ENDING)
    os._exit(1)


if __name__ == "__main__":
    lock, *sys.argv = sys.argv[1:]
    threading.Thread(target=_end_without_users, args=(lock,), daemon=True).start()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
