"""Who drives a catalog: one run at a time, a dead one is taken over, and the one taken over can write no more."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from patternmill.errors import LedgerError, Overlap, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.catalogs import RETRY_OF
from patternmill.ledger.ledger import Ledger, LedgerWriter, every_ledger
from patternmill.ledger.records import Lease
from patternmill.ledger.spending import Spent
from patternmill.processes import birth, machine
from patternmill.settings import Settings

logger = logging.getLogger(__name__)

#: How often a holder renews its lease, and how long one without heartbeats is watched before it is taken over.
HEARTBEAT_INTERVAL = timedelta(seconds=2)
TAKEOVER_AFTER = timedelta(seconds=20)
#: How long one is watched before its run is taken for crashed, where nobody waits for its catalog.
_WATCHED_FOR = timedelta(seconds=60)


def this_process(flow_run_id: str | None = None) -> dict[str, Any]:
    """How a holder names itself, so that another process on the same machine can see whether it is alive.

    `born` is the kernel's start time, as PIDs are reused. `flow_run_id`: of a run that a deployment began, which can be
    begun again.
    """
    pid = os.getpid()
    return {"machine": machine(), "pid": pid, "born": birth(pid), "flow_run_id": flow_run_id}


def holder_of(lease: Lease) -> dict[str, Any]:
    """Of a lease that was not released."""
    return dict(json.loads(lease.holder))


def is_surely_dead(holder: Mapping[str, Any]) -> bool:
    """Whether it ran on this machine and no longer does; False when that cannot be known from here."""
    return bool(holder["machine"] == machine() and birth(holder["pid"]) != holder["born"])


async def acquire_lease(
    ledger: Ledger,
    environment: str,
    catalog: str,
    run_id: RunId,
    flow_run_id: str | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Lease:
    """The lease of a catalog, for a run. Raises Overlap, within two heartbeats, when another run drives it.

    `flow_run_id`: of a run that a deployment began. Whether a holder lives is seen from its heartbeats alone, never
    from a clock: clocks jump. Raises LedgerUnavailable while one that is stopped inside a transaction keeps everybody
    from writing: a person ends it.
    """
    me = json.dumps(this_process(flow_run_id))

    def claim(over: Lease | None) -> Lease | None:
        """Of one that is free, or without heartbeats; None when another process was quicker."""
        with ledger.transaction():
            return ledger.catalogs.claim_lease(environment, catalog, run_id, me, over=over)

    seen: Lease | None = None
    watched = timedelta(0)
    step = timedelta(seconds=0.5)
    while True:
        held = await asyncio.to_thread(ledger.catalogs.lease, environment, catalog)
        is_taken = held is not None and not is_free(held)
        if held and seen and is_taken and (seen.fence, seen.beats) != (held.fence, held.beats):
            raise Overlap(
                f"The catalog {catalog!r} ({environment}) is being driven by run {held.run_id}.",
                remedy="Nothing was begun. Wait until that run has ended (`patternmill status`), then run again.",
            )
        if not is_taken or watched >= TAKEOVER_AFTER:
            lease = await asyncio.to_thread(claim, held)
            if lease is not None:
                return lease
            continue
        seen = held
        await sleep(step.total_seconds())
        watched += step


def is_free(lease: Lease) -> bool:
    """Whether a lease has no holder, or surely a dead one; one of another machine counts as alive."""
    return not lease.holder or is_surely_dead(holder_of(lease))


async def release_lease(writer: LedgerWriter) -> None:
    """Of a run that begins nothing, or has ended; its writer is closed with it."""
    lease = writer.lease
    assert lease is not None, "the writer of a run has its lease"
    writer.shorten_wait()
    with suppress(LedgerError):
        await writer.write(lambda ledger: ledger.catalogs.release_lease(lease))
    await writer.close()


class LeaseHeartbeat:
    """Renews the lease of a run while it lives; `on_loss` is called once the lease, or the ledger, is lost."""

    def __init__(
        self, writer: LedgerWriter, on_loss: Callable[[PatternmillError], None] = lambda error: None
    ) -> None:
        self._writer = writer
        self.on_loss = on_loss
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _beat(self) -> None:
        lease = self._writer.lease
        assert lease is not None, "the writer of a run has its lease"
        try:
            while True:
                await self._writer.write(lambda ledger: ledger.catalogs.renew_lease(lease))
                await asyncio.sleep(HEARTBEAT_INTERVAL.total_seconds())
        except PatternmillError as error:
            self.on_loss(error)


#: The lease of a run that a deployment began, whether that is a retry, and what was reserved for its requests.
DeployedRun = tuple[Lease, bool, Spent]


async def crashed_runs(
    settings: Settings, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> list[DeployedRun]:
    """The runs of deployments whose leases have neither heartbeats nor an end, and that nobody asked to stop."""
    seen = await asyncio.to_thread(_deployed_runs, settings)
    if all(is_surely_dead(holder_of(lease)) for lease, *_ in seen):
        return seen
    await sleep(_WATCHED_FOR.total_seconds())
    beats = {(lease.run_id, lease.beats) for lease, *_ in seen}
    later = await asyncio.to_thread(_deployed_runs, settings)
    return [
        (lease, is_retry, spent)
        for lease, is_retry, spent in later
        if (lease.run_id, lease.beats) in beats or is_surely_dead(holder_of(lease))
    ]


def _deployed_runs(settings: Settings) -> list[DeployedRun]:
    found = []
    for ledger in every_ledger(settings):
        for lease in ledger.catalogs.held_leases():
            if holder_of(lease)["flow_run_id"] is not None and lease.stop is None:
                record = ledger.runs.get(lease.run_id)
                is_retry = record is not None and RETRY_OF in record.options
                found.append((lease, is_retry, ledger.purchases.spent_by_run(lease.run_id)))
    return found
