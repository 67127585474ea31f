"""Leases of catalogs: one run at a time drives a catalog, a dead run's is taken over, a pause waits for live ones."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from patternmill.errors import ConfigurationError, LedgerError, Overlap, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.brake import Pause
from patternmill.ledger.catalogs import RETRY_OF
from patternmill.ledger.ledger import Ledger, LedgerWriter, every_ledger
from patternmill.ledger.records import TAKEOVER_AFTER, Lease, holder_of, is_free, is_surely_dead, this_process
from patternmill.ledger.spending import Spent
from patternmill.settings import Settings

#: How often a holder renews its lease.
HEARTBEAT_INTERVAL = timedelta(seconds=2)
#: The time between two looks at a lease that another process holds.
_WATCH_STEP = timedelta(seconds=0.5)
#: How long the lease of a deployment's run is watched before the run counts as crashed.
_WATCHED_FOR = timedelta(seconds=60)
#: The time between two looks at which runs have acknowledged a pause.
_STEP = timedelta(seconds=0.2)


async def acquire_lease(
    ledger: Ledger,
    environment: str,
    catalog: str,
    run_id: RunId,
    flow_run_id: str | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Lease:
    """Take the lease of a catalog for a run. Raises Overlap, within two heartbeats, when another run drives it.

    `flow_run_id` names the flow run of a run that a deployment began. Raises LedgerUnavailable while a holder that is
    stopped inside a transaction keeps everybody from writing: a person ends it.
    """
    me = json.dumps(this_process(flow_run_id))

    def claim(over: Lease | None) -> Lease | None:
        """Take a lease that is free, or without heartbeats; return None when another process was quicker."""
        with ledger.transaction():
            return ledger.catalogs.claim_lease(environment, catalog, run_id, me, over=over)

    before: Lease | None = None
    watched = timedelta(0)
    while True:
        held = await asyncio.to_thread(ledger.catalogs.lease, environment, catalog)
        is_seen_alive = held is not None and before is not None and held != before
        if held is None or is_free(held) or (watched >= TAKEOVER_AFTER and not is_seen_alive):
            lease = await asyncio.to_thread(claim, held)
            if lease is not None:
                return lease
            continue
        if is_seen_alive:
            raise Overlap(
                f"The catalog {catalog!r} ({environment}) is being driven by run {held.run_id}.",
                remedy="Nothing was begun. Wait until that run has ended (`patternmill status`), then run again.",
            )
        # The time is counted in steps and not read from a clock, as clocks jump.
        before, watched = held, watched + _WATCH_STEP
        await sleep(_WATCH_STEP.total_seconds())


@asynccontextmanager
async def hold_lease(ledger: Ledger, environment: str, catalog: str, purpose: str) -> AsyncIterator[Lease]:
    """Hold the lease of a catalog outside of a run, under an ID that begins with the purpose. Raises Overlap."""
    run_id = RunId(f"{purpose}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
    lease = await acquire_lease(ledger, environment, catalog, run_id)
    try:
        yield lease
    finally:
        with ledger.transaction(lease):
            ledger.catalogs.release_lease(lease)


async def release_lease(writer: LedgerWriter) -> None:
    """Release the lease of a run that begins nothing, or has ended, and close its writer."""
    lease = writer.lease
    assert lease is not None, "the writer of a run has its lease"
    writer.shorten_wait()
    with suppress(LedgerError):
        await writer.write(lambda ledger: ledger.catalogs.release_lease(lease))
    await writer.close()


def pause_after_beat(writer: LedgerWriter) -> float:
    """Return the seconds until the next beat, fewer while somebody who has set the brake waits for it."""
    return (HEARTBEAT_INTERVAL / 10 if writer.is_awaited else HEARTBEAT_INTERVAL).total_seconds()


class LeaseHeartbeat:
    """Renews the lease of a run while it lives; calls `on_loss` once the lease, or the ledger, is lost."""

    def __init__(
        self, writer: LedgerWriter, on_loss: Callable[[PatternmillError], None] = lambda error: None
    ) -> None:
        """Begin at once, within a running loop."""
        self.on_loss = on_loss
        self._task = asyncio.create_task(self._beat(writer))

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _beat(self, writer: LedgerWriter) -> None:
        lease = writer.lease
        assert lease is not None, "the writer of a run has its lease"
        try:
            while True:
                await writer.write_beat(lambda ledger, brake: ledger.catalogs.renew_lease(lease, brake))
                await asyncio.sleep(pause_after_beat(writer))
        except PatternmillError as error:
            self.on_loss(error)


@dataclass(frozen=True)
class DeployedRun:
    """A run that a deployment began and that holds a lease."""

    lease: Lease
    is_retry: bool
    #: What was reserved for its requests, and not released.
    spent: Spent


async def crashed_runs(
    settings: Settings, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> list[DeployedRun]:
    """Return the runs of deployments that have neither heartbeats nor an end, and that nobody asked to stop."""
    before = await asyncio.to_thread(_deployed_runs, settings)
    if all(is_surely_dead(holder_of(run.lease)) for run in before):
        return before
    await sleep(_WATCHED_FOR.total_seconds())
    beats = {(run.lease.run_id, run.lease.beats) for run in before}
    return [
        run
        for run in await asyncio.to_thread(_deployed_runs, settings)
        if (run.lease.run_id, run.lease.beats) in beats or is_surely_dead(holder_of(run.lease))
    ]


def _deployed_runs(settings: Settings) -> list[DeployedRun]:
    """Return the runs of deployments that hold a lease, and that nobody asked to stop."""
    runs = []
    for ledger in every_ledger(settings):
        for lease in ledger.catalogs.held_leases():
            if holder_of(lease)["flow_run_id"] is not None and lease.stop is None:
                record, spent = ledger.runs.get(lease.run_id), ledger.purchases.spent_by_run(lease.run_id)
                runs.append(DeployedRun(lease, record is not None and RETRY_OF in record.options, spent))
    return runs


def pause(
    settings: Settings,
    asked: Pause,
    on_wait: Callable[[list[str]], None] = lambda runs: None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Pause]:
    """Pause what is asked in every ledger of the home; return the pauses once nothing paused is created any more.

    `on_wait` is called with the runs that are waited for, each time that these change. If this is interrupted, the
    pause stays. Raises ConfigurationError where there is no ledger, or none that has had such a run.
    """
    if not any(ledger.brake.has_runs(asked) for ledger in _ledgers(settings)):
        raise ConfigurationError(
            f"There was no run of {asked.scope}: nothing is paused.",
            remedy="Write the name as `patternmill status` has it, or leave it out to pause everything.",
        )
    pauses = []
    for ledger in _ledgers(settings):
        pause, count = ledger.brake.set(asked)
        looks, before = Counter[tuple[object, ...]](), list[str]()
        while awaited := _awaited(ledger, pause, count, looks):
            if awaited != before:
                on_wait(awaited)
            before = awaited
            sleep(_STEP.total_seconds())
        pauses.append(pause)
    return pauses


def _awaited(ledger: Ledger, pause: Pause, count: int, looks: Counter[tuple[object, ...]]) -> list[str]:
    """Return, as people read them, the runs that have not acknowledged a pause and may still send what they began.

    A run without heartbeats for as long as a takeover waits sends nothing any more: `looks` counts how often its lease
    was seen unchanged. The ledger tells which groups of rows on other machines have heartbeats.
    """
    runs, groups = list[str](), list[str]()
    for lease in ledger.brake.holders_without(count):
        if not pause.covers(lease.environment, lease.catalog):
            continue
        run = f"run {lease.run_id} of {lease.catalog!r} ({lease.environment})"
        if lease.group is not None:
            groups.append(f"group {lease.group} of {run}")
            continue
        seen = lease.environment, lease.catalog, lease.fence, lease.beats
        if looks[seen] * _STEP < TAKEOVER_AFTER:
            runs.append(run)
        looks[seen] += 1
    return [*runs, *groups]


def unpause(settings: Settings, environment: str, catalog: str, who: str) -> tuple[list[Pause], list[Pause]]:
    """Lift the pause of exactly this in every ledger of the home; return what was lifted, and what is still paused."""
    lifted, left = list[Pause](), list[Pause]()
    for ledger in _ledgers(settings):
        pause = ledger.brake.lift(environment, catalog, who)
        lifted += [pause] if pause is not None else []
        left += ledger.brake.pauses()
    return lifted, left


def _ledgers(settings: Settings) -> Iterator[Ledger]:
    ledger = None
    for ledger in every_ledger(settings):
        yield ledger
    if ledger is None:
        raise ConfigurationError(
            f"There is no ledger in {settings.home}: nothing was imported from here yet, and nothing runs.",
            remedy="Go to the folder of the runs, or set PATTERNMILL_HOME or PATTERNMILL_LEDGER_URL.",
        )
