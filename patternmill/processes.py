"""Processes of this machine: whether one lives or is stopped, what it is, and how this one collects garbage.

As /proc shows them where something rests on it: psutil's time of birth moves when the clock is set.
"""

from __future__ import annotations

import gc
import os
import shlex
import socket
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from patternmill.passwords import mask_passwords

#: Characters of a command.
_MOST_SHOWN = 120


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


def described(pid: int) -> str:
    """For people: its number, its command and since when it runs, as far as that can be seen."""
    import psutil  # no other caller needs it

    try:
        process = psutil.Process(pid)
        command, since = shlex.join(process.cmdline()), datetime.fromtimestamp(process.create_time(), UTC)
    except psutil.Error:
        return f"process {pid}"
    return f"process {pid} (`{mask_passwords(command)[:_MOST_SHOWN]}`, since {since:%Y-%m-%d %H:%M} UTC)"


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
