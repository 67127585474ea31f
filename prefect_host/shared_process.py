"""A server process that all commands on one home share: started by the first, ended with the last.

Three lock files in its directory see to that, all by `flock`, which the kernel releases however a process ends:

- `start.lock`: locked while a command decides whether to start the process or to join the running one;
- `users.lock`: shared by all users; the process itself waits for the exclusive lock, and ends when it gets it;
- `server.lock`: passed to the process and locked as long as it lives.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import socket

from patternmill.errors import PatternmillError
from patternmill.files import keep_private, private_folder

#: Run by its path, and with `-P`, so that it does not import from the caller's directory.
CHILD_PROCESS = Path(__file__).with_name("child_process.py")
#: A process that ends takes up to `child_process.SHUTDOWN_SECONDS`.
END_SECONDS = 15.0
LOG_LIMIT = 2_000_000
LOG_TAIL_LINES = 12
#: Not inherited: settings meant for the run, and its secrets.
FOREIGN_VARIABLES = ("PREFECT_", "PATTERNMILL_", "STUDIO_", "PYTHONPATH")

#: Tests replace it, to fork the process from one that has imported it all.
start_process: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen

#: Processes of this one that other users go on using: a Popen that is dropped warns that its process runs.
_SERVES_OTHERS: list[subprocess.Popen[bytes]] = []


class SharedProcess:
    """One user of the process of a directory."""

    def __init__(self, directory: Path, title: str) -> None:
        self.directory = directory
        self.title = title
        self.log_path = directory / "server.log"
        #: The process, if this user started it.
        self.child: subprocess.Popen[bytes] | None = None
        #: Whether there were no other users when this one joined.
        self.was_alone = False
        self._user_lock: int | None = None

    @property
    def is_in_use(self) -> bool:
        return self._user_lock is not None

    def start_or_join(
        self,
        listen: Callable[[], socket],
        arguments: Callable[[], Sequence[str]],
        environment: Callable[[], dict[str, str]],
    ) -> bool:
        """Use the running process, or start it with what the callables then return; returns whether it started it."""
        keep_private(self.directory.parent)
        private_folder(self.directory)
        with _locked(self.directory / "start.lock"):
            if self._user_lock is None:
                self._user_lock = self._lock_as_user()
            life = _open_lock(self.directory / "server.lock")
            try:
                if not _try_lock(life, fcntl.LOCK_EX):
                    return False
                self._launch(listen(), arguments(), environment(), life)
                return True
            finally:
                os.close(life)

    def release(self) -> None:
        """Leave. The last user waits for the end of the process."""
        if self._user_lock is None:
            return
        was_last = _try_lock(self._user_lock, fcntl.LOCK_EX)
        os.close(self._user_lock)
        self._user_lock = None
        if was_last:
            self._await_end()
        elif self.child is not None:
            _SERVES_OTHERS.append(self.child)

    def is_alive(self) -> bool:
        if self.child is not None and self.child.poll() is None:
            return True
        life = _open_lock(self.directory / "server.lock")
        try:
            return not _try_lock(life, fcntl.LOCK_SH)
        finally:
            os.close(life)

    def failure(self, message: str, remedy: str) -> PatternmillError:
        """An error that ends with the end of the log."""
        tail = "\n".join(f"    {line}" for line in _last_lines(self.log_path, LOG_TAIL_LINES))
        return PatternmillError(
            f"{self.title} {message} Its log ends with:\n{tail}\n",
            code="own_server",
            remedy=f"See {self.log_path}, or {remedy}",
        )

    def _lock_as_user(self) -> int:
        hold = _open_lock(self.directory / "users.lock")
        self.was_alone = _try_lock(hold, fcntl.LOCK_EX)
        deadline = time.monotonic() + END_SECONDS
        while not _try_lock(hold, fcntl.LOCK_SH):
            if time.monotonic() > deadline:
                os.close(hold)
                raise self.failure("of an earlier run does not end.", "end it by hand.")
            time.sleep(0.05)
        return hold

    def _launch(
        self, listener: socket, arguments: Sequence[str], environment: dict[str, str], life: int
    ) -> None:
        if self.child is not None:
            # Its lock is free: it is ending.
            self.child.wait(END_SECONDS)
        with open_log(self.log_path) as log:
            self.child = start_process(
                [sys.executable, "-P", str(CHILD_PROCESS), str(self.directory / "users.lock"), *arguments],
                env=_inherited() | environment,
                cwd=self.directory,
                stdin=listener,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal must not end it before the run has.
                start_new_session=True,
                pass_fds=(life,),
            )

    def _await_end(self) -> None:
        deadline = time.monotonic() + END_SECONDS
        while self.is_alive() and time.monotonic() < deadline and not self._is_frozen():
            time.sleep(0.02)
        if self.child is not None:
            if self.child.poll() is None:
                self.child.kill()
            self.child.wait()

    def _is_frozen(self) -> bool:
        """Stopped by a signal: it would not end by itself."""
        import psutil

        with suppress(psutil.Error):
            return self.child is not None and psutil.Process(self.child.pid).status() == psutil.STATUS_STOPPED
        return False


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_VARIABLES)}


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = _open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def open_log(path: Path) -> Iterator[int]:
    """A log for a process to append to; one that is too long is emptied."""
    too_long = path.exists() and path.stat().st_size > LOG_LIMIT
    how = os.O_TRUNC if too_long else os.O_APPEND
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _last_lines(path: Path, count: int) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()[-count:]
    except OSError:
        return []
