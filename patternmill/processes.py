"""Processes of this machine: whether one lives or is stopped, what it is, and how this one collects garbage.

What decides anything is read from /proc: psutil's time of birth moves when the clock is set.
"""

from __future__ import annotations

import gc
import os
import shlex
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

from patternmill.passwords import mask_passwords

T = TypeVar("T")

#: The number of characters of a command that are shown.
_MOST_SHOWN = 120


@cache
def boot_id() -> str | None:
    """Return the kernel's ID of this machine's current boot; None where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def uptime() -> float:
    """Return the seconds of a clock that nobody can set and that, if possible, runs while the machine sleeps, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def machine() -> str:
    """Return a name for this machine or container; processes under another name cannot be seen from here."""
    # Processes in different PID namespaces (containers) cannot see one another.
    boot, namespace = boot_id(), Path("/proc/self/ns/pid")
    details = (boot, str(namespace.readlink())) if boot and namespace.exists() else ()
    return "/".join((socket.gethostname(), *details))


def birth(pid: int) -> str:
    """Return the start time of a process in clock ticks since boot; empty where it does not exist or is a zombie."""
    fields = _stat(pid)
    if fields is None:
        return "" if Path("/proc/self/stat").exists() else _alive(pid)
    return "" if fields[0] in "ZX" else fields[19]


def is_stopped(pid: int) -> bool:
    """Return whether a signal or a debugger has stopped a process, which does nothing until it is continued."""
    fields = _stat(pid)
    return fields is not None and fields[0] in "Tt"


def described(pid: int) -> str:
    """Describe a process for people: its number, its command and its start, as far as they can be seen."""
    import psutil  # no other caller needs it

    try:
        process = psutil.Process(pid)
        command, since = shlex.join(process.cmdline()), datetime.fromtimestamp(process.create_time(), UTC)
    except psutil.Error:
        return f"process {pid}"
    return f"process {pid} (`{mask_passwords(command)[:_MOST_SHOWN]}`, since {since:%Y-%m-%d %H:%M} UTC)"


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _alive(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"


def run_within(seconds: float, work: Callable[[], T]) -> T:
    """Return what `work` returns. Raises Unfinished when the time is over, and leaves `work` to a daemon thread."""
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="work with a limit", daemon=True).start()
    wait([future], min(max(0.0, seconds), threading.TIMEOUT_MAX))
    if not future.done():
        raise Unfinished(f"not done within {seconds:.0f} s")
    return future.result()


class Unfinished(Exception):
    """The error of work that takes longer than it may."""


#: The number of new objects before the youngest are collected; at Python's default of 700 that takes much CPU time.
_YOUNGEST = 100_000


def collect_rarely() -> None:
    """Collect garbage rarely in this process; what has no cycles is freed at once all the same."""
    gc.set_threshold(_YOUNGEST, 50, 100)


def collect_no_more() -> None:
    """Collect no more garbage, as the process is about to end: with Prefect, a last collection takes half a second."""
    gc.freeze()
