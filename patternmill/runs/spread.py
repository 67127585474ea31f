"""A spread run: its rows in parts, each driven by a process elsewhere, and supervised by the run.

The run reads, checks, plans, keeps the lease, ends and publishes as any other. In between it assigns its parts, reads
in the ledger how far they are, assigns a lost one again, and in the end drives itself what no worker drove.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from patternmill.engine.progress import HaltReason, halts_from
from patternmill.engine.shards import rows_named
from patternmill.errors import LedgerError, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.leases import COORDINATOR
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import PartProgress
from patternmill.planning.partition import cut
from patternmill.planning.plan import PlannedRow
from patternmill.runs.assignment import assignment, assignments
from patternmill.runs.lease import TAKEOVER_AFTER
from patternmill.runs.part_worker import COUNTS, Part, PartWork
from patternmill.runs.run import Run
from patternmill.states import Outcome, PartState

logger = logging.getLogger(__name__)

#: A part is assigned to so many processes, one after the other, before the run drives it itself.
MOST_STARTS = 3
_INTERVAL = timedelta(seconds=1)
#: A part that no worker begins within this time is driven by the run itself: all workers are busy, or gone.
_PATIENCE = timedelta(seconds=90)
#: A stopped run waits so long for its parts to drain: Prefect kills its process 30 seconds after its signal.
_DRAIN = timedelta(seconds=17)
#: How long a part of which every row has ended may take to report it: its display must not delay the run.
_LINGERING = timedelta(seconds=60)
#: How often a worker pool is asked whether its process ended.
_ASK = timedelta(seconds=5)


@dataclass(frozen=True)
class PartGrant:
    """A part as it is assigned: what its process needs, and nothing secret."""

    run_id: RunId
    number: int
    grant: int
    environment: str
    #: Its rows, for people.
    name: str


class WorkerHandle(Protocol):
    """A process that a part was assigned to."""

    async def is_gone(self) -> bool:
        """Whether it certainly works no more, as far as its pool knows."""

    async def dismiss(self) -> None:
        """Stop waiting for it: if it has not begun, it should not."""

    async def await_end(self) -> None:
        """Wait for the end of a process that has reported the end of its part."""


class WorkerPool(Protocol):
    """Where processes for parts come from. May raise anything: then the run drives the part itself."""

    async def start(self, grant: PartGrant) -> WorkerHandle: ...


@dataclass
class _SupervisedPart:
    """A part as its run sees it."""

    number: int
    name: str
    rows: int
    worker: WorkerHandle | None = None
    starts: int = 0
    #: Its heartbeats when they last moved, and when that was.
    beats: int = -1
    seen_at: float = 0.0
    asked_at: float = 0.0
    #: When its last row was seen to have ended.
    rows_ended_at: float | None = None
    gone: bool = False
    local_task: asyncio.Task[None] | None = None
    #: It reported its end.
    ended: bool = False
    #: It is not waited for any more.
    done: bool = False


class PartSupervisor:
    """The parts of one run."""

    def __init__(
        self,
        run: Run,
        workers: WorkerPool,
        drive: Callable[[Part], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`drive`: how this process drives a part that no worker drives."""
        self._run, self._workers, self._drive = run, workers, drive
        self._clock, self._sleep = clock, sleep
        self._parts: list[_SupervisedPart] = []
        self._stopped_at: float | None = None

    async def work(self, parts: int) -> None:
        """Bring every row to its end through at most so many parts. Raises nothing for a row or a part."""
        rows = cut(self._run.plan, parts)
        try:
            await self._put_on_record(rows)
            for part in self._parts:
                await self._assign(part)
            while not self._over():
                await self._sleep(_INTERVAL.total_seconds())
                await self._check()
        except LedgerError as error:
            self._run.halt.begin(HaltReason(Outcome.FAILED, error.code, str(error)))
        finally:
            await self._dismiss_all()

    async def _put_on_record(self, parts: Sequence[Sequence[PlannedRow]]) -> None:
        run = self._run
        work = list(enumerate(assignments(run.spec, run.plan, parts), start=1))
        run_id = run.record.run_id
        await run.writer.write(lambda ledger: ledger.add_parts(run_id, [(COORDINATOR, "{}"), *work]))
        self._parts = [
            _SupervisedPart(number, rows_named(rows), len(rows)) for number, rows in enumerate(parts, start=1)
        ]

    async def _assign(self, part: _SupervisedPart) -> None:
        """Assign a part, for the first time or again; an earlier worker is fenced off."""
        lease = self._run.writer.lease
        assert lease is not None, "a run has a lease"
        number = await self._run.writer.write(lambda ledger: ledger.assign_part(lease, part.number))
        record = self._run.record
        grant = PartGrant(record.run_id, part.number, number, record.environment, part.name)
        if part.worker is not None:
            await part.worker.dismiss()
        part.starts += 1
        part.seen_at = part.asked_at = self._clock()
        part.gone, part.worker = False, None
        if part.starts <= MOST_STARTS:
            try:
                part.worker = await self._workers.start(grant)
                return
            except Exception as error:
                logger.info("%s: no worker could be started for it (%s)", part.name, type(error).__name__)
        part.local_task = asyncio.create_task(self._drive_locally(grant))

    async def _drive_locally(self, grant: PartGrant) -> None:
        try:
            assigned = await asyncio.to_thread(assignment, grant.run_id, grant.number, grant.environment)
            settings = self._run.spec.settings
            address = {"studio_url": settings.studio_url, "api_key": settings.api_key}
            assigned = replace(assigned, settings=assigned.settings.model_copy(update=address))
            async with PartWork(assigned, grant.grant) as part:
                await self._drive(part)
        except PatternmillError as error:
            self._run.halt.begin(HaltReason(Outcome.FAILED, error.code, str(error)))

    async def _check(self) -> None:
        run_id, halt = self._run.record.run_id, self._run.halt.on_record()

        def exchange(ledger: Ledger) -> list[PartProgress]:
            ledger.halt_parts(run_id, halt)
            return ledger.parts_of(run_id)

        reports = {report.number: report for report in await self._run.writer.write(exchange)}
        self._add_up(reports)
        for part in self._parts:
            await self._supervise(part, reports[part.number])

    def _add_up(self, reports: Mapping[int, PartProgress]) -> None:
        parts = [reports[part.number] for part in self._parts]
        for name in COUNTS:
            setattr(self._run.progress, name, sum(report.counts.get(name, 0) for report in parts))
        for report in parts:
            for stages, reason in halts_from(report.halt):
                self._run.halt.begin(reason, stages=stages)

    async def _supervise(self, part: _SupervisedPart, report: PartProgress) -> None:
        if report.state is PartState.ENDED:
            part.done = part.ended = True
        if part.done or (part.local_task is not None and not part.local_task.done()):
            return
        if self._lingers(part, report):
            logger.info("%s: all its rows have ended; its process is not waited for", part.name)
            part.done = True
            return
        if report.state is PartState.GRANTED and self._run.halt.is_total:
            # Should it begin after all, it reads of the halt before it asks for anything.
            part.done = True
            return
        if not await self._is_lost(part, report):
            return
        if self._run.halt.is_total or part.local_task is not None:
            part.done = True
        else:
            logger.info("%s: its process is lost; it is assigned again", part.name)
            await self._assign(part)

    def _lingers(self, part: _SupervisedPart, report: PartProgress) -> bool:
        """Whether all its rows have ended for a while, without the part's last report."""
        through = report.state is PartState.BEGUN and report.counts.get("ended", 0) >= part.rows
        if not through or report.counts.get("in_flight", 0):
            part.rows_ended_at = None
            return False
        now = self._clock()
        part.rows_ended_at = now if part.rows_ended_at is None else part.rows_ended_at
        return now - part.rows_ended_at >= _LINGERING.total_seconds()

    async def _is_lost(self, part: _SupervisedPart, report: PartProgress) -> bool:
        """Whether no process works at the part, or ever will."""
        if part.local_task is not None or report.state is PartState.LEFT:
            return True
        now = self._clock()
        if report.beats != part.beats:
            part.beats, part.seen_at = report.beats, now
        begun = report.state is PartState.BEGUN
        if now - part.seen_at >= (TAKEOVER_AFTER if begun else _PATIENCE).total_seconds():
            if not begun:
                # Another one would not be begun either.
                part.starts = MOST_STARTS
            return True
        # Counts at the second check only: its last report may not have been written at the first.
        if part.gone:
            return True
        if part.worker is not None and now - part.asked_at >= _ASK.total_seconds():
            part.asked_at = now
            part.gone = await part.worker.is_gone()
        return False

    def _over(self) -> bool:
        if all(part.done for part in self._parts):
            return True
        if not self._run.is_stopped:
            return False
        if self._stopped_at is None:
            self._stopped_at = self._clock()
        return self._clock() - self._stopped_at >= _DRAIN.total_seconds()

    async def _dismiss_all(self) -> None:
        """No process that was started for the run outlives it by long."""
        local = [part.local_task for part in self._parts if part.local_task is not None]
        for task in local:
            task.cancel()
        await asyncio.gather(*local, return_exceptions=True)
        for part in self._parts:
            if part.worker is not None:
                await part.worker.await_end() if part.ended else await part.worker.dismiss()


async def spread(run: Run, workers: WorkerPool, drive: Callable[[Part], Awaitable[None]]) -> None:
    """Drive a run's rows through as many processes as its spec says."""
    assert run.spec.spread is not None, "asked to be spread"
    await PartSupervisor(run, workers, drive).work(run.spec.spread)
