"""Processes of this machine: whether one lives or is stopped, who has a file locked, and how this one collects garbage.

As /proc shows them, not psutil: its time of birth moves when the clock is set, and it does not show who has a file
locked.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_LOCKS = Path("/proc/locks")


@cache
def boot_id() -> str | None:
    """The kernel's name for the time since this machine was started; None where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def uptime() -> float:
    """Seconds of a clock that nobody can set and that no suspension of the machine stops, where the system has one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def machine() -> str:
    """A name for this machine, or container: processes with another one cannot be seen from here."""
    # Processes in different PID namespaces (containers) cannot see one another.
    boot, space = boot_id(), Path("/proc/self/ns/pid")
    known = (boot, str(space.readlink())) if boot and space.exists() else ()
    return "/".join((socket.gethostname(), *known))


def birth(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty when it does not exist, or is a zombie."""
    fields = _stat(pid)
    if fields is None:
        return "" if Path("/proc/self/stat").exists() else _alive(pid)
    return "" if fields[0] in "ZX" else fields[19]


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal or a debugger, and does nothing until it is continued."""
    fields = _stat(pid)
    return fields is not None and fields[0] in "Tt"


def write_locker(file: Path, places: Iterable[int]) -> int | None:
    """The PID that has one of these bytes of a file locked for writing; None: none, or it cannot be seen."""
    try:
        inode, lines = str(file.stat().st_ino), _LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        # 1: POSIX  ADVISORY  WRITE 4711 08:01:131074 120 120
        fields = line.split()
        if "->" in fields or len(fields) < 8 or fields[3] != "WRITE" or fields[5].split(":")[-1] != inode:
            continue
        end = sys.maxsize if fields[7] == "EOF" else int(fields[7])
        if any(int(fields[6]) <= place <= end for place in places) and int(fields[4]) > 0:
            return int(fields[4])
    return None


def kill(pid: int, born: str, *, timeout: float = 5.0) -> bool:
    """End a process, if it still is the one that was born then; returns whether it is gone.

    Raises PermissionError.
    """
    try:
        opened = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if birth(pid) != born:
            return True
        signal.pidfd_send_signal(opened, signal.SIGKILL)
    except ProcessLookupError:
        return True
    finally:
        os.close(opened)
    until = time.monotonic() + timeout
    while birth(pid) == born and time.monotonic() < until:
        time.sleep(0.02)
    return birth(pid) != born


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on."""
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


#: New objects before a look at the youngest; at Python's default of 700 a run spends much of its CPU time on it.
_YOUNGEST = 100_000


def collect_rarely() -> None:
    """For this process, from now on; what has no cycles is freed at once all the same."""
    gc.set_threshold(_YOUNGEST, 50, 100)


def collect_no_more() -> None:
    """For a process that is about to end: its last look takes half a second after Prefect was loaded."""
    gc.freeze()
