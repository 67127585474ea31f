"""One part of a spread run, driven by a process of its own under the run's lease."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from patternmill.catalog.catalog_file import Record
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.engine.item_attempts import too_many_failures
from patternmill.engine.progress import HaltReason, halts_from
from patternmill.errors import LeaseLost, LedgerError, PatternmillError
from patternmill.identifiers import ItemKey
from patternmill.ledger.leases import COORDINATOR
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import Attempt, KnownItem, PartLease, PartProgress, RunRow
from patternmill.planning.items import Chain, ContentItems, Scope, reference_of
from patternmill.planning.partition import is_begun
from patternmill.planning.plan import Plan, Reason, make_plan
from patternmill.planning.recognition import Memory
from patternmill.planning.unstated import Unstated
from patternmill.runs.assignment import Assignment, require_same_service
from patternmill.runs.lease import HEARTBEAT_INTERVAL
from patternmill.runs.preview import remembered
from patternmill.runs.run import ActiveRun, accepted_before
from patternmill.service.studio_api import StudioApi
from patternmill.states import ROW_STAGES, AttemptState, Outcome, PartState, Stage

#: What a part reports of its progress, for the run to add up.
COUNTS = (
    "ended",
    *(f"{stage}s" for stage in ROW_STAGES),
    "failed",
    "in_flight",
    "tried_again",
    "items_ended",
    "items_failed",
)
#: How long jobs are followed once the run was stopped: the run itself waits 17 seconds for its parts.
_DRAIN = timedelta(seconds=12)


class Part(ActiveRun):
    """A part of a run, assigned by a grant. Driven through `engine` as a run is, and ended by `end`."""

    def __init__(
        self,
        assigned: Assignment,
        plan: Plan,
        memory: Memory,
        writer: LedgerWriter,
        api: StudioApi,
        before: Mapping[str, int],
    ) -> None:
        super().__init__(assigned.record, plan, memory, writer, api, assigned.options)
        self.name = f"{assigned.record.run_id}/{assigned.number}"
        self.assigned = assigned
        #: Whether this process was stopped, so that another one has to end the part.
        self.left = False
        self._before = _counts_before(before, plan)
        self._heartbeat: asyncio.Task[None] | None = None

    @classmethod
    async def begin(cls, assigned: Assignment, grant: int, api: StudioApi) -> Part:
        """Begin the part. Raises LeaseLost when it was assigned to another worker, or its run is over."""
        ledger = await asyncio.to_thread(open_ledger, assigned.settings)
        writer: LedgerWriter | None = None
        try:
            lease, reports = await asyncio.to_thread(_begin, ledger, assigned, grant)
            writer = LedgerWriter(ledger, lease)
            memory, plan = await asyncio.to_thread(_plan_again, assigned)
            environment = assigned.record.environment
            stages, refinements = await writer.run(lambda ledger: accepted_before(ledger, environment))
            api.known_to_work(stages, assigned.unstated.operations(stages, refinements))
        except BaseException:
            if writer is None:
                ledger.close()
            else:
                await writer.close()
            raise
        before = next(report.counts for report in reports if report.number == assigned.number)
        part = cls(assigned, plan, memory, writer, api, before)
        # A run that was stopped meanwhile begins nothing here.
        part._apply(reports)
        return part

    def start_heartbeat(self) -> None:
        """From now on it reports to its run, and applies what the run and the other parts report."""
        self._heartbeat = asyncio.create_task(self._keep_reporting())

    def stop(self, why: str) -> None:
        """This process is stopped, which need not stop the run."""
        self.left = True
        super().stop(why)

    def made(self) -> int:
        return self.plan.reasons_of(Stage.PRODUCT)[Reason.DONE] + self.progress.products

    async def end(self, *, cancelled: str | None = None) -> None:
        """Report the end. `cancelled`: a person stopped this very part, by which the whole run is meant."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            with suppress(asyncio.CancelledError):
                await self._heartbeat
        if cancelled is not None:
            self.left = False
            self.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", cancelled))
        state = PartState.LEFT if self.left else PartState.ENDED
        with suppress(PatternmillError):
            await self.writer.write(self._report(state))
        await self.writer.close()

    async def _keep_reporting(self) -> None:
        try:
            while True:
                self._apply(await self.writer.write(self._report(PartState.BEGUN)))
                await asyncio.sleep(HEARTBEAT_INTERVAL.total_seconds())
        except PatternmillError as error:
            self._lost(error)

    def _report(self, state: PartState) -> _Report:
        lease = self.writer.lease
        assert isinstance(lease, PartLease), "a part has its lease"
        counts = {name: self._before.get(name, 0) + getattr(self.progress, name) for name in COUNTS}
        if state is PartState.LEFT:
            # Another process drives the rest.
            counts["ended"] = counts["products"] + counts["failed"]
        # A stop of this process is not one of the run.
        halt = {} if self.left else self.halt.on_record()
        return _Report(lease, counts, halt, state)

    def _apply(self, reports: Iterable[PartProgress]) -> None:
        """Stop for what stops the run: a person, the service, too many failures over all parts."""
        others = [report for report in reports if report.number != self.assigned.number]
        for report in others:
            for stages, reason in halts_from(report.halt):
                if reason.outcome is Outcome.CANCELLED:
                    self._drain(reason.message, _DRAIN)
                elif reason.outcome is Outcome.FAILED or report.number == COORDINATOR:
                    self.halt.begin(reason, stages=stages)
        failed = self._total_of_parts("items_failed", others)
        ended = self._total_of_parts("items_ended", others)
        if self.assigned.failure_limit.passed(failed, ended):
            self.halt.begin(too_many_failures(failed, ended))

    def _total_of_parts(self, name: str, others: Sequence[PartProgress]) -> int:
        own = self._before.get(name, 0) + int(getattr(self.progress, name))
        return own + sum(report.counts.get(name, 0) for report in others)


