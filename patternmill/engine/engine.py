"""The engine: a row's items, each built on the one before it, from intent to result, all inside one window.

Read `Engine._drive_row` for a row, `Engine.make` for an item.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from patternmill.engine.item_attempts import Attempts, failure_of
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.engine.shards import Depth, Group, Shard, cut_into_shards
from patternmill.engine.slots import Slots
from patternmill.errors import LedgerError, PatternmillError, RowFailed
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import LedgerWriter
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.planning.items import Item
from patternmill.planning.plan import TO_DO, Plan, PlannedRow, Reason
from patternmill.planning.recognition import Memory
from patternmill.service.jobs import Job
from patternmill.service.outcomes import Accepted
from patternmill.service.studio_api import StudioApi
from patternmill.states import AttemptState, Outcome, Stage
from patternmill.text import plural

logger = logging.getLogger(__name__)


class Screen:
    """Where people watch shards and items. Nothing waits for it; by itself it shows nothing."""

    def open(self, shard: Shard) -> None:
        """The rows of a shard are begun."""

    def show(self, shard: Shard, item: Item, making: asyncio.Task[str]) -> None:
        """An item is being made, by a task that must not be cancelled. It raises what `Engine.make` raises."""

    def close(self, shard: Shard) -> None:
        """All rows of a shard have ended."""


@dataclass(frozen=True)
class EndedItem:
    """An item that ended in this run: when it began and ended (Unix seconds), and why it failed, if it did."""

    item: Item
    began: float
    ended: float
    failure: RowFailed | None = None
    #: Where the service has its picture, of what was made.
    picture_url: str | None = None


class Engine:
    """Drives the rows of one run, or of one part of a run."""

    def __init__(
        self,
        record: RunRecord,
        plan: Plan,
        memory: Memory,
        writer: LedgerWriter,
        api: StudioApi,
        options: RunOptions,
        slots: Slots | None = None,
    ) -> None:
        """`slots`: of a window that is shared with other machines; None: it is the service's own."""
        self.plan, self.options = plan, options
        self.halt = Halt()
        self.progress = Progress.of(plan)
        self.shards = cut_into_shards(plan, options.shard_rows)
        self._api, self._writer = api, writer
        self._attempts = Attempts(record, writer, options, self.halt, slots)
        self._slots = slots
        self._retried = frozenset(key for key, it in plan.items.items() if it.reason is Reason.RETRIED)
        #: Result IDs: what earlier runs made that products are built on, and all that this one has made.
        self._results = _results_of_earlier_runs(plan, memory)
        self._failures: dict[ItemKey, RowFailed] = {}
        #: When items were begun, and those that have ended.
        self._began: dict[ItemKey, float] = {}
        self._ended: dict[ItemKey, EndedItem] = {}
        #: What several rows may wait for.
        self._shared: dict[ItemKey, asyncio.Task[None]] = {}
        self._depth = Depth(options.max_in_flight)
        #: Positions of rows that wait for the window, and a sign that one of them entered it.
        self._queued: set[int] = set()
        self._left_queue = asyncio.Event()
        #: When shards were opened, by their numbers.
        self._opened: dict[int, float] = {}

    def opened_at(self, shard: Shard) -> float | None:
        """Unix seconds; None for a shard of which no row was begun."""
        return self._opened.get(shard.number)

    def made(self, shard: Shard) -> int:
        return sum(row.product in self._results for row in shard.rows)

    def has_unfinished_rows(self, shard: Shard) -> bool:
        """Whether rows of it were neither made nor failed: what is so when a halted run has ended was left out."""
        return any(
            row.product not in self._results and self._failures.keys().isdisjoint(row.keys)
            for row in shard.rows
        )

    def ended_items(self) -> Iterator[EndedItem]:
        """The items that ended in this run, so far; from another thread too."""
        yield from tuple(self._ended.values())

    def ended(self, item: Item) -> EndedItem | None:
        """None: it has not ended in this run."""
        return self._ended.get(item.key)

    async def drive(self, screen: Screen | None = None) -> None:
        """Drive all rows to their end, shard by shard, each early enough for its rows to keep the window full.

        Raises nothing for a row. A ledger that takes no more writes halts the run, which cannot be closed then.
        """
        screen = screen or Screen()
        enough = self.options.max_in_flight + 2 * self.options.shard_rows
        async with asyncio.TaskGroup() as shards:
            for shard in self.shards:
                while len(self._queued) >= enough:
                    self._left_queue.clear()
                    await self._left_queue.wait()
                if self.halt.is_total:
                    return
                self._queued.update(row.position for row in shard.rows)
                shards.create_task(self._drive_shard(shard, screen))

    async def _drive_shard(self, shard: Shard, screen: Screen) -> None:
        self._opened[shard.number] = time.time()
        screen.open(shard)
        sharing = Counter(map(self.plan.first_pattern, shard.rows))
        for pattern, count in sharing.items():
            if pattern in self._results:
                self._depth.enter_at_once((shard.number, pattern, count))
        rows = (
            self._drive_row(row, shard, (shard.number, pattern, sharing[pattern]), screen)
            for row, pattern in ((row, self.plan.first_pattern(row)) for row in shard.rows)
        )
        for fault in await asyncio.gather(*rows, return_exceptions=True):
            if isinstance(fault, LedgerError):
                self.halt.begin(HaltReason(Outcome.FAILED, fault.code, str(fault)))
            elif fault is not None:
                raise fault
        screen.close(shard)

    async def _drive_row(self, row: PlannedRow, shard: Shard, group: Group, screen: Screen) -> None:
        """Reference, pattern, refinements, product. What rows share is made once, by the first of them."""
        assert row.product is not None, "a refused row is not driven"
        try:
            for planned in (self.plan.items[key] for key in row.keys if self.plan.items[key].reason in TO_DO):
                item = planned.item
                if item.parent_key is not None and item.parent_key not in self._results:
                    return
                if item.key == row.product:
                    await self._make_in_window(item, row, shard, screen)
                    return
                if item.key not in self._shared:
                    begins = group if item.stage is Stage.PATTERN else None
                    making = self._make_in_window(item, row, shard, screen, begins=begins)
                    self._shared[item.key] = asyncio.create_task(making)
                # Shielded: other rows may wait for it too.
                await asyncio.shield(self._shared[item.key])
        finally:
            self._leave_queue(row)
            self._depth.leave(group)
            self._count_row(row.product)

    async def _make_in_window(
        self, item: Item, row: PlannedRow, shard: Shard, screen: Screen, *, begins: Group | None = None
    ) -> None:
        """Make an item once the window has room for it. `begins`: the rows that are begun with it.

        A failure is in the ledger already; only one of the ledger is raised.
        """
        if begins is not None:
            await self._depth.enter(begins)
        await self._api.window.acquire(item.stage)
        self.progress.in_flight += 1
        self._leave_queue(row)
        try:
            if self.halt.halts(item.stage):
                return
            making = asyncio.create_task(self.make(item))
            try:
                screen.show(shard, item, making)
            except Exception:
                logger.exception("The screen broke; the item is made without it.")
            await making
        except LedgerError:
            raise
        except PatternmillError:
            pass
        finally:
            self.progress.in_flight -= 1
            self._api.window.release()
            if self._slots is not None:
                self._slots.wake()

    async def make(self, item: Item) -> str:
        """Intent -> create -> job -> result, attempt by attempt. Returns the ID of what was made.

        Raises RowFailed when it ended otherwise, BudgetReached or NotStarted when it could not be begun; and the same
        when called again.
        """
        if item.key in self._failures:
            raise self._failures[item.key]
        if item.key in self._results:
            return self._results[item.key]
        self._began.setdefault(item.key, time.time())
        retried = item.key in self._retried
        async with self._attempts.turn(item):
            attempt, sent_ago = await self._attempts.begin(item, self._results, retried=retried)
            last_number = self.options.attempts + (attempt.attempt - 1 if retried else 0)
            attempt, job = await self._create(item, attempt, sent_ago)
        attempt = await self._follow(item, attempt, job)
        while attempt.state is AttemptState.FAILED:
            async with self._attempts.turn(item):
                another = await self._attempts.begin_another(item, self._results, attempt, last_number)
                if another is None:
                    break
                self.progress.tried_again += 1
                attempt, job = await self._create(item, *another)
            attempt = await self._follow(item, attempt, job)
        await self._attempts.leave_window(attempt)
        return self._result(item, attempt)

    async def _create(
        self, item: Item, attempt: Attempt, sent_ago: timedelta | None
    ) -> tuple[Attempt, Job | None]:
        """The attempt as its answer leaves it, with the job that this answer showed.

        Past the in-doubt limit the service may have forgotten the request ID: a person decides.
        """
        is_old = sent_ago is not None and sent_ago > self.options.in_doubt_limit
        if attempt.state is not AttemptState.INTENDED or is_old:
            return attempt, None
        created = await self._api.create(
            item.stage,
            attempt.body,
            operation=item.operation,
            known_job_id=attempt.job_id,
            age=sent_ago,
            repeatable=item.is_repeatable,
            stopping=lambda: self.halt.forbids_sending(item.stage),
            permitted=self._writer.confirm_lease,
        )
        attempt = await self._attempts.record_create(item, attempt, created)
        return attempt, created.job if isinstance(created, Accepted) else None

    async def _follow(self, item: Item, attempt: Attempt, job: Job | None) -> Attempt:
        if attempt.state is not AttemptState.ACCEPTED:
            return attempt
        assert attempt.job_id is not None, "an accepted attempt has a job ID"
        age = self._attempts.age_of_job(attempt)
        ended = await self._api.follow(attempt.job_id, item.stage, age=age, known=job)
        return await self._attempts.record_end(item, attempt, ended)

    def stop(self, why: str) -> None:
        """A person's stop: nothing new is begun, no create is sent; what runs is followed while the drain lasts."""
        self.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", why))
        self._api.drain()

    def abandon(self) -> None:
        """End the drain: jobs that have not ended are for the next run."""
        self._api.abandon()

    def _result(self, item: Item, attempt: Attempt) -> str:
        if attempt.state is AttemptState.SUCCEEDED:
            assert attempt.result_id is not None, "what succeeded has an ID"
            self._results[item.key] = attempt.result_id
            self.progress.made[item.stage] += 1
            ended = EndedItem(item, self._began[item.key], time.time(), picture_url=attempt.picture_url)
            self._ended[item.key] = ended
            return attempt.result_id
        failure = failure_of(item, attempt)
        if isinstance(failure, RowFailed):
            self._failures[item.key] = failure
            self._ended[item.key] = EndedItem(item, self._began[item.key], time.time(), failure)
            if failure.is_final:
                self._count_failure()
        raise failure

    def _count_failure(self) -> None:
        self.progress.items_failed += 1
        self.halt_if_too_many_failed()

    def halt_if_too_many_failed(self) -> None:
        failed = self.progress.items_failed
        ended = self.progress.made.total() + failed
        if self.options.too_many(failed, ended):
            message = (
                f"{failed:,} of {plural(ended, 'item')} failed, which is more than --max-failures allows."
            )
            self.halt.begin(HaltReason(Outcome.FAILED, "too_many_failures", message))

    def _leave_queue(self, row: PlannedRow) -> None:
        self._queued.discard(row.position)
        self._left_queue.set()

    def _count_row(self, product: ItemKey) -> None:
        if product not in self._results and self.halt.reason is not None:
            self.progress.left_out += 1
            return
        self.progress.ended += 1
        if product not in self._results:
            self.progress.failed += 1


def _results_of_earlier_runs(plan: Plan, memory: Memory) -> dict[ItemKey, str]:
    found = {}
    for key, planned in plan.items.items():
        is_needed = planned.reason is Reason.DONE and planned.item.stage is not Stage.PRODUCT
        last = memory.last_attempts.get(key) if is_needed else None
        if isinstance(last, Attempt) and last.result_id is not None:
            found[key] = last.result_id
    return found
