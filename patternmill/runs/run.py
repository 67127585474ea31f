"""One run from its first write to its last: the hold on the catalog, the plan on record, the engine, the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from patternmill.catalog.offer import Offer
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.engine.halt import Halt, HaltReason
from patternmill.engine.items import ItemMaker
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Progress
from patternmill.engine.rows import Engine
from patternmill.errors import Fenced, LedgerError, Overlap, PatternmillError
from patternmill.garbage_collection import collect_rarely
from patternmill.identifiers import ItemKey
from patternmill.ledger.catalog_rows import settle_catalog
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.opening import open_ledger
from patternmill.ledger.records import Approval, Attempt, RunRecord
from patternmill.ledger.reports.overview import Spent, spent_by_run
from patternmill.ledger.row_results import close_rows
from patternmill.ledger.writer import LedgerWriter
from patternmill.planning.forecast import cost_of
from patternmill.planning.plan import Memory, Plan
from patternmill.results.summary import joined
from patternmill.runs.approval import Grant, granted, propose, refusal
from patternmill.runs.bounds import bounded, within_bounds
from patternmill.runs.duplicates import known_duplicates, refuse_duplicates
from patternmill.runs.lease import LeaseHeartbeat, take_lease
from patternmill.runs.preview import remember_and_plan
from patternmill.runs.refresh_changes import withheld_reason
from patternmill.runs.run_record import (
    close_broken_runs,
    moment,
    new_record,
    put_on_record,
    record_overlap,
    with_approval,
)
from patternmill.runs.safeguards import refuse_other_service, require_confirmation
from patternmill.runs.spec import RunSpec
from patternmill.service.studio_api import StudioApi
from patternmill.states import Outcome, RowStatus, Stage

if TYPE_CHECKING:
    from patternmill.results.rebuild import Results

_CHUNK = 5000
_PARTLY = Outcome.COMPLETED_WITH_FAILURES


@dataclass(frozen=True)
class RunEnding:
    """How a run ended, in numbers that agree with its ledger."""

    record: RunRecord
    rows: Mapping[RowStatus, int]
    #: What was reserved for this run's requests and not given back.
    spent: Spent

    @property
    def outcome(self) -> Outcome:
        assert self.record.outcome is not None, "an ended run has an outcome"
        return self.record.outcome


class ActiveRun:
    """What drives rows to their ends in this process: a whole run, or one part of a run."""

    def __init__(
        self,
        record: RunRecord,
        plan: Plan,
        memory: Memory,
        writer: LedgerWriter,
        api: StudioApi,
        options: RunOptions,
    ) -> None:
        self.record = record
        self.plan = plan
        self.writer = writer
        self.halt = Halt()
        self.progress = Progress()
        maker = ItemMaker(writer, api, record.run_id, record.environment, options, self.halt, self.progress)
        self.engine = Engine(plan, _pattern_memory(memory), maker, api, options, self.halt, self.progress)
        #: By which it is found in this process.
        self.name: str = record.run_id
        #: How it ended, once that is so.
        self.ending: RunEnding | None = None
        self._stopped = False

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def stop(self, why: str) -> None:
        """A person's stop: nothing new is begun; what runs is followed until the drain is over."""
        if not self._stopped:
            self._stopped = True
            self.writer.hurry()
            self.engine.stop(why)
            drain = self.engine.options.drain.total_seconds()
            asyncio.get_running_loop().call_later(drain, self.engine.abandon)

    def _lost(self, error: PatternmillError) -> None:
        code = "fenced" if isinstance(error, Fenced) else "ledger"
        self.halt.begin(HaltReason(Outcome.FAILED, code, str(error)))


