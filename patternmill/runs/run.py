"""One run from its first write to its last: the lease, the record with the plan, the engine, the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from patternmill.catalog.offer import Offer
from patternmill.catalog.refinements import REFINEMENTS
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.engine.engine import Engine
from patternmill.engine.progress import HaltReason
from patternmill.errors import LeaseLost, Overlap, PatternmillError
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import Approval, Lease, RunRecord
from patternmill.ledger.reports.unsettled import open_requests
from patternmill.ledger.spending import Spent
from patternmill.planning.plan import Plan, cost_of, limit_plan
from patternmill.planning.recognition import Memory
from patternmill.planning.unstated import Unstated
from patternmill.processes import collect_rarely
from patternmill.runs.approval import rejection, require_approval, with_decision
from patternmill.runs.lease import LeaseHeartbeat, acquire_lease, release_lease
from patternmill.runs.open_jobs import OpenJobs, open_jobs
from patternmill.runs.other_catalogs import find_duplicates
from patternmill.runs.other_ledger import take_over
from patternmill.runs.plan_record import (
    close_broken_runs,
    moment,
    new_record,
    put_on_record,
    record_overlap,
)
from patternmill.runs.preview import (
    Preview,
    plan_limits,
    preview,
    with_spending_limits,
)
from patternmill.runs.refresh_changes import withheld_reason
from patternmill.runs.safeguards import refuse_other_service, require_agreed, require_confirmation
from patternmill.runs.spec import RunSpec
from patternmill.service.studio_api import StudioApi
from patternmill.states import UNFINISHED_ROWS, Outcome, RowStatus
from patternmill.text import joined

if TYPE_CHECKING:
    from patternmill.results.results_files import Results


_PARTLY = Outcome.COMPLETED_WITH_FAILURES


@dataclass(frozen=True)
class RunEnding:
    """How a run ended, in numbers that agree with its ledger."""

    record: RunRecord
    rows: Mapping[RowStatus, int]
    #: What was reserved for this run's requests, and not released.
    spent: Spent
    #: Requests of its catalog without an end: a person decides about them, or its next run resumes them.
    to_decide: int = 0
    resumed: int = 0

    @property
    def outcome(self) -> Outcome:
        assert self.record.outcome is not None, "an ended run has an outcome"
        return self.record.outcome


class Run:
    """A run that has the lease of its catalog: `begin`, drive its `engine`, `end`."""

    def __init__(
        self,
        spec: RunSpec,
        record: RunRecord,
        plan: Plan,
        memory: Memory,
        writer: LedgerWriter,
        api: StudioApi,
        heartbeat: LeaseHeartbeat,
    ) -> None:
        self.spec, self.record, self.plan, self.writer = spec, record, plan, writer
        options = spec.options
        self.engine = Engine(record, plan, memory, writer, api, options)
        self.halt, self.progress = self.engine.halt, self.engine.progress
        self._studio, self._heartbeat = api, heartbeat
        heartbeat.on_loss = self._lost
        #: None until it has ended.
        self.ending: RunEnding | None = None
        self.is_stopped = False
        #: By the prices alone.
        self.cost = cost_of(plan, options.prices, options.attempts, options.currency)
        #: What was written, once it has ended.
        self.results: Results | None = None
        #: Why they could not be written, or not where they were to be delivered.
        self.unpublished: PatternmillError | None = None
        #: Why rows were left out of the plan from the beginning: a limit, or what an approval covers.
        self.left_out: HaltReason | None = None
        #: What is followed beside its rows.
        self.open_jobs: OpenJobs | None = None
        #: Earlier runs of its catalog whose process was lost.
        self.broken: list[RunRecord] = []

    @classmethod
    async def begin(
        cls,
        spec: RunSpec,
        checked: CheckedCatalog,
        api: StudioApi,
        *,
        offer: Offer | None = None,
        prefect_flow_run_id: str | None = None,
        refused: Approval | None = None,
    ) -> Run:
        """The six steps from a checked catalog to a run that may buy.

        `refused`: a person's decision against the plan, or the end of their time; then nothing is begun.
        Raises ConfigurationError when the service is another environment's, and Overlap when another run drives the
        catalog; that is on record too. Raises ApprovalNeeded when the plan is above what may be bought without a
        person's approval, and none covers it.
        """
        collect_rarely()
        # 1. The ledger. All that asks its database is done off the event loop: it may take as long as an answer may.
        await asyncio.to_thread(refuse_other_service, spec.settings)
        ledger = await asyncio.to_thread(open_ledger, spec.settings)
        # 2. The lease of the catalog. It beats from here on: to plan may take longer than a silent one is left alone.
        record, writer = await _leased(ledger, spec, checked, prefect_flow_run_id)
        heartbeat = LeaseHeartbeat(writer)
        heartbeat.start()
        try:
            # 3. The plan: what is to be made, by what the ledger remembers.
            planned = await asyncio.to_thread(preview, spec, checked)
            # 4. What the service is known to take.
            await learn_what_works(api, writer, record.environment, spec.unstated)
            # 5. Approval, confirmation, limits and the record of the plan, in one transaction.
            record, plan, approved, left_out, broken = await writer.run(
                lambda ledger: _put_on_record(ledger, writer, spec, offer, refused, record, planned)
            )
        except BaseException:
            await heartbeat.stop()
            await release_lease(writer)
            raise
        # 6. The engine, within its limits.
        spec = with_spending_limits(spec, plan, approved)
        run = cls(spec, record, plan, planned.memory, writer, api, heartbeat)
        run.left_out, run.broken = left_out, broken
        jobs = await writer.run(lambda ledger: open_jobs(ledger, plan))
        run.open_jobs = OpenJobs(run.engine, jobs)
        if refused is not None:
            run.halt.begin(rejection(refused))
        return run

    async def end(self) -> RunEnding:
        """Decide the outcome from the ledger, fix the status of every row, and release the lease."""
        if self.open_jobs is not None:
            await self.open_jobs.stop()
        await self._heartbeat.stop()
        lease = self.writer.lease
        assert lease is not None, "a run has a lease"

        def close(ledger: Ledger) -> RunEnding:
            with ledger.transaction(lease):
                # First: what a group still writes would be in one of the counts and not in another.
                ledger.runs.close_groups(lease.environment, lease.catalog)
                halted = self._incomplete.outcome if self._incomplete else _PARTLY
                counts = ledger.runs.close_rows(replace(self.record, outcome=halted))
                record = self._ended(counts, moment(ledger))
                ledger.catalogs.update(record)
                ledger.runs.update(record)
                ledger.catalogs.release_lease(lease)
                spent = ledger.purchases.spent_by_run(record.run_id)
            # Where all rows have an end there is nothing to look for.
            is_open = not counts.keys().isdisjoint(UNFINISHED_ROWS | {RowStatus.HELD})
            limit = self.engine.options.in_doubt_limit
            left = open_requests(ledger, record.environment, record.catalog, limit) if is_open else (0, 0)
            return RunEnding(record, counts, spent, *left)

        try:
            ending = await self.writer.run_patiently(close)
        finally:
            await self.writer.close()
        self.record, self.ending = ending.record, ending
        return ending

    @property
    def waiting(self) -> str:
        """For people: what the run waits for, the ledger or the service, and since when; empty while all is well."""
        return self.writer.waiting or self._studio.waiting

    @property
    def in_flight(self) -> str:
        """For people: `12 in flight, 188 waiting to be sent`."""
        queued = self._studio.queued
        waits = [f"{queued:,} waiting to be sent"] if queued else []
        return ", ".join([f"{self.progress.in_flight - queued:,} in flight", *waits])

    @property
    def time_left(self) -> tuple[float, float] | None:
        return self.progress.time_left(self._studio.queued)

    def stop(self, why: str) -> None:
        """A person's stop: nothing new is begun; what runs is followed until the drain is over."""
        if not self.is_stopped:
            self.is_stopped = True
            self.writer.shorten_wait()
            self._stop_on_record = asyncio.ensure_future(self._record_stop(why))
            self.engine.stop(why)

    async def _record_stop(self, why: str) -> None:
        """So that nobody begins the run again, should this process be killed before its end."""
        lease = self.writer.lease
        assert isinstance(lease, Lease), "a run has a lease"
        with suppress(PatternmillError):
            await self.writer.write(lambda ledger: ledger.catalogs.record_stop(lease, why))

    def _lost(self, error: PatternmillError) -> None:
        code = "fenced" if isinstance(error, LeaseLost) else "ledger"
        self.halt.begin(HaltReason(Outcome.FAILED, code, str(error)))

    @property
    def _incomplete(self) -> HaltReason | None:
        """Why the run did not carry out its whole plan."""
        return self.halt.reason or self.left_out or self.halt.kept_purchase

    def _ended(self, counts: Mapping[RowStatus, int], at: datetime) -> RunRecord:
        """With all products made it is Completed, whatever halted it meanwhile; else the halt's reason counts.

        Rows that wait to be retired wait for a person, so that such a run is not simply complete.
        """
        withheld = withheld_reason(self.record) if self.spec.retire_limit else None
        made = not set(counts) - {RowStatus.SUCCEEDED}
        complete = made and withheld is None
        reason = None if made else self._incomplete
        outcome = Outcome.COMPLETED if complete else reason.outcome if reason else _PARTLY
        return replace(
            self.record,
            ended_at=at,
            outcome=outcome,
            reason=joined(reason.message if reason else None, withheld) or None,
        )


