"""Who drives a catalog: one run at a time, a dead one is taken over, and the one taken over can write no more."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from patternmill.errors import Overlap, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Hold, Ledger
from patternmill.ledger.writer import LedgerWriter

#: How often a holder shows that it lives, and how long a silent one is watched before it is taken over.
BEAT = timedelta(seconds=2)
SILENCE = timedelta(seconds=20)


@dataclass(frozen=True)
class Holder:
    """A process, named so that another one on the same machine can see whether it is alive."""

    machine: str
    pid: int
    #: The kernel's start time of the process: a PID is given out again.
    born: str

    @classmethod
    def this_process(cls) -> Holder:
        return cls(_machine(), os.getpid(), _birth(os.getpid()))

    def is_surely_dead(self) -> bool:
        """Whether it ran on this machine and no longer does; False when that cannot be known from here."""
        return self.machine == _machine() and _birth(self.pid) != self.born


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    # Processes in different PID namespaces (containers) cannot see one another.
    space = Path("/proc/self/ns/pid")
    known = (boot.read_text().strip(), str(space.readlink())) if boot.exists() and space.exists() else ()
    return "/".join((socket.gethostname(), *known))


def _birth(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty when there is none, or it is dead and unburied."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _alive(pid)
    return "" if fields[0] in "ZX" else fields[19]


def _alive(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"


async def take_hold(
    ledger: Ledger,
    environment: str,
    catalog: str,
    run_id: RunId,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Hold:
    """Take the catalog for a run. Raises Overlap when another run drives it, within two beats of that one.

    Whether a holder lives is seen from its beats alone, never from a clock: clocks jump.
    """
    watched: tuple[int, int] | None = None
    silent = timedelta(0)
    step = timedelta(seconds=0.5)
    while True:
        lease = ledger.holder(environment, catalog)
        if lease is None or is_free(lease[2]) or silent >= SILENCE:
            with ledger.transaction():
                me = json.dumps(asdict(Holder.this_process()))
                hold = ledger.take(environment, catalog, run_id, me, over=None if lease is None else lease[0])
            if hold is not None:
                return hold
            continue
        fence, holding_run, _, beats = lease
        if watched is not None and watched != (fence, beats):
            raise Overlap(
                f"The catalog {catalog!r} ({environment}) is being driven by run {holding_run}.",
                remedy="Nothing was begun. Wait until that run has ended (`patternmill status`), then run again.",
            )
        watched = (fence, beats)
        await sleep(step.total_seconds())
        silent += step


def is_free(holder: str) -> bool:
    """Whether nobody holds a lease, or surely a dead process; one of another machine is taken to live."""
    return not holder or Holder(**json.loads(holder)).is_surely_dead()


class Heart:
    """Beats for a hold while a run lives; `lost` is set once the hold, or the ledger, is gone."""

    def __init__(self, writer: LedgerWriter, on_loss: Callable[[PatternmillError], None]) -> None:
        self._writer = writer
        self._on_loss = on_loss
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _beat(self) -> None:
        hold = self._writer.hold
        assert hold is not None, "a heart beats for a hold"
        try:
            while True:
                await self._writer.write(lambda ledger: ledger.beat(hold))
                await asyncio.sleep(BEAT.total_seconds())
        except PatternmillError as error:
            self._on_loss(error)
