"""One run, step by step: read, check, plan, begin with a lease and a record, make, end, publish."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Self

from patternmill.engine.engine import Engine
from patternmill.engine.progress import Halt, HaltReason, Progress, paused
from patternmill.errors import LeaseLost, Overlap, PatternmillError
from patternmill.files import LATEST, latest_in
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import Approval, Attempt, Lease, RunRecord
from patternmill.ledger.reports.requests import items_with_attempt, open_requests
from patternmill.ledger.spending import Spent, day_of, nearly_spent
from patternmill.planning.items import Item
from patternmill.planning.offer import Offer
from patternmill.planning.plan import TO_DO, Cost, Plan, cost_of, limit_plan, without_work
from patternmill.planning.refinements import REFINEMENTS
from patternmill.planning.unstated import Unstated
from patternmill.processes import collect_rarely
from patternmill.runs.approval import rejection, require_approval
from patternmill.runs.input import check_input, read_input
from patternmill.runs.lease import LeaseHeartbeat, acquire_lease, release_lease
from patternmill.runs.other_ledger import take_over
from patternmill.runs.plan_record import (
    close_broken_runs,
    moment,
    new_record,
    plan_options,
    put_on_record,
    record_overlap,
    record_requests,
)
from patternmill.runs.preview import Preview, make_preview, plan_limits, with_spending_limits, withheld_reason
from patternmill.runs.safeguards import (
    find_duplicates,
    require_agreed,
    require_confirmation,
    require_machines,
    require_writable,
)
from patternmill.runs.spec import RunSpec
from patternmill.service.sources import copy_files, require_store
from patternmill.service.studio_api import StudioApi
from patternmill.states import COMPLETE_ROWS, UNFINISHED_ROWS, Outcome, RowStatus
from patternmill.text import joined, plural

if TYPE_CHECKING:
    from patternmill.runs.results_files import GalleryMaker, Results
    from patternmill.tables.catalog import Catalog
    from patternmill.tables.checks import Checked

_PARTLY = Outcome.COMPLETED_WITH_FAILURES
#: Seconds between two rounds of asking for open jobs, and the most that an ending run waits for the first round.
_ROUND, _FIRST_ROUND = 10.0, 10.0


@dataclass(frozen=True)
class RunEnding:
    """The end of a run, in numbers that agree with its ledger."""

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
    """One run: read, check, preview, begin, drive, finish; each step once, in this order.

    A context manager, which ends a run that has begun. The attributes declared here are there once it has begun.
    """

    record: RunRecord
    plan: Plan
    writer: LedgerWriter
    engine: Engine
    halt: Halt
    progress: Progress
    #: What its plan costs by the prices alone.
    cost: Cost
    #: The jobs that it follows beside its rows.
    open_jobs: OpenJobs
    #: Earlier runs of its catalog whose processes were lost.
    broken: list[RunRecord]
    #: Why rows were left out of the plan from the beginning: a limit, or what an approval covers.
    left_out: HaltReason | None
    #: Whether each group of rows is a task run of the run's page, and not each item.
    is_by_groups = False
    #: The names of its groups, each with the numbers of its rows in the sheet; set once it has ended.
    driven: Mapping[str, list[int]]

    def __init__(
        self,
        spec: RunSpec,
        on_begin: Callable[[Run], None] = lambda run: None,
        *,
        api: StudioApi | None = None,
        checked: Checked | None = None,
        gallery: GalleryMaker | None = None,
    ) -> None:
        """Prepare a run; `on_begin` is called once its plan is on record. `checked` are rows that were checked before.
        `gallery` makes the page among its results; None: there is none.

        Raises ConfigurationError when the service's address or key are missing.
        """
        self.spec = spec
        self._on_begin = on_begin
        self._api = api or StudioApi.from_settings(spec.settings)
        self._file: Catalog | None = checked.catalog if checked is not None else None
        self._checked, self._gallery = checked, gallery
        #: The offer as read now, to be remembered.
        self._offer: Offer | None = None
        #: A person's decision against the plan: the run is put on record, and begins nothing.
        self.refused: Approval | None = None
        self.has_begun = self.is_stopped = False
        self.ending: RunEnding | None = None
        #: What was written, once the run has ended.
        self.results: Results | None = None
        #: Why results could not be written, or not copied to where they were requested.
        self.unpublished: PatternmillError | None = None
        self._finishing: asyncio.Task[Results] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End a run that has begun, whatever raised: its rows are in the ledger, and its results are due."""
        try:
            if self.has_begun and self.ending is None:
                await self.finish()
        finally:
            await self._api.close()

    async def read(self) -> str:
        """Read the file, at the first call."""
        if self._file is None:
            self._file = await asyncio.to_thread(read_input, self.spec)
        return f"{plural(len(self._file.sheet.rows), 'row')} in {self._file.sheet.name}"

    async def check(self) -> str:
        """Check every row against what the environment offers, at the first call.

        Raises ServiceStopped when the key is refused.
        """
        if self._checked is None:
            assert self._file is not None, "read before it is checked"
            self.spec, self._checked, self._offer = await check_input(self._api, self.spec, self._file)
        return f"{len(self.checked.rows)} accepted, {self.checked.refused_count} refused"

    @property
    def checked(self) -> Checked:
        assert self._checked is not None, "checked before it is planned"
        return self._checked

    async def preview(self) -> Preview:
        """Return the plan as it is now; reads and checks the rows first, unless that was done. Writes nothing."""
        await self.read()
        await self.check()
        return await asyncio.to_thread(make_preview, self.spec, self.checked)

    async def begin(self, prefect_flow_run_id: str | None = None) -> None:
        """Take the steps from checked rows to a run that may buy: lease, plan, permission, record and engine.

        Raises ConfigurationError for a plan or a place that cannot be used, and Overlap when another run drives the
        catalog; that is on record too. Raises ApprovalNeeded when the plan is above what may be bought without a
        person's approval, and none covers it.
        """
        await asyncio.to_thread(self._require_surroundings)
        collect_rarely()
        # Whatever asks the ledger's database runs off the event loop: it may take as long to respond as a service may.
        ledger = await asyncio.to_thread(open_ledger, self.spec.settings)
        record = new_record(self.spec, self.checked, prefect_flow_run_id, ledger)
        self._lease = await self._acquire_lease(ledger, record)
        self.writer = LedgerWriter(ledger, self._lease)
        # Begun before the plan, which may take longer than a lease may go without heartbeats.
        self._heartbeat = LeaseHeartbeat(self.writer)
        try:
            planned = await asyncio.to_thread(make_preview, self.spec, self.checked)
            await learn_what_works(self._api, self.writer, record.environment, self.spec.unstated)
            approved = await self.writer.run(lambda ledger: self._put_on_record(ledger, record, planned))
            await self._prepare_engine(planned, approved)
        except BaseException:
            await self._heartbeat.stop()
            await release_lease(self.writer)
            raise
        self.has_begun = True
        self._on_begin(self)

    def _require_surroundings(self) -> None:
        """Raise ConfigurationError, before anything is spent, for places and machines that cannot be used."""
        require_writable(self.spec.out or self.spec.catalog_folder)
        if self.spec.copy_below is not None:
            require_store(self.spec.copy_below)
        require_machines(self.spec.settings)

    async def _prepare_engine(self, planned: Preview, approved: Approval | None) -> None:
        """Make the engine, within the limits of its run."""
        options = with_spending_limits(self.spec.options, self.plan, approved)
        self.engine = Engine(self.record, self.plan, planned.memory, self.writer, self._api, options)
        self.halt, self.progress = self.engine.halt, self.engine.progress
        self._heartbeat.on_loss = self._lost
        jobs = await self.writer.run(lambda ledger: open_jobs(ledger, self.plan))
        self.open_jobs = OpenJobs(self.engine, jobs)
        if self.refused is not None:
            self.halt.begin(rejection(self.refused))

    async def _acquire_lease(self, ledger: Ledger, record: RunRecord) -> Lease:
        """Take the lease of the catalog. Raises Overlap, which is put on record."""
        flow_run_id = record.prefect_flow_run_id if self.spec.by_deployment else None
        try:
            return await acquire_lease(ledger, record.environment, record.catalog, record.run_id, flow_run_id)
        except BaseException as error:
            if isinstance(error, Overlap):
                await asyncio.to_thread(record_overlap, ledger, record, self.checked, error)
            await asyncio.to_thread(ledger.close)
            raise

    def _put_on_record(self, ledger: Ledger, record: RunRecord, planned: Preview) -> Approval | None:
        """Record the plan as far as it may be carried out; return the approval that it rests on.

        Raises ConfigurationError and ApprovalNeeded.
        """
        spec = self.spec
        with ledger.transaction(self._lease):
            pause = ledger.brake.pause_of(record.environment, record.catalog)
            approved = self._require_permission(ledger, record, planned, pause)
            self.broken = close_broken_runs(ledger, spec.scope)
            self.plan, self.left_out = planned.plan, None
            if pause is not None:
                # Jobs in flight are followed as those that no row of the plan waits for.
                self.plan, self.left_out = without_work(planned.plan), paused(pause)
            elif limited := limit_plan(planned.plan, plan_limits(ledger, spec, approved)):
                self.plan, *texts = limited
                self.left_out = HaltReason(Outcome.BUDGET_REACHED, "limit", joined(*texts))
            self.cost = cost_of(self.plan, spec.options.prices, spec.options.attempts, spec.options.currency)
            self.record = record.with_options(plan_options(planned, self.cost, approved or self.refused))
            rows = put_on_record(ledger, self.record, self.plan, self.checked, self._offer, self._lease.fence)
            if self.refused is None:
                record_requests(ledger, spec, self.record, planned, rows)
            take_over(ledger, self.plan, planned.named)
        return approved

    def _require_permission(
        self, ledger: Ledger, record: RunRecord, planned: Preview, pause: Pause | None
    ) -> Approval | None:
        """Return the approval that the plan rests on; None where it needs none, or where nothing of it is bought now.

        Raises ConfigurationError and ApprovalNeeded for a plan that a person has to look at first.
        """
        if self.refused is not None:
            return None
        approved = None
        if pause is None:
            require_agreed(self.spec.ceiling, planned.proposal)
            approved = require_approval(ledger, self.spec.settings, planned.proposal)
        if pause is None and approved is None:
            # Of two runs that plan the same products at once, the second one waits, and sees the first one's plan.
            ledger.database.lock(f"plans {record.environment}")
            require_confirmation(self.spec.settings, planned.plan, find_duplicates(ledger, planned.plan))
        ledger.approvals.overtake(record.environment, record.catalog, f"run {record.run_id}")
        return approved

    def finish(self) -> asyncio.Task[Results]:
        """Begin to end the run and publish its results, once, and return the task.

        The task goes on even while what shows the run waits for a server.
        """
        if self._finishing is None:
            self._finishing = asyncio.create_task(self._end_and_publish())
        return self._finishing

    async def _end_and_publish(self) -> Results:
        """End the run, write its results, and copy them where that was requested; a failure stays in `unpublished`."""
        await self.end()
        self._let_go()
        results = None
        try:
            results = await asyncio.to_thread(self._publish)
            if self.spec.copy_below is not None:
                address = f"{self.spec.copy_below}/{self.spec.catalog}/{self.record.run_id}"
                await asyncio.to_thread(copy_files, results.out, results.files, address)
                results = replace(results, copied_to=address)
        except PatternmillError as error:
            self.unpublished = error
            raise
        finally:
            # Set last, so that whoever sees the results also sees why they were not copied.
            self.results = results
        return results

    def _let_go(self) -> None:
        """Let go of the plan and the checked rows: writing results takes memory of its own."""
        self.driven = {
            group.describe(): [row.entry.line for row in group.rows] for group in self.engine.groups
        }
        self._file, self._checked = self.checked.catalog, None
        self.engine.let_go()
        self.plan = self.engine.plan

    def _publish(self) -> Results:
        # Imported here so that what writes files and pages is not loaded before it is needed.
        from patternmill.ledger.reports.metrics import write_metrics
        from patternmill.runs.results_files import rebuild, write_catalog

        assert self._file is not None, "read before it has ended"
        spec, run_id, folder = self.spec, self.record.run_id, self.spec.catalog_folder
        out = spec.out or folder / run_id
        links = () if spec.out else (LATEST, latest_in(spec.settings.environment))
        try:
            with open_ledger(spec.settings) as ledger:
                results = rebuild(ledger, self.record, out, self._gallery, links=links, file=self._file)
                if not folder.is_dir():
                    return results
                written = write_catalog(ledger, spec.settings.environment, spec.catalog, folder, results)
                write_metrics(ledger, spec.catalog, folder)
                return replace(results, catalog=written, rows=None)
        except OSError as error:
            raise PatternmillError(
                f"The results could not be written to {out}: {error.strerror or type(error).__name__}. "
                f"Nothing is lost: the ledger has it all ({self.ended.outcome}).",
                code="results_unwritable",
                remedy=f"Make room or choose another folder, then `patternmill results {run_id} --out FOLDER`.",
            ) from error

    @property
    def ended(self) -> RunEnding:
        assert self.ending is not None, "ended before it is published"
        return self.ending

    @property
    def published(self) -> Results:
        assert self.results is not None, "published before it is shown"
        return self.results

    async def run_through(self) -> None:
        """Carry out every step, without Prefect. Raises what the steps raise."""
        await self.read()
        await self.check()
        await self.begin()
        await self.engine.drive()
        await self.finish()

    async def end(self) -> RunEnding:
        """Decide the outcome from the ledger, fix the status of every row, and release the lease."""
        await self.open_jobs.stop()
        await self._heartbeat.stop()
        try:
            self.ending = await self.writer.run_patiently(self._close)
        finally:
            await self.writer.close()
        self.record = self.ending.record
        return self.ending

    def _close(self, ledger: Ledger) -> RunEnding:
        """Close the run in the ledger; doing it twice changes nothing."""
        environment, catalog = self.record.environment, self.record.catalog
        with ledger.transaction(self._lease):
            # First, as what a group still wrote would be in one of the counts and not in another.
            ledger.runs.close_groups(environment, catalog)
            halted = self._incomplete.outcome if self._incomplete else _PARTLY
            counts = ledger.runs.close_rows(replace(self.record, outcome=halted))
            record = self._ended_record(counts, moment(ledger))
            spent_today = ledger.purchases.spent_on(day_of(ledger.now())).get(environment, Spent())
            if warning := nearly_spent(self.spec.options.limits, spent_today):
                record = record.with_options({"notes": [*record.options.get("notes", ()), warning]})
            ledger.catalogs.update(record)
            ledger.runs.update(record)
            ledger.catalogs.release_lease(self._lease)
            spent = ledger.purchases.spent_by_run(record.run_id)
        # Where all rows have an end, no request is open.
        is_open = not counts.keys().isdisjoint(UNFINISHED_ROWS | {RowStatus.HELD})
        limit = self.spec.options.in_doubt_limit
        left = open_requests(ledger, limit, (environment, catalog)) if is_open else ((), ())
        return RunEnding(record, counts, spent, *map(len, left))

    @property
    def waiting(self) -> str:
        """Say what the run waits for, the ledger or the service, and since when; empty while all is well."""
        return self.writer.waiting or self._api.waiting

    @property
    def queued(self) -> int:
        """Return how many items in flight wait to be sent."""
        return self._api.queued

    def stop(self, why: str) -> None:
        """Begin nothing new, as a person asked; what runs is followed until the drain is over."""
        if not self.is_stopped:
            self.is_stopped = True
            self.writer.shorten_wait()
            self._stop_on_record = asyncio.ensure_future(self._record_stop(why))
            self.engine.stop(why)

    async def _record_stop(self, why: str) -> None:
        """Record the stop, so that nobody begins the run again if this process is killed before its end."""
        with suppress(PatternmillError):
            await self.writer.write(lambda ledger: ledger.catalogs.record_stop(self._lease, why))

    def _lost(self, error: PatternmillError) -> None:
        code = "fenced" if isinstance(error, LeaseLost) else "ledger"
        self.halt.begin(HaltReason(Outcome.FAILED, code, str(error)))

    @property
    def _incomplete(self) -> HaltReason | None:
        """Return why the run did not carry out its whole plan; None where it did."""
        return self.halt.reason or self.left_out or self.halt.kept_purchase

    def _ended_record(self, counts: Mapping[RowStatus, int], at: datetime) -> RunRecord:
        """Return the record of the run as it ended: Completed with all products made, else by the reason of its halt.

        Rows that wait to be retired wait for a person, so that such a run is not simply complete.
        """
        withheld = withheld_reason(self.record)
        is_made = COMPLETE_ROWS.issuperset(counts)
        reason = None if is_made else self._incomplete
        outcome = reason.outcome if reason else _PARTLY
        if is_made and withheld is None:
            outcome = Outcome.COMPLETED
        return replace(
            self.record,
            ended_at=at,
            outcome=outcome,
            reason=joined(reason.message if reason else None, withheld) or None,
        )