class Run(ActiveRun):
    """A run that holds its catalog. Made by `begin`, driven through `mill`, ended by `end`."""

    def __init__(
        self,
        spec: RunSpec,
        record: RunRecord,
        plan: Plan,
        memory: Memory,
        writer: LedgerWriter,
        api: StudioApi,
        heart: LeaseHeartbeat,
        beyond: HaltReason | None = None,
    ) -> None:
        super().__init__(record, plan, memory, writer, api, spec.options)
        self.spec = spec
        #: What it was expected to cost as it began.
        self.forecast = cost_of(
            plan, {stage: spec.options.price(stage) for stage in Stage}, spec.options.attempts
        )
        #: What was written at the end, once that is so.
        self.results: Results | None = None
        self._heart = heart
        #: Why rows were left out of the plan from the beginning: no limit or approval reaches to them.
        self.beyond = beyond

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
        """Take the catalog, plan, and put the plan on record.

        `refused`: a person's word against the plan, or the end of their time; then nothing is begun.
        Raises Overlap when another run drives the catalog; that is on record too. Raises ApprovalNeeded when the plan
        is above what may be bought without a person's word, and none covers it.
        """
        collect_rarely()
        # Everything that asks the database is done off the event loop: it may take as long as an answer may.
        ledger = await asyncio.to_thread(_opened, spec)
        record = new_record(spec, checked, prefect_flow_run_id, moment(ledger))
        try:
            hold = await take_lease(ledger, record.environment, record.catalog, record.run_id)
        except Overlap as overlap:
            await asyncio.to_thread(record_overlap, ledger, record, checked, overlap)
            raise

        run: Run | None = None
        writer = LedgerWriter(ledger, hold)
        heart = LeaseHeartbeat(writer, lambda error: run._lost(error) if run is not None else None)
        # From here on: to plan a large catalog takes longer than a silent holder is left alone.
        heart.start()
        try:
            memory, plan = await asyncio.to_thread(remember_and_plan, spec, checked)
            api.known_to_work(await writer.aside(lambda ledger: ledger.accepted_stages(record.environment)))
            duplicates = await asyncio.to_thread(known_duplicates, spec, plan, checked.offer)
            proposal = propose(spec, plan)

            def write(ledger: Ledger) -> tuple[RunRecord, Grant | None, Plan, HaltReason | None]:
                with ledger.transaction(hold):
                    grant = granted(ledger, spec, proposal) if refused is None else None
                    if grant is None and refused is None:
                        require_confirmation(spec.settings, plan)
                        refuse_duplicates(spec, duplicates)
                    close_broken_runs(ledger, spec.scope)
                    said = grant.approval if grant is not None else refused
                    recorded = with_approval(record, said) if said is not None else record
                    reached = bounded(ledger, spec, plan, grant)
                    written = put_on_record(ledger, spec, recorded, plan, checked, offer, hold.fence)
                    return written, grant, *reached

            record, grant, bought, left_out = await writer.aside(write)
        except BaseException:
            await heart.stop()
            writer.hurry()
            with suppress(LedgerError):
                await writer.write(lambda ledger: ledger.release(hold))
            await writer.close()
            raise
        run = cls(within_bounds(spec, bought, grant), record, bought, memory, writer, api, heart, left_out)
        if refused is not None:
            run.halt.begin(refusal(refused))
        return run

    async def end(self) -> RunEnding:
        """Decide the outcome from the ledger, fix how every row stands, and give the catalog back."""
        await self._heart.stop()
        hold = self.writer.hold
        assert hold is not None, "a run holds its catalog"

        def close(ledger: Ledger) -> RunEnding:
            with ledger.transaction(hold):
                counts = close_rows(ledger, replace(self.record, outcome=self._halted_outcome()))
                record = self._ended(counts, moment(ledger))
                settle_catalog(ledger, record)
                ledger.update_run(record)
                ledger.end_parts(record.run_id)
                ledger.release(hold)
                spent = spent_by_run(ledger, record.run_id)
            return RunEnding(record, counts, spent)

        try:
            ending = await self.writer.replayable(close)
        finally:
            await self.writer.close()
        self.record, self.ending = ending.record, ending
        return ending

    @property
    def _held_back(self) -> HaltReason | None:
        """What kept the run from its whole plan."""
        return self.halt.reason or self.beyond or self.halt.held_back

    def _halted_outcome(self) -> Outcome:
        reason = self._held_back
        return reason.outcome if reason else _PARTLY

    def _ended(self, counts: Mapping[RowStatus, int], at: datetime) -> RunRecord:
        """All products there is Completed, whatever was said on the way; else the halt's reason counts.

        Rows that wait to be retired wait for a person, so that such a run is not simply complete.
        """
        withheld = withheld_reason(self.record)
        made = not set(counts) - {RowStatus.SUCCEEDED}
        complete = made and withheld is None
        reason = None if made else self._held_back
        outcome = Outcome.COMPLETED if complete else reason.outcome if reason else _PARTLY
        return replace(
            self.record,
            ended_at=at,
            outcome=outcome,
            reason=joined(reason.message if reason else None, withheld) or None,
        )


def _opened(spec: RunSpec) -> Ledger:
    """The ledger, once it is sure that the service is not another environment's."""
    ledger = open_ledger(spec.settings)
    try:
        refuse_other_service(ledger, spec.settings)
    except BaseException:
        ledger.database.close()
        raise
    return ledger


def _pattern_memory(memory: Memory) -> Callable[[ItemKey], Attempt | None]:
    def recall(key: ItemKey) -> Attempt | None:
        standing = memory.standings.get(key)
        return standing if isinstance(standing, Attempt) else None

    return recall