@dataclass(frozen=True)
class _Report:
    """A change of the ledger: the part's heartbeat, which returns what all parts report."""

    lease: PartLease
    counts: Mapping[str, int]
    halt: Mapping[str, Mapping[str, str]]
    state: PartState

    def __call__(self, ledger: Ledger) -> list[PartProgress]:
        ledger.update_part(self.lease, self.counts, self.halt, self.state)
        return ledger.parts_of(self.lease.run_id)


class PartWork:
    """A context with a part that sends heartbeats; closes the connections after the last report."""

    def __init__(self, assigned: Assignment, grant: int) -> None:
        """Raises ConfigurationError when address or key are missing, or belong to another service."""
        require_same_service(assigned)
        self._assigned, self._grant = assigned, grant
        self._api = StudioApi.from_settings(assigned.settings)
        self._part: Part | None = None
        #: Why a person stopped this part.
        self.cancelled: str | None = None

    async def __aenter__(self) -> Part:
        try:
            self._part = await Part.begin(self._assigned, self._grant, self._api)
        except BaseException:
            await self._api.close()
            raise
        self._part.start_heartbeat()
        return self._part

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        assert self._part is not None, "entered before it is left"
        if error is not None:
            self._part.left = True
        try:
            await self._part.end(cancelled=self.cancelled)
        finally:
            await self._api.close()


def _begin(ledger: Ledger, assigned: Assignment, grant: int) -> tuple[PartLease, list[PartProgress]]:
    record = assigned.record
    lease = ledger.lease(record.environment, record.catalog)
    if lease is None or lease.run_id != record.run_id or not lease.holder:
        raise LeaseLost(
            f"Run {record.run_id} has lost the lease of the catalog {record.catalog!r}.",
            remedy="Nothing was begun by this part; see `patternmill status`.",
        )
    with ledger.transaction(lease):
        begun = ledger.begin_part(lease, assigned.number, grant)
        return begun, ledger.parts_of(record.run_id)