async def _leased(
    ledger: Ledger, spec: RunSpec, checked: CheckedCatalog, prefect_flow_run_id: str | None
) -> tuple[RunRecord, LedgerWriter]:
    """A run with the lease of its catalog. Raises Overlap, which is on record then."""
    record = new_record(spec, checked, prefect_flow_run_id, ledger)
    flow_run_id = prefect_flow_run_id if spec.by_deployment else None
    try:
        lease = await acquire_lease(
            ledger, record.environment, record.catalog, record.run_id, flow_run_id=flow_run_id
        )
    except BaseException as error:
        if isinstance(error, Overlap):
            await asyncio.to_thread(record_overlap, ledger, record, checked, error)
        await asyncio.to_thread(ledger.close)
        raise
    return record, LedgerWriter(ledger, lease)


async def learn_what_works(
    api: StudioApi, writer: LedgerWriter, environment: str, unstated: Unstated
) -> None:
    """What the service has ever accepted, so that "not found" is about one item, and how long its last jobs took."""
    stages, refinements = await writer.run(lambda ledger: ledger.purchases.accepted(environment, REFINEMENTS))
    api.known_to_work(stages, unstated.operations(stages, refinements))
    api.remember(await writer.run(lambda ledger: ledger.purchases.durations(environment)))


