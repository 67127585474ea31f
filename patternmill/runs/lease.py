"""Who drives a catalog: one run at a time, a dead one is taken over, and the one taken over can write no more."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta

from patternmill.errors import LedgerUnavailable, Overlap, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Lease, Ledger
from patternmill.ledger.processes import birth, is_stopped, kill, machine
from patternmill.ledger.writer import LedgerWriter

logger = logging.getLogger(__name__)

#: How often a holder shows that it lives, and how long a silent one is watched before it is taken over.
BEAT = timedelta(seconds=2)
SILENCE = timedelta(seconds=20)


@dataclass(frozen=True)
class LeaseHolder:
    """A process, named so that another one on the same machine can see whether it is alive."""

    machine: str
    pid: int
    #: The kernel's start time of the process: a PID is given out again.
    born: str

    @classmethod
    def this_process(cls) -> LeaseHolder:
        return cls(machine(), os.getpid(), birth(os.getpid()))

    def is_surely_dead(self) -> bool:
        """Whether it ran on this machine and no longer does; False when that cannot be known from here."""
        return self.machine == machine() and birth(self.pid) != self.born

    def is_stopped(self) -> bool:
        """Whether it was stopped (SIGSTOP), as far as that can be seen from here."""
        return self.machine == machine() and birth(self.pid) == self.born and is_stopped(self.pid)


async def take_lease(
    ledger: Ledger,
    environment: str,
    catalog: str,
    run_id: RunId,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Lease:
    """Take the catalog for a run. Raises Overlap when another run drives it, within two beats of that one.

    Whether a holder lives is seen from its beats alone, never from a clock: clocks jump. One that stands still inside a
    transaction, and so keeps everybody from writing, is ended.
    """
    watched: tuple[int, int] | None = None
    silent = timedelta(0)
    step = timedelta(seconds=0.5)
    while True:
        lease = await asyncio.to_thread(ledger.holder, environment, catalog)
        if lease is None or is_free(lease[2]) or silent >= SILENCE:
            if lease is not None and lease[2]:
                await asyncio.to_thread(_unlock, ledger, lease[1], LeaseHolder(**json.loads(lease[2])))
            over = None if lease is None else lease[0]
            hold = await asyncio.to_thread(_take, ledger, environment, catalog, run_id, over)
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


def _take(ledger: Ledger, environment: str, catalog: str, run_id: RunId, over: int | None) -> Lease | None:
    with ledger.transaction():
        return ledger.take(
            environment, catalog, run_id, json.dumps(asdict(LeaseHolder.this_process())), over=over
        )


def _unlock(ledger: Ledger, run_id: str, holder: LeaseHolder) -> None:
    """End a holder that is being taken over, where it was stopped inside a transaction.

    Its lock would keep all from writing, and what it wrote after this would not count anyway.
    """
    if not holder.is_stopped() or ledger.database.locked_by() != holder.pid:
        return
    what = f"Run {run_id} was stopped (process {holder.pid}) while it had the ledger locked"
    try:
        gone = kill(holder.pid, holder.born)
    except PermissionError:
        gone = False
    if not gone:
        raise LedgerUnavailable(
            f"{what}, and this process may not end it.",
            remedy=f"Nothing is lost. Let it go on (`kill -CONT {holder.pid}`) or end it (`kill -KILL {holder.pid}`) "
            "as its owner, then run the same command again.",
        )
    logger.warning(
        "%s. It was silent for %.0f s and is taken over: it was ended.", what, SILENCE.total_seconds()
    )


def is_free(holder: str) -> bool:
    """Whether nobody holds a lease, or surely a dead process; one of another machine is taken to live."""
    return not holder or LeaseHolder(**json.loads(holder)).is_surely_dead()


class LeaseHeartbeat:
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