def _plan_again(assigned: Assignment) -> tuple[Memory, Plan]:
    """The part's own plan, from the ledger as it is now, on a connection of its own."""
    record = assigned.record
    with open_ledger(assigned.settings) as ledger:
        rows = ledger.rows_at(record.run_id, sorted(assigned.positions))
        scope = Scope(record.environment, record.catalog)
        memory = remembered(ledger, scope, assigned.options)
        memory = _without_second_retries(memory, ledger.begun_in(record.run_id))
        known = {row.sku: _item(ledger, row) for row in rows}
        items = _PlannedItems(scope, known, _pictures(ledger, known.values()), assigned.unstated)
    return memory, _plan(assigned, scope, rows, memory, items)


class _PlannedItems:
    """The items that the run planned for its rows, by sku."""

    def __init__(
        self,
        scope: Scope,
        by_sku: Mapping[str, KnownItem],
        pictures: Mapping[str, bytes],
        unstated: Unstated,
    ) -> None:
        self._by_sku = by_sku
        self._items = ContentItems(scope, picture_of=pictures.__getitem__, unstated=unstated)

    def of(self, row: Row) -> Chain:
        known = self._by_sku[row.sku]
        return self._items.known(known.pattern_contents, known.content)


def _item(ledger: Ledger, row: RunRow) -> KnownItem:
    known = ledger.product_item(row.product_key) if row.product_key is not None else None
    if known is None:
        raise LedgerError(f"Row {row.line} ({row.sku}) has no items in the ledger.")
    return known


def _pictures(ledger: Ledger, items: Iterable[KnownItem]) -> dict[str, bytes]:
    """By SHA-256, as the run kept them with its plan."""
    wanted = {reference_of(item.pattern_contents[0]) for item in items} - {None}
    kept = {sha256: ledger.kept_input(sha256) for sha256 in wanted if sha256 is not None}
    return {sha256: raw for sha256, raw in kept.items() if raw is not None}


def _plan(
    assigned: Assignment, scope: Scope, rows: Sequence[RunRow], memory: Memory, items: _PlannedItems
) -> Plan:
    retried = {row.sku for row in rows if row.position in assigned.retried}
    plan = make_plan(
        scope, list(map(_entry, rows)), memory, retry=lambda row: row.sku in retried, items=items
    )
    planned = []
    for row, again in zip(rows, plan.rows, strict=True):
        if (again.pattern, again.product) != (row.pattern_key, row.product_key):
            raise LedgerError(
                f"Row {row.line} ({row.sku}) has other items here than where it was planned.",
                remedy="Run the same version of Patternmill on all workers.",
            )
        planned.append(replace(again, position=row.position))
    # Begun rows first: their jobs count for the window whether they are polled or not.
    planned.sort(key=lambda row: not is_begun(plan, row))
    return replace(plan, rows=tuple(planned))


def _entry(row: RunRow) -> Entry:
    kept = json.loads(row.row)
    category = kept["category"]
    understood = Row(row.line, row.sku, kept["prompt"], category, category, kept["selections"], ())
    return Entry(Record(row.line, ()), understood, ())


def _without_second_retries(memory: Memory, begun: frozenset[ItemKey]) -> Memory:
    """Items that failed in this run are not tried once more because a process was lost."""
    last_attempts = {
        key: replace(attempt, state=AttemptState.HELD)
        if isinstance(attempt, Attempt) and _failed_here(attempt, begun) and key not in memory.trying
        else attempt
        for key, attempt in memory.last_attempts.items()
    }
    return replace(memory, last_attempts=last_attempts)


def _failed_here(attempt: Attempt, begun: frozenset[ItemKey]) -> bool:
    return attempt.state in (AttemptState.FAILED, AttemptState.REJECTED) and attempt.item_key in begun


def _counts_before(reports: Mapping[str, int], plan: Plan) -> dict[str, int]:
    """What earlier processes did: their last report, and the rows that the ledger shows as ended."""
    before = {name: reports.get(name, 0) for name in COUNTS}
    before["in_flight"] = 0
    before["ended"] = len(plan.rows) - sum(1 for _ in plan.to_do())
    return before
