"""A server process that all commands on one home share: started by the first, gone with the last.

Three lock files in its directory see to that, all by `flock`, which the kernel releases however a process ends:

- `start.lock`: locked while a command decides whether to start the process or to use the running one;
- `users.lock`: shared by all users; the process itself waits for the exclusive lock, and ends when it gets it;
- `server.lock`: passed to the process and locked as long as it lives.

Its port is bound once, and handed on as its standard input, as inetd does. Who starts it keeps the port as well: after
a crash no other user's process gets what is still sent there.
"""

from __future__ import annotations

import fcntl
import math
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import create_server, socket
from typing import ClassVar, Self

from patternmill.errors import PatternmillError
from patternmill.files import make_home, private_folder
from patternmill.processes import collect_rarely

HOST = "127.0.0.1"
#: How long an orderly shutdown may take; one that was frozen does not end by itself.
END_SECONDS = 5.0
#: The first start of a Prefect server makes its database, which is slow on a slow disk.
READY_SECONDS = 120.0
_LOG_TAIL_LINES = 12
#: Not inherited: settings meant for the run, and its secrets.
_FOREIGN_VARIABLES = ("PREFECT_", "PATTERNMILL_", "STUDIO_", "PYTHONPATH")

#: Tests replace it, to fork the process from one that has imported it all.
start_process: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen


class SharedProcess(ABC):
    """One user of the process of a directory. A subclass says what it serves."""

    title: ClassVar[str]
    #: What else a person can do when it does not serve: the end of a sentence.
    remedy: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log_path = directory / "server.log"
        #: The process and its port, if this user started it.
        self.child: subprocess.Popen[bytes] | None = None
        self._listener: socket | None = None
        self._use: int | None = None

    @abstractmethod
    def prepared(self) -> tuple[socket, Sequence[str], Mapping[str, str]]:
        """Return the bound socket, arguments and environment of the process, which is about to be started."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether it answers."""

    def start(self) -> Self:
        """Start it, or join the running one; it may not answer yet. Raises PatternmillError for a taken port."""
        if self._use is not None:
            return self
        make_home(self.directory.parent)
        private_folder(self.directory)
        with _opened(self.directory / "start.lock") as start:
            fcntl.flock(start, fcntl.LOCK_EX)
            self._use = self._lock_as_user()
            try:
                with _opened(self.directory / "server.lock") as life:
                    if _try_lock(life, fcntl.LOCK_EX):
                        self._start(life)
            except BaseException:
                self.stop()
                raise
        return self

    def wait_ready(self) -> None:
        """Return when it answers. Raises PatternmillError, with the end of its log, if it does not."""
        self._wait_until(self.is_ready, READY_SECONDS)

    def wait_end(self, stop: threading.Event) -> None:
        """Return when `stop` is set. Raises PatternmillError when the process ends before."""
        self._wait_until(lambda: stop.wait(0.5), math.inf)

    def stop(self) -> None:
        """Leave. The process ends with its last user, which waits for that if it started it."""
        if self._use is None:
            return
        is_last = _try_lock(self._use, fcntl.LOCK_EX)
        os.close(self._use)
        self._use = None
        if self._listener is None or self.child is None:
            return
        self._listener.close()
        if not is_last:
            self.child.returncode = 0  # it ends after its users; nobody waits for it
            return
        try:
            self.child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def __enter__(self) -> Self:
        try:
            self.start().wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def is_alive(self) -> bool:
        """Return whether the process runs, whoever started it."""
        if self.child is not None:
            return self.child.poll() is None
        with _opened(self.directory / "server.lock") as life:
            return not _try_lock(life, fcntl.LOCK_SH)

    def _wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if not self.is_alive():
                raise self._failure("ended.")
            if time.monotonic() > deadline:
                raise self._failure(f"did not answer within {seconds:.0f} s.")
            time.sleep(0.05)

    def _failure(self, message: str) -> PatternmillError:
        """Return an error that ends with the end of the log."""
        log = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        tail = "\n".join(f"    {line}" for line in log.splitlines()[-_LOG_TAIL_LINES:])
        return PatternmillError(
            f"{self.title} {message} Its log ends with:\n{tail}\n",
            code="own_server",
            remedy=f"See {self.log_path}, or {self.remedy}",
        )

    def _lock_as_user(self) -> int:
        use = os.open(self.directory / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + 2 * END_SECONDS
        while not _try_lock(use, fcntl.LOCK_SH):
            if time.monotonic() > deadline:
                os.close(use)
                raise self._failure("of an earlier command does not end; end it by hand.")
            time.sleep(0.05)
        return use

    def _start(self, life: int) -> None:
        self._listener, arguments, environment = self.prepared()
        inherited = {n: text for n, text in os.environ.items() if not n.startswith(_FOREIGN_VARIABLES)}
        child = [sys.executable, "-P", "-m", __name__, str(self.directory / "users.lock"), *arguments]
        with private_log(self.log_path) as log:
            self.child = start_process(
                child,
                env={**inherited, **environment},
                cwd=self.directory,
                stdin=self._listener,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal must not end it before the run has.
                start_new_session=True,
                pass_fds=(life,),
            )


def bound_socket(port: int = 0) -> socket:
    """Return a socket that listens on `port`; 0: on any free one. Raises PatternmillError when the port is taken."""
    try:
        return create_server((HOST, port))
    except OSError as error:
        raise PatternmillError(
            f"Port {port} of {HOST} cannot be used: {os.strerror(error.errno or 0)}.",
            code="port",
            remedy="Name another --port.",
        ) from error


@contextmanager
def private_log(path: Path) -> Iterator[int]:
    """Open an empty log for a process to write to; the earlier one is kept beside it."""
    if path.exists():
        path.replace(path.with_name(f"earlier-{path.name}"))
    with _opened(path, os.O_APPEND) as log:
        yield log


@contextmanager
def _opened(path: Path, how: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | how, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main() -> None:
    """Run a module until it has no users: `python -P -m prefect_host.shared_process USERS_LOCK MODULE ARGUMENT...`."""
    lock, *sys.argv = sys.argv[1:]
    threading.Thread(target=_end_without_users, args=(lock,), daemon=True).start()
    collect_rarely()  # a fifth of the time that Prefect takes to load
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end_without_users(lock: str) -> None:
    """Block until there are no users, then end this process; the exclusive lock keeps new users waiting meanwhile."""
    fcntl.flock(os.open(lock, os.O_RDWR), fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