async def learn_what_works(
    api: StudioApi, writer: LedgerWriter, environment: str, unstated: Unstated
) -> None:
    """Tell the client what was ever accepted, so that "not found" is about one item, and how long jobs took."""
    stages, refinements = await writer.run(lambda ledger: ledger.purchases.accepted(environment, REFINEMENTS))
    api.known_to_work(stages, unstated.operations(stages, refinements))
    api.remember(await writer.run(lambda ledger: ledger.purchases.durations(environment)))


def open_jobs(ledger: Ledger, plan: Plan) -> list[tuple[Item, Attempt]]:
    """Return the jobs of a catalog that its plan does not follow: of rows edited or gone since, and of other takes."""
    scope = {"environment": plan.scope.environment, "catalog": plan.scope.catalog}
    where = "a.state = 'accepted' AND i.environment = :environment AND i.catalog = :catalog"
    return [
        (Item(item.stage, plan.scope, item.content), item.attempt)
        for item in items_with_attempt(ledger, where, **scope)
        if item.key not in plan.items or plan.items[item.key].reason not in TO_DO
    ]


class OpenJobs:
    """Asks for the jobs that the plan does not follow, in rounds, until they have ended or the run has."""

    def __init__(self, engine: Engine, jobs: list[tuple[Item, Attempt]]) -> None:
        self._engine, self._jobs = engine, jobs
        self._asked = asyncio.Event()
        self._following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        while self._jobs:
            asking = (self._engine.ask_once(*job) for job in self._jobs)
            ended = await asyncio.gather(*asking, return_exceptions=True)
            # The next run asks about what could not be asked or recorded.
            self._jobs = [job for job, end in zip(self._jobs, ended, strict=True) if end is False]
            self._asked.set()
            await asyncio.sleep(_ROUND)
        self._asked.set()

    async def stop(self) -> None:
        """Stop asking; each job has been asked for once by then, unless the run was halted for more than a pause."""
        halt = self._engine.halt.reason
        if halt is None or halt.outcome is Outcome.PAUSED:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _FIRST_ROUND)
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