#: A plan on record within its limits, the approval that it rests on, why rows were left out of it, and the catalog's
#: earlier runs that were found without an end.
_Begun = tuple[RunRecord, Plan, Approval | None, HaltReason | None, list[RunRecord]]


def _put_on_record(
    ledger: Ledger,
    writer: LedgerWriter,
    spec: RunSpec,
    offer: Offer | None,
    refused: Approval | None,
    record: RunRecord,
    planned: Preview,
) -> _Begun:
    whole, lease = planned.plan, writer.lease
    assert lease is not None, "a run has a lease"
    with ledger.transaction(lease):
        require_agreed(spec.ceiling, planned.proposal)
        approved = require_approval(ledger, spec.settings, planned.proposal) if refused is None else None
        if approved is None and refused is None:
            # Of two runs that plan the same products at once, the second one waits here, and sees the first one's plan.
            ledger.database.lock(f"plans {record.environment}")
            require_confirmation(spec.settings, whole, find_duplicates(ledger, whole))
        broken = close_broken_runs(ledger, spec.scope)
        record = with_decision(record, approved or refused)
        plan, left_out = whole, None
        if limited := limit_plan(whole, plan_limits(ledger, spec, approved)):
            plan, *said = limited
            left_out = HaltReason(Outcome.BUDGET_REACHED, "limit", joined(*said))
        # A person who decided against a correction leaves what the source has.
        keeps = spec.selection is None and (refused is None or (spec.origin is None and spec.remake is None))
        kept = planned.memory.source_rows if keeps else None
        record = put_on_record(ledger, spec, record, plan, planned.checked, offer, lease.fence, kept)
        take_over(ledger, plan, planned.named)
    return record, plan, approved, left_out, broken
